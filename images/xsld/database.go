package main

import (
	"crypto/rand"
	"encoding/json"
	"slices"
)

// database is the group's admin state. The primary alone writes it; the others hold copies that they read.
// A value is never changed once it is in use: a write makes a new one.
type database struct {
	ID        string            `json:"id"` // of the group; a member whose volume was wiped comes back with another
	Group     string            `json:"group"`
	Term      int               `json:"term"` // rises with each failover
	Revision  int               `json:"revision"`
	Primary   string            `json:"primary"`
	Capacity  int               `json:"capacity"`
	Password  string            `json:"password"` // digest of the administrator's
	Members   []record          `json:"members"`
	Grids     []grid            `json:"grids"`
	Templates []template        `json:"templates"`
	Settings  map[string]string `json:"settings,omitempty"`
}

// record is one member as the group knows it. Others reach it at its address here, right or wrong.
type record struct {
	Name    string `json:"name"`
	Alias   string `json:"alias"`
	Host    string `json:"host"`
	Address string `json:"address"`
	Port    int    `json:"port"`
	// Capacity in GB.
	Capacity int    `json:"capacity"`
	Catalog  bool   `json:"catalog"`
	Derby    string `json:"derby"` // master, slave or none
	Phase    string `json:"phase"` // Joining, Leaving or nothing
}

const (
	master, slave, none = "master", "slave", "none"
	joining, leaving    = "Joining", "Leaving"
)

func (d *database) member(name string) *record {
	for i := range d.Members {
		if d.Members[i].Name == name {
			return &d.Members[i]
		}
	}
	return nil
}

func (d *database) grid(name string) *grid {
	for i := range d.Grids {
		if d.Grids[i].Name == name {
			return &d.Grids[i]
		}
	}
	return nil
}

func (d *database) template(name string) *template {
	for i := range d.Templates {
		if d.Templates[i].Name == name {
			return &d.Templates[i]
		}
	}
	return nil
}

func (d *database) dropMember(name string) {
	d.Members = slices.DeleteFunc(d.Members, func(r record) bool { return r.Name == name })
}

func (d *database) dropGrid(name string) {
	d.Grids = slices.DeleteFunc(d.Grids, func(g grid) bool { return g.Name == name })
}

// pair sets the roles of replication; empty names end it.
func (d *database) pair(of, to string) {
	for i := range d.Members {
		switch d.Members[i].Derby = none; d.Members[i].Name {
		case of:
			d.Members[i].Derby = master
		case to:
			d.Members[i].Derby = slave
		}
	}
}

// newer tells whether a copy is ahead of another; a term outweighs all writes of an earlier one.
func (d *database) newer(term, revision int) bool {
	return d.Term > term || d.Term == term && d.Revision > revision
}

func (d *database) clone() *database { return cloned(d) }

func cloned[T any](value *T) *T {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	copied := new(T)
	if err := json.Unmarshal(text, copied); err != nil {
		panic(err)
	}
	return copied
}

func newID() string { return rand.Text()[:12] }
