package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// catalog is what the database holds under one prefix, and what was done to it.
type catalog struct {
	Installed bool     `json:"installed"`
	Version   string   `json:"version"`  // it was migrated to
	Migrates  string   `json:"migrates"` // to this one, at the moment
	Installs  int      `json:"installs"`
	Migrated  []string `json:"migrated"`
	Offline   string   `json:"offline"`   // not empty: its next migration forbids that anybody else touches it
	Fails     string   `json:"fails"`     // not empty: its next migration ends with these words
	Forbidden int      `json:"forbidden"` // accesses by servers that the catalog was not migrated to yet
	Old       int      `json:"old"`       // accesses by servers that it was migrated away from, which it lets read
	Accesses  int      `json:"accesses"`
	password  string
}

type database struct {
	mu       sync.Mutex
	catalogs map[string]*catalog
	down     bool
}

// keep serves the database. POST /down and /up switch it: while it is down it answers nobody.
func keep(address string) error {
	held := &database{catalogs: map[string]*catalog{}}
	server := &http.Server{Addr: address, Handler: held, ReadHeaderTimeout: 5 * time.Second}
	return server.ListenAndServe()
}

func (d *database) ServeHTTP(answer http.ResponseWriter, asked *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if asked.URL.Path == "/down" || asked.URL.Path == "/up" {
		d.down = asked.URL.Path == "/down"
		return
	}
	if d.down {
		http.Error(answer, "down", http.StatusServiceUnavailable)
		return
	}
	var words map[string]string
	if err := json.NewDecoder(io.LimitReader(asked.Body, 1<<16)).Decode(&words); err != nil && !errors.Is(err, io.EOF) {
		http.Error(answer, err.Error(), http.StatusBadRequest)
		return
	}
	prefix := asked.URL.Query().Get("prefix")
	if d.catalogs[prefix] == nil {
		d.catalogs[prefix] = &catalog{}
	}
	if err := d.catalogs[prefix].do(asked.URL.Path, words); err != nil {
		http.Error(answer, err.Error(), http.StatusConflict)
		return
	}
	_ = json.NewEncoder(answer).Encode(d.catalogs[prefix])
}

func (c *catalog) do(path string, words map[string]string) error {
	switch path {
	case "/look":
		return nil
	case "/install":
		if c.Installed && c.password != words["password"] {
			return errors.New("the catalog is installed with another password")
		}
		if !c.Installed {
			c.Installs++
		}
		c.Installed, c.password = true, words["password"]
		return nil
	case "/access":
		c.Accesses++
		if c.Migrates != "" && c.Offline != "" {
			c.Forbidden++
			return fmt.Errorf("version %s may not touch a catalog while it is migrated to %s", words["version"], c.Migrates)
		}
		if !c.Installed || number(words["version"]) > number(c.Version) {
			c.Forbidden++
			return fmt.Errorf("version %s may not touch a catalog of %q", words["version"], c.Version)
		}
		if number(words["version"]) < number(c.Version) {
			c.Old++
		}
		return nil
	case "/set":
		c.Offline, c.Fails = words["offline"], words["fails"]
		return nil
	case "/migrate/begin", "/migrate/end":
		if !c.Installed || c.password != words["password"] {
			return errors.New("the administrator's password is another one")
		}
		if c.Offline != "" && words["offline"] == "" && number(words["version"]) > number(c.Version) {
			return errors.New("the migration is an offline one, and --offline was not given")
		}
		if path == "/migrate/begin" {
			c.Migrates = words["version"]
			return nil
		}
		if c.Fails != "" {
			return errors.New(c.Fails)
		}
		if number(words["version"]) > number(c.Version) {
			c.Migrated = append(c.Migrated, words["version"])
			c.Version = words["version"]
		}
		c.Migrates, c.Offline = "", ""
		return nil
	}
	return fmt.Errorf("%s is nothing that is kept here", path)
}

func number(version string) int {
	sum := 0
	for _, part := range strings.Split(version, ".") {
		n, _ := strconv.Atoi(part)
		sum = sum*1000 + n
	}
	return sum
}

// --- how it is asked ------------------------------------------------------------------------------------------------

var client = &http.Client{Timeout: 3 * time.Second}

func (c *configuration) look() (*catalog, error) {
	found := &catalog{}
	return found, c.ask("/look", nil, found)
}

func (c *configuration) ask(path string, words map[string]string, into any) error {
	text, err := json.Marshal(words)
	if err != nil {
		return err
	}
	url := fmt.Sprintf("http://%s%s?prefix=%s", c.Catalog.Database.Hosts[0], path, c.DatabasePrefix)
	answer, err := client.Post(url, "application/json", bytes.NewReader(text))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return errors.New(strings.TrimSpace(string(body)))
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(body, into)
}
