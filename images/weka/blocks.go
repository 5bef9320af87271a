package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

var blockKey = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// own is the device of one of this container's own drives, which may be lost by a fault.
func (a *agent) device(d *drive) (device, error) {
	a.mu.Lock()
	lost := a.faults.LostDrive
	a.mu.Unlock()
	if lost == d.Serial {
		return device{}, errors.New("the drive does not answer")
	}
	found, err := readDevice(d.Path)
	if err != nil {
		return device{}, err
	}
	if found.Serial != d.Serial {
		return device{}, errors.New("another drive is there")
	}
	return found, nil
}

func (a *agent) handlePutBlock(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err == nil {
		err = a.keep(r.PathValue("uuid"), r.PathValue("key"), text)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
}

func (a *agent) handleGetBlock(w http.ResponseWriter, r *http.Request) {
	text, err := a.kept(r.PathValue("uuid"), r.PathValue("key"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	_, _ = w.Write(text)
}

// keep writes a block to a drive of this container, whole or not at all.
func (a *agent) keep(uuid, key string, text []byte) error {
	path, err := a.blockPath(uuid, key)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func (a *agent) kept(uuid, key string) ([]byte, error) {
	path, err := a.blockPath(uuid, key)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

func (a *agent) blockPath(uuid, key string) (string, error) {
	if !blockKey.MatchString(key) {
		return "", fmt.Errorf("%q is no key of a block", key)
	}
	value, _ := a.own.last()
	if value == nil || value.Drives[uuid] == nil || value.Drives[uuid].Host != a.container().Host {
		return "", fmt.Errorf("drive %s is none of this container's", uuid)
	}
	d, err := a.device(value.Drives[uuid])
	if err != nil {
		return "", err
	}
	return filepath.Join(d.blocks(), key), nil
}

// putBlock writes a block to as many drives as there are to be copies, and answers once all have it.
func (a *agent) putBlock(key string, text []byte) error {
	value, err := a.known()
	if err != nil {
		return err
	}
	if value.IO != "STARTED" {
		return errors.New("IO is not started")
	}
	on := value.places(key, func(host int) bool { return a.alive(value.Members[host]) })
	var held []string
	for _, uuid := range on {
		if a.toDrive(value, uuid, key, text) == nil {
			held = append(held, uuid)
		}
	}
	if len(held) < 1+value.Parity/2 {
		return fmt.Errorf("%d of %d copies were written", len(held), value.copies())
	}
	_, err = a.change(func(s *state) error {
		s.Blocks[key] = held
		return nil
	})
	return err
}

func (a *agent) toDrive(value *state, uuid, key string, text []byte) error {
	m := value.Members[value.Drives[uuid].Host]
	if m.Host == a.container().Host {
		return a.keep(uuid, key, text)
	}
	return a.send(http.MethodPut, m.Address, "/block/"+uuid+"/"+key, text, nil)
}

func (a *agent) fromDrive(value *state, uuid, key string) ([]byte, error) {
	d := value.Drives[uuid]
	if d == nil || value.Members[d.Host] == nil {
		return nil, errNotFound
	}
	if d.Host == a.container().Host {
		return a.kept(uuid, key)
	}
	var text []byte
	err := a.send(http.MethodGet, value.Members[d.Host].Address, "/block/"+uuid+"/"+key, nil, &text)
	return text, err
}

// getBlock reads a block from whichever drive has it.
func (a *agent) getBlock(key string) ([]byte, error) {
	value, err := a.known()
	if err != nil {
		return nil, err
	}
	for _, uuid := range value.Blocks[key] {
		if text, err := a.fromDrive(value, uuid, key); err == nil {
			return text, nil
		}
	}
	return nil, fmt.Errorf("block %s %w on any of its drives", key, errNotFound)
}

// safe tells on how many good drives a block is: such as are read, and stay.
func (a *agent) safe(value *state, key string, alive map[int]bool) (good []string) {
	for _, uuid := range value.Blocks[key] {
		d := value.Drives[uuid]
		if d != nil && d.Status == active && value.Members[d.Host] != nil && value.Members[d.Host].State == active && alive[d.Host] {
			good = append(good, uuid)
		}
	}
	return good
}

// mend is done by the first of those who decide and answer: what has too few copies gets more, and who was told to leave
// has left once nothing needs it.
func (a *agent) mend() {
	value, _ := a.own.last()
	if value == nil {
		return
	}
	alive := map[int]bool{}
	for host, m := range value.Members {
		alive[host] = a.alive(m)
	}
	for _, host := range value.Leaders {
		if alive[host] {
			if host != a.container().Host {
				return
			}
			break
		}
	}
	a.mu.Lock()
	stuck := a.faults.StuckLeave
	a.mu.Unlock()
	moved := map[string][]string{}
	for key, on := range value.Blocks {
		good := a.safe(value, key, alive)
		if len(good) >= value.copies() || stuck {
			continue
		}
		wanted := value.places(key, func(host int) bool { return alive[host] })
		text, err := a.getAny(value, key)
		if err != nil {
			continue
		}
		held := good
		for _, uuid := range wanted {
			if !slices.Contains(held, uuid) && len(held) < value.copies() && a.toDrive(value, uuid, key, text) == nil {
				held = append(held, uuid)
			}
		}
		if len(held) > len(good) || (len(held) == len(wanted) && len(held) < len(on)) {
			moved[key] = held
		}
	}
	left := a.haveLeft(value, moved, alive, stuck)
	if len(moved) == 0 && len(left) == 0 {
		return
	}
	_, _ = a.change(func(s *state) error {
		for key, on := range moved {
			if slices.Equal(s.Blocks[key], value.Blocks[key]) { // else it was written meanwhile
				s.Blocks[key] = on
			}
		}
		for _, host := range left {
			if m := s.Members[host]; m != nil && m.State == deactivating {
				m.State = inactive
			}
		}
		for _, d := range s.Drives {
			if d.Status == phasingOut && !s.holds(d.UUID) {
				d.Status = inactive
			}
		}
		s.elect(5)
		return nil
	})
}

func (a *agent) getAny(value *state, key string) ([]byte, error) {
	for _, uuid := range value.Blocks[key] {
		if text, err := a.fromDrive(value, uuid, key); err == nil {
			return text, nil
		}
	}
	return nil, errNotFound
}

// haveLeft are members that were told to leave, and that nothing needs any more.
func (a *agent) haveLeft(value *state, moved map[string][]string, alive map[int]bool, stuck bool) (left []int) {
	after := copied(value)
	for key, on := range moved {
		after.Blocks[key] = on
	}
	for host, m := range after.Members {
		if m.State != deactivating || stuck {
			continue
		}
		needed := false
		for key, on := range after.Blocks {
			for _, uuid := range on {
				d := after.Drives[uuid]
				needed = needed || (d != nil && d.Host == host && len(a.safe(after, key, alive)) < after.copies())
			}
		}
		if !needed {
			left = append(left, host)
		}
	}
	for _, d := range after.Drives {
		if d.Status == phasingOut && !after.holds(d.UUID) {
			left = append(left, -1) // no member, but something is to be written
		}
	}
	return left
}

// holds tells whether a block is on that drive and has too few other copies.
func (s *state) holds(uuid string) bool {
	for _, on := range s.Blocks {
		others := 0
		for _, it := range on {
			if it != uuid && s.Drives[it] != nil && s.Drives[it].Status == active {
				others++
			}
		}
		if slices.Contains(on, uuid) && others < s.copies() {
			return true
		}
	}
	return false
}
