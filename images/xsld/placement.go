package main

import (
	"fmt"
	"time"
)

// placement says which member holds which partition. The acting catalog server alone changes it; members act on it once
// most of the group have it. A later one has a higher version, and one of a later leader a higher epoch. In use, a value
// is never changed.
type placement struct {
	Epoch   int    `json:"epoch"`
	Version int    `json:"version"`
	Leader  string `json:"leader"`
	Serial  int    `json:"serial"` // of the replica that was added last
	// Runs are the incarnations that are counted on: a member that was restarted in between holds nothing. They outlast
	// silence, as who is silent may still hold what it held.
	Runs  map[string]string   `json:"runs"`
	Grids map[string]*laidOut `json:"grids"`
}

type laidOut struct {
	ID         string      `json:"id"`
	Partitions []partition `json:"partitions"`
}

type partition struct {
	Primary  string    `json:"primary"` // empty while nobody can hold it
	Tenure   string    `json:"tenure"`  // tells one time of that member's being the primary from another
	Replicas []replica `json:"replicas"`
	Target   string    `json:"target,omitempty"` // a replica that is to become the primary
	Lost     int       `json:"lost"`             // how often all holders were gone and it came back empty
}

type replica struct {
	Member  string `json:"member"`
	Async   bool   `json:"async"`
	Current bool   `json:"current"` // has a whole copy; if not async, every acknowledged write reaches it
	// Since tells one time of being a replica from another: what was held at an earlier one has been dropped meanwhile,
	// or has missed what was written in between.
	Since string `json:"since"`
}

// since is for a replica that is added now, or a primary that begins.
func (p *placement) since() string {
	p.Serial++
	return fmt.Sprintf("%d.%d", p.Epoch, p.Serial)
}

func (p *partition) replica(name string) *replica {
	for i := range p.Replicas {
		if p.Replicas[i].Member == name {
			return &p.Replicas[i]
		}
	}
	return nil
}

func (p *partition) holds(name string) bool { return p.Primary == name || p.replica(name) != nil }

func (p *placement) newerThan(epoch, version int) bool {
	return p.Epoch > epoch || p.Epoch == epoch && p.Version > version
}

func (p *placement) olderThan(epoch, version int) bool {
	return p.Epoch < epoch || p.Epoch == epoch && p.Version < version
}

// partition is nil when there is no such one.
func (p *placement) partition(at spot) *partition {
	for _, laid := range p.Grids {
		if laid.ID == at.Grid && at.Index < len(laid.Partitions) {
			return &laid.Partitions[at.Index]
		}
	}
	return nil
}

// holder tells whether a member has any part of any grid.
func (p *placement) holder(name string) bool {
	for _, laid := range p.Grids {
		for i := range laid.Partitions {
			if laid.Partitions[i].holds(name) {
				return true
			}
		}
	}
	return false
}

func (m *member) placed() *placement {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.placement
}

// onPlace takes a placement that is newer than the one known.
func (m *member) onPlace(next placement) (struct{}, error) {
	m.mu.Lock()
	var err error
	newer := next.newerThan(m.placement.Epoch, m.placement.Version)
	if newer {
		if next.Epoch > m.reign.epoch {
			m.reign = reign{}
		}
		m.placement = &next
		err = m.save("placement.json", &next)
	}
	m.mu.Unlock()
	if newer {
		m.data.trim(&next)
	}
	return struct{}{}, err
}

// waitUntilEmpty waits until a member that leaves holds nothing any more; from one that is dead nothing can be moved. One
// that is silent may come back with what it holds, and is waited for twice as long as it would take to replace it.
func (m *member) waitUntilEmpty(name string) error {
	return m.waitFor("the partitions of "+name+" could not be moved away", func() bool {
		known := m.peers[name]
		return !m.placement.holder(name) || known != nil &&
			(known.refused || known.over == known.last.Incarnation && known.answered || m.awake-known.seen >= 2*m.patience())
	})
}

// waitUntilPlaced waits until each partition of a grid has a primary.
func (m *member) waitUntilPlaced(name string) error {
	return m.waitFor("the grid could not be placed: is a catalog server alive?", func() bool {
		laid := m.placement.Grids[name]
		if laid == nil {
			return false
		}
		for _, p := range laid.Partitions {
			if p.Primary == "" {
				return false
			}
		}
		return true
	})
}

func (m *member) waitFor(otherwise string, done func() bool) error {
	end := time.Now().Add(max(m.scaled(time.Minute), 3*m.patience()))
	for time.Now().Before(end) {
		m.mu.Lock()
		ok := done()
		m.mu.Unlock()
		if ok {
			return nil
		}
		if !m.pause(10 * time.Millisecond) {
			return errEnding
		}
	}
	return fmt.Errorf("%s", otherwise)
}
