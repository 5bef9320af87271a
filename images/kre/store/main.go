// Command minio is in MinIO's place, for tests: it takes the command line and the files of credentials that MinIO takes,
// refuses what MinIO refuses of them, and answers for its health as long as its folder can be written. It keeps no objects.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// secret is what stands in the file that a variable of the environment names.
func secret(variable string, least int) (string, error) {
	content, err := os.ReadFile(os.Getenv(variable))
	if err != nil {
		return "", fmt.Errorf("%s: %w", variable, err)
	}
	text := strings.TrimSpace(string(content))
	if len(text) < least {
		return "", fmt.Errorf("%s: its file has %d characters, and at least %d are needed", variable, len(text), least)
	}
	return text, nil
}

// health answers whether the folder takes a file.
func health(folder string) http.HandlerFunc {
	return func(answer http.ResponseWriter, _ *http.Request) {
		trial := filepath.Join(folder, ".healthy")
		if err := os.WriteFile(trial, nil, 0o600); err != nil {
			http.Error(answer, err.Error(), http.StatusServiceUnavailable)
		}
	}
}

func run() error {
	if len(os.Args) != 3 || os.Args[1] != "server" {
		return errors.New("usage: minio server FOLDER")
	}
	for variable, least := range map[string]int{"MINIO_ROOT_USER_FILE": 3, "MINIO_ROOT_PASSWORD_FILE": 8} {
		if _, err := secret(variable, least); err != nil {
			return err
		}
	}
	routes := http.NewServeMux()
	routes.HandleFunc("GET /minio/health/live", func(http.ResponseWriter, *http.Request) {})
	routes.HandleFunc("GET /minio/health/ready", health(os.Args[2]))
	routes.HandleFunc("/", func(answer http.ResponseWriter, _ *http.Request) {
		http.Error(answer, "this stand-in keeps no objects", http.StatusNotImplemented)
	})
	server := &http.Server{Addr: ":9000", Handler: routes, ReadHeaderTimeout: 10 * time.Second}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	go func() {
		<-ctx.Done()
		_ = server.Shutdown(context.Background())
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
