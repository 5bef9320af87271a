package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// command is what a person calls: it asks a REST server that client-configuration.yml names, and keeps its session in the
// person's own folder.
func command(args []string) error {
	switch words := strings.Join(args, " "); {
	case words == "studies search", words == "meta about":
		return asked("/webservices/rest/v2/" + strings.Join(args, "/"))
	case strings.HasPrefix(words, "users login -u ") && len(args) == 4:
		return login(args[3])
	default:
		return fmt.Errorf("%q is no command of this stand-in", words)
	}
}

func asked(path string) error {
	text, err := os.ReadFile(filepath.Join(os.Getenv("OPENCGA_HOME"), "conf", "client-configuration.yml"))
	if err != nil {
		return err
	}
	var conf struct {
		Rest struct {
			Hosts []struct {
				URL string `json:"url"`
			} `json:"hosts"`
		} `json:"rest"`
	}
	if err := json.Unmarshal(text, &conf); err != nil || len(conf.Rest.Hosts) == 0 {
		return errors.New("client-configuration.yml names no REST server")
	}
	answer, err := (&http.Client{Timeout: 10 * time.Second}).Get(conf.Rest.Hosts[0].URL + path)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(os.Stdout, answer.Body); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the REST server says %s", answer.Status)
	}
	return nil
}

func login(user string) error {
	if _, err := password(); err != nil {
		return err
	}
	folder := filepath.Join(os.Getenv("HOME"), ".opencga")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	text, err := json.Marshal(map[string]string{"user": user})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "session.json"), text, 0o600)
}
