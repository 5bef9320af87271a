package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

func (m *member) listenAll(catalog bool) error {
	if err := m.serveAdmin(); err != nil {
		return err
	}
	if m.lightweight {
		return nil
	}
	if err := m.serveData(); err != nil {
		return err
	}
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "<!doctype html><title>%s</title><p>Member %s of group %s\n", m.group, m.name, m.group)
	})
	if err := m.serveTLS(m.ports.ui, page, m.tls()); err != nil {
		return err
	}
	return m.runCatalog(catalog)
}

func (m *member) at(port int) string { return net.JoinHostPort(m.listen, fmt.Sprint(port)) }

func (m *member) tls() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{m.certificate}, MinVersion: tls.VersionTLS12}
}

func (m *member) serveTLS(port int, handler http.Handler, config *tls.Config) error {
	listener, err := tls.Listen("tcp", m.at(port), config)
	if err != nil {
		return err
	}
	m.serve(listener, handler)
	return nil
}

func (m *member) serve(listener net.Listener, handler http.Handler) {
	server := &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Minute,
		TLSNextProto:   map[string]func(*http.Server, *tls.Conn, http.Handler){}, // HTTP/1.1 is what the original speaks
		IdleTimeout:    5 * time.Minute,
		MaxHeaderBytes: 1 << 16}
	m.closeLater(server)
	go func() { _ = server.Serve(listener) }()
}

// finishRequests takes no new ones, and waits a moment for those that are on their way.
func (m *member) finishRequests() {
	m.mu.Lock()
	closers := slices.Clone(m.closers)
	m.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var all sync.WaitGroup
	for _, closer := range closers {
		if server, ok := closer.(*http.Server); ok {
			all.Go(func() { _ = server.Shutdown(ctx) })
		}
	}
	all.Wait()
}

// closeLater closes what was opened when the member ends, or at once if it has ended meanwhile.
func (m *member) closeLater(closer io.Closer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closers = append(m.closers, closer)
	if m.ended() {
		closer.Close()
	}
}
