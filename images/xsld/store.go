package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// store is the member's volume: a few JSON files, each replaced whole.
type store struct{ folder string }

// load reads a file into value; false when there is none yet.
func (s store) load(name string, value any) (bool, error) {
	text, err := os.ReadFile(s.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, value)
	}
	if err != nil {
		return false, fmt.Errorf("cannot read %s: %w", name, err)
	}
	return true, nil
}

// save replaces a file at one blow, so that a kill leaves the old one or the new one.
func (s store) save(name string, value any) error {
	text, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		return err
	}
	path := s.path(name)
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func (s store) remove(name string) {
	_ = os.Remove(s.path(name))
}

func (s store) path(name string) string { return filepath.Join(s.folder, name) }
