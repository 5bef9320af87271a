package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
)

// marker is the file by which a folder says that what is in it may be written: the stand-in touches no other devices.
const marker = ".moorage-devices"

// device is a file that stands for a drive: this is its first line. Its blocks are in a folder beside it.
type device struct {
	Serial  string `json:"serial_id"`
	Path    string `json:"block_device"`
	Signed  bool   `json:"is_signed"`
	GUID    string `json:"weka_guid"`
	Mounted bool   `json:"mounted"`
	Node    string `json:"node,omitempty"` // the one node that has it, where nodes share a folder
}

func checkMarked(folder string) error {
	if _, err := os.Stat(filepath.Join(folder, marker)); err != nil {
		return fmt.Errorf("%s has no file %s, so nothing in it is touched", folder, marker)
	}
	return nil
}

// listDevices reads the drives of a marked folder.
func listDevices(folder string) ([]device, error) {
	if err := checkMarked(folder); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	found := []device{}
	for _, entry := range entries {
		if entry.IsDir() || strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		if d, err := readDevice(filepath.Join(folder, entry.Name())); err == nil && d.isHere() {
			found = append(found, d)
		}
	}
	sort.Slice(found, func(i, j int) bool { return found[i].Serial < found[j].Serial })
	return found, nil
}

func readDevice(path string) (device, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return device{}, err
	}
	if !info.Mode().IsRegular() {
		return device{}, errors.New("it is no plain file")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return device{}, err
	}
	var d device
	if err := json.Unmarshal(text, &d); err != nil || d.Serial == "" {
		return device{}, fmt.Errorf("%s is no drive", path)
	}
	d.Path = path
	return d, nil
}

func (d device) write() error {
	if err := checkMarked(filepath.Dir(d.Path)); err != nil {
		return err
	}
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	// by a name that no list of drives has
	made := filepath.Join(filepath.Dir(d.Path), "."+filepath.Base(d.Path)+".new")
	if err := os.WriteFile(made, text, 0o600); err != nil {
		return err
	}
	return os.Rename(made, d.Path)
}

// isHere is whether this node has it.
func (d device) isHere() bool { return d.Node == "" || d.Node == os.Getenv("NODE_NAME") }

func (d device) blocks() string { return d.Path + ".blocks" }

// runSign is the tool /weka-sign-drive.
func runSign(args []string, out, errs io.Writer, folder string) int {
	fail := func(err error) int {
		fmt.Fprintln(errs, "weka-sign-drive:", err)
		return 1
	}
	if len(args) > 0 && args[0] == "list" {
		found, err := listDevices(folder)
		if err != nil {
			return fail(err)
		}
		return printed(out, found)
	}
	if len(args) == 3 && args[0] == "show" && args[1] == "--json" {
		d, err := readDevice(args[2])
		if err != nil {
			return fail(err)
		}
		return printed(out, d)
	}
	if len(args) == 0 {
		return fail(errors.New("usage: weka-sign-drive list -j | show --json PATH | [FLAGS --] PATH"))
	}
	d, err := readDevice(args[len(args)-1])
	if err != nil {
		return fail(err)
	}
	if filepath.Dir(d.Path) != filepath.Clean(folder) {
		return fail(fmt.Errorf("%s is not in %s", d.Path, folder))
	}
	erase := slices.Contains(args, "--allow-erase-weka-partitions")
	if d.Mounted || (d.GUID != "" && !erase) {
		return fail(fmt.Errorf("%s may hold somebody's data", d.Path))
	}
	if erase {
		d.GUID = ""
		if err := os.RemoveAll(d.blocks()); err != nil {
			return fail(err)
		}
	}
	d.Signed = true
	if err := d.write(); err != nil {
		return fail(err)
	}
	return 0
}

func printed(out io.Writer, value any) int {
	if err := json.NewEncoder(out).Encode(value); err != nil {
		return 1
	}
	return 0
}
