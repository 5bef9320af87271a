package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"
)

// environment is what a version's entrypoint is given.
type environment struct {
	nats     string
	version  string
	timeout  time.Duration
	subjects map[string]subjects // by method
}

// subjects says where a method's calls are written to, and where their answers come from.
type subjects struct {
	Stream string `json:"stream"`
	Input  string `json:"input_subject"`
	Output string `json:"output_subject"`
}

func fromEnvironment() (environment, error) {
	given := environment{
		nats:    os.Getenv("KRT_NATS_SERVER"),
		version: os.Getenv("KRT_VERSION"),
		timeout: 30 * time.Second,
	}
	if given.nats == "" {
		return given, fmt.Errorf("KRT_NATS_SERVER is not set: it says where NATS is, as HOST:PORT")
	}
	if text := os.Getenv("KRT_REQUEST_TIMEOUT"); text != "" {
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil || seconds <= 0 {
			return given, fmt.Errorf("KRT_REQUEST_TIMEOUT is %q, and should be a number of seconds", text)
		}
		given.timeout = time.Duration(seconds * float64(time.Second))
	}
	file := os.Getenv("KRT_NATS_SUBJECTS_FILE")
	content, err := os.ReadFile(file)
	if err != nil {
		return given, fmt.Errorf("the file of KRT_NATS_SUBJECTS_FILE can't be read: %w", err)
	}
	if err := json.Unmarshal(content, &given.subjects); err != nil {
		return given, fmt.Errorf("%s is no JSON of methods with their subjects: %w", file, err)
	}
	return given, nil
}
