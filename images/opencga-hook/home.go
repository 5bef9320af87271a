package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// files are those of the product's that an agent lays its own over.
var files = []string{"configuration.yml", "storage-configuration.yml", "client-configuration.yml"}

// authorities is where an image keeps whom its programs trust; it is told under a name of its own.
const (
	authorities     = "/etc/ssl/certs/ca-certificates.crt"
	toldAuthorities = "authorities.pem"
	mostAuthorities = 512 << 10
)

// laid makes a folder like the product's home, of links, in which an agent's files take the place of the image's. The
// image's own stay as they are, on a root file system that is read only.
func laid(home, conf, at string) error {
	if err := os.RemoveAll(at); err != nil {
		return err
	}
	if err := links(home, at, "conf"); err != nil {
		return err
	}
	inside := filepath.Join(at, "conf")
	if err := links(filepath.Join(home, "conf"), inside, files...); err != nil {
		return err
	}
	for _, name := range files {
		if err := os.Symlink(filepath.Join(conf, name), filepath.Join(inside, name)); err != nil {
			return err
		}
	}
	return nil
}

func links(from, to string, but ...string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if contains(but, entry.Name()) {
			continue
		}
		if err := os.Symlink(filepath.Join(from, entry.Name()), filepath.Join(to, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

func contains(names []string, name string) bool {
	for _, each := range names {
		if each == name {
			return true
		}
	}
	return false
}

// own reads the files as they are in the image, and whom it trusts.
func own(home, trusted string) (map[string]string, error) {
	found := map[string]string{}
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(home, "conf", name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found[name] = string(text)
	}
	if text, err := os.ReadFile(trusted); err == nil && len(text) <= mostAuthorities {
		found[toldAuthorities] = string(text)
	}
	return found, nil
}

// within has a path of the product's home begin with another one.
func within(path, home, at string) string {
	if rest, ok := strings.CutPrefix(path, home+"/"); ok {
		return filepath.Join(at, rest)
	}
	return path
}
