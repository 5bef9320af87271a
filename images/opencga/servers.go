package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/signal"
	"syscall"
	"time"
)

// serveREST answers as the product does below /opencga/webservices/rest/v2, until it is to end; then it ends in order.
func serveREST(conf *configuration) error {
	paths := http.NewServeMux()
	base := "/opencga/webservices/rest/v2"
	paths.HandleFunc("GET "+base+"/meta/ping", func(answer http.ResponseWriter, _ *http.Request) {
		told(answer, http.StatusOK, "pong")
	})
	paths.HandleFunc("GET "+base+"/meta/about", func(answer http.ResponseWriter, _ *http.Request) {
		told(answer, http.StatusOK, map[string]string{"Program": "OpenCGA (stand-in)", "Version": version()})
	})
	paths.HandleFunc("GET "+base+"/meta/status", func(answer http.ResponseWriter, _ *http.Request) {
		code, word := http.StatusOK, "OK"
		if found, err := conf.look(); err != nil || !found.Installed {
			code, word = http.StatusInternalServerError, "KO"
		}
		told(answer, code, map[string]string{"CatalogMongoDB": word, "Solr": "NA", "VariantStorage": "NA"})
	})
	paths.HandleFunc("GET "+base+"/studies/search", func(answer http.ResponseWriter, _ *http.Request) {
		if err := conf.ask("/access", map[string]string{"version": version()}, nil); err != nil {
			http.Error(answer, err.Error(), http.StatusInternalServerError)
			return
		}
		told(answer, http.StatusOK, map[string]string{"version": version()})
	})
	return serve(conf.Server.Rest.Port, 9090, paths)
}

// serveDaemon is the MASTER, as far as it is asked.
func serveDaemon(conf *configuration) error {
	if _, err := password(); err != nil {
		return err
	}
	paths := http.NewServeMux()
	paths.HandleFunc("GET /opencga/monitor/admin/test", func(answer http.ResponseWriter, _ *http.Request) {
		told(answer, http.StatusOK, "alive")
	})
	return serve(conf.Monitor.Port, 9092, paths)
}

func told(answer http.ResponseWriter, code int, result any) {
	answer.Header().Set("Content-Type", "application/json")
	answer.WriteHeader(code)
	_ = json.NewEncoder(answer).Encode(map[string]any{"responses": []any{map[string]any{"results": []any{result}}}})
}

func serve(port, otherwise int, paths http.Handler) error {
	if port == 0 {
		port = otherwise
	}
	ends, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	server := &http.Server{Addr: fmt.Sprintf(":%d", port), Handler: paths, ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	fmt.Println("INFO: up, of version", version())
	select {
	case err := <-ended:
		return err
	case <-ends.Done():
	}
	fmt.Println("INFO: ends in order")
	within, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return server.Shutdown(within)
}
