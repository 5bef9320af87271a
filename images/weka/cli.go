package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
)

// order is a call of the command line, as it reaches the agent.
type order struct {
	Words  []string          `json:"words"`
	Secret map[string]string `json:"secret"` // what came by the environment
	Input  []byte            `json:"input"`
}

// said is what the agent makes of it.
type said struct {
	Out  []byte `json:"out"`
	Err  string `json:"err"`
	Code int    `json:"code"`
}

var secretVariables = []string{
	"WEKA_USERNAME", "WEKA_PASSWORD", "WEKA_ORG", "WEKA_JOIN_SECRET", "WEKA_ADMIN_PASSWORD", "WEKA_NEW_PASSWORD",
}

// runCLI hands the words to the agent of this container.
func runCLI(words []string) int {
	it := order{Words: words, Secret: map[string]string{}}
	for _, name := range secretVariables {
		it.Secret[name] = os.Getenv(name)
	}
	if len(words) > 1 && words[0] == "standin" && words[1] == "put" {
		it.Input, _ = io.ReadAll(os.Stdin)
	}
	got, err := hand(settingsFrom(os.Getenv).socket, it)
	if err != nil {
		fmt.Fprintln(os.Stderr, "weka: the agent does not answer:", err)
		return 3
	}
	_, _ = os.Stdout.Write(got.Out)
	if got.Err != "" {
		fmt.Fprintln(os.Stderr, "error:", got.Err)
	}
	return got.Code
}

func hand(socket string, it order) (said, error) {
	text, err := json.Marshal(it)
	if err != nil {
		return said{}, err
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	client := http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	response, err := client.Post("http://agent/run", "application/json", bytes.NewReader(text))
	if err != nil {
		return said{}, err
	}
	defer response.Body.Close()
	var got said
	return got, json.NewDecoder(response.Body).Decode(&got)
}
