package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
)

// state is all that the members of a cluster agree on: one value in their register.
type state struct {
	GUID    string              `json:"guid"`
	Name    string              `json:"name"`
	Next    int                 `json:"next"` // number of the next member
	Members map[int]*member     `json:"members"`
	Leaders []int               `json:"leaders"` // who agree: a majority of them decides
	Drives  map[string]*drive   `json:"drives"`
	Users   map[string]*user    `json:"users"`
	Groups  []string            `json:"groups"`
	Systems map[string]*system  `json:"filesystems"`
	Blocks  map[string][]string `json:"blocks"` // by key: the drives that hold it
	Data    int                 `json:"data"`
	Parity  int                 `json:"parity"`
	Spare   int                 `json:"spare"`
	IO      string              `json:"io"`
	Phase   string              `json:"phase"`
}

type member struct {
	Host    int    `json:"host"`
	Name    string `json:"name"`
	Address string `json:"address"` // and port
	State   string `json:"state"`   // ACTIVE, DEACTIVATING, INACTIVE
	Version string `json:"version"`
}

type drive struct {
	UUID   string `json:"uuid"`
	Serial string `json:"serial"`
	Path   string `json:"path"`
	Host   int    `json:"host"`
	Status string `json:"status"` // ACTIVE, PHASING_OUT, INACTIVE, FAILED
	Added  string `json:"added"`
}

type user struct {
	Role string `json:"role"`
	Salt string `json:"salt"`
	Hash string `json:"hash"`
}

type system struct {
	ID    int    `json:"id"`
	Group string `json:"group"`
	Total int64  `json:"total"`
}

const (
	active       = "ACTIVE"
	deactivating = "DEACTIVATING"
	inactive     = "INACTIVE"
	phasingOut   = "PHASING_OUT"
	failed       = "FAILED"
)

var (
	errNotFound = errors.New("not found")
	errNoLeader = errors.New("most of those who decide do not answer")
)

func newState(guid string) *state {
	return &state{
		GUID: guid, Members: map[int]*member{}, Drives: map[string]*drive{}, Users: map[string]*user{},
		Systems: map[string]*system{}, Blocks: map[string][]string{}, Data: 3, Parity: 2,
	}
}

// add makes a member of who has that name, or finds the one that it was before.
func (s *state) add(name, address, version string) *member {
	for _, m := range s.Members {
		if m.Name == name {
			m.Address, m.Version = address, version
			return m
		}
	}
	m := &member{Host: s.Next, Name: name, Address: address, State: active, Version: version}
	s.Members[m.Host] = m
	s.Next++
	return m
}

// elect names who decide: up to so many active members, those who did before first.
func (s *state) elect(most int) {
	if most%2 == 0 {
		most--
	}
	stay := slices.DeleteFunc(slices.Clone(s.Leaders), func(host int) bool {
		m := s.Members[host]
		return m == nil || m.State != active
	})
	for _, host := range s.hosts() {
		if len(stay) < most && s.Members[host].State == active && !slices.Contains(stay, host) {
			stay = append(stay, host)
		}
	}
	if len(stay)%2 == 0 && len(stay) > 1 {
		stay = stay[:len(stay)-1]
	}
	s.Leaders = stay
}

func (s *state) hosts() []int {
	hosts := make([]int, 0, len(s.Members))
	for host := range s.Members {
		hosts = append(hosts, host)
	}
	sort.Ints(hosts)
	return hosts
}

func (s *state) drivesOf(host int) []*drive {
	var found []*drive
	for _, uuid := range s.uuids() {
		if s.Drives[uuid].Host == host {
			found = append(found, s.Drives[uuid])
		}
	}
	return found
}

func (s *state) uuids() []string {
	uuids := make([]string, 0, len(s.Drives))
	for uuid := range s.Drives {
		uuids = append(uuids, uuid)
	}
	sort.Strings(uuids)
	return uuids
}

// copies tells on how many drives each block is to be.
func (s *state) copies() int { return s.Parity + 1 }

// places are drives for a block: on members of their own, those that hold it already first, then the least used.
func (s *state) places(key string, alive func(int) bool) []string {
	used := map[string]int{}
	for _, on := range s.Blocks {
		for _, uuid := range on {
			used[uuid]++
		}
	}
	good := func(uuid string) bool {
		d := s.Drives[uuid]
		return d != nil && d.Status == active && s.Members[d.Host] != nil && s.Members[d.Host].State == active && alive(d.Host)
	}
	candidates := slices.DeleteFunc(s.uuids(), func(uuid string) bool { return !good(uuid) })
	held := s.Blocks[key]
	sort.SliceStable(candidates, func(i, j int) bool {
		a, b := slices.Contains(held, candidates[i]), slices.Contains(held, candidates[j])
		if a != b {
			return a
		}
		return used[candidates[i]] < used[candidates[j]]
	})
	var chosen []string
	hosts := map[int]bool{}
	for _, uuid := range candidates {
		if host := s.Drives[uuid].Host; !hosts[host] && len(chosen) < s.copies() {
			hosts[host] = true
			chosen = append(chosen, uuid)
		}
	}
	return chosen
}

func (s *state) setPassword(name, role, password, salt string) {
	s.Users[name] = &user{Role: role, Salt: salt, Hash: hashed(salt, password)}
}

// admits tells whether somebody may give orders; before there are users, everybody may.
func (s *state) admits(name, password string) bool {
	if s == nil || len(s.Users) == 0 {
		return true
	}
	u := s.Users[name]
	return u != nil && u.Hash == hashed(u.Salt, password)
}

func hashed(salt, password string) string {
	sum := sha256.Sum256([]byte(salt + "\x00" + password))
	return hex.EncodeToString(sum[:])
}

// member is found by 7 or HostId<7>.
func (s *state) member(text string) (*member, error) {
	var host int
	text = strings.TrimSuffix(strings.TrimPrefix(text, "HostId<"), ">")
	if _, err := fmt.Sscanf(text, "%d", &host); err != nil || s.Members[host] == nil {
		return nil, fmt.Errorf("Host HostId<%s> %w", text, errNotFound)
	}
	return s.Members[host], nil
}
