package main

import (
	"reflect"
	"sync"
	"time"
)

// leadForever is the catalog service: the first live catalog server of the group's list keeps the placement right.
func (m *member) leadForever() {
	for {
		m.lead()
		select {
		case <-m.done:
			return
		case <-m.leadWake:
		case <-time.After(m.period()):
		}
	}
}

// leads tells whether this member is the acting catalog server. One that is about to stop gives way to another; one that
// sees fewer than half of the group may itself be the one that is cut off, and leaves the placement to the others.
func (m *member) leadsLocked() bool {
	if time.Now().Before(m.settled) || !m.liveLocked(m.name) {
		return false
	}
	live := 0
	for _, r := range m.db.Members {
		if m.liveLocked(r.Name) {
			live++
		}
	}
	if 2*live < len(m.db.Members) {
		return false
	}
	second := ""
	for _, r := range m.db.Members {
		if !r.Catalog || !m.liveLocked(r.Name) {
			continue
		}
		if m.stateLocked(r.Name) == online {
			return r.Name == m.name
		}
		if second == "" {
			second = r.Name
		}
	}
	return second == m.name
}

func (m *member) stateLocked(name string) string {
	if name == m.name {
		return m.state
	}
	return m.peers[name].last.State
}

// lead makes one step of the placement and tells everybody.
func (m *member) lead() {
	m.leading.Lock()
	defer m.leading.Unlock()
	m.mu.Lock()
	if !m.leadsLocked() {
		m.mu.Unlock()
		return
	}
	before, db, w := m.placement, m.db, m.worldLocked()
	m.mu.Unlock()
	if len(db.Grids) == 0 && len(before.Grids) == 0 {
		return
	}
	next := cloned(before)
	if before.Leader != m.name {
		next.Epoch++
		next.Leader = m.name
		m.say("acts as catalog server")
	}
	for _, s := range next.arrange(w) {
		question := freeze{Spot: s.at, To: s.to, Epoch: before.Epoch, Version: before.Version}
		if err := m.call(db.member(s.from).target(), 2*time.Second, "frozen", question, &struct{}{}); err == nil {
			next.swapped(s)
		}
	}
	if reflect.DeepEqual(before, next) {
		return
	}
	next.Version++
	m.publish(next, db)
}

func (m *member) worldLocked() world {
	w := world{grids: m.db.Grids}
	for _, r := range m.db.Members {
		if !m.liveLocked(r.Name) {
			continue
		}
		state, run := m.stateLocked(r.Name), m.incarnation
		if r.Name != m.name {
			run = m.peers[r.Name].last.Incarnation
		}
		if state == online || state == stopping {
			w.members = append(w.members, present{r.Name, run, state == online && r.Phase == ""})
		}
	}
	return w
}

// publish installs the placement here and sends it to the others, without waiting for one that does not answer.
func (m *member) publish(next *placement, db *database) {
	if _, err := m.onPlace(*next); err != nil {
		m.say("cannot save the placement: %v", err)
	}
	var all sync.WaitGroup
	for _, r := range db.Members {
		if r.Name != m.name {
			all.Go(func() { _ = m.call(r.target(), m.patience(), "place", next, &struct{}{}) })
		}
	}
	told := make(chan struct{})
	go func() {
		all.Wait()
		close(told)
	}()
	select {
	case <-told:
	case <-time.After(m.period()):
	}
}

// copied is a primary's report that a replica has everything.
type copied struct {
	Spot    spot   `json:"spot"`
	Primary string `json:"primary"`
	Member  string `json:"member"`
	Run     string `json:"run"`
	Async   bool   `json:"async"`
	Since   string `json:"since"`
}

func (m *member) onCopied(reports []copied) (struct{}, error) {
	m.leading.Lock()
	defer m.leading.Unlock()
	m.mu.Lock()
	before, db := m.placement, m.db
	m.mu.Unlock()
	if before.Leader != m.name {
		return struct{}{}, errNotMaster
	}
	next := cloned(before)
	for _, report := range reports {
		part := next.partition(report.Spot)
		if part == nil || part.Primary != report.Primary || next.Runs[report.Member] != report.Run {
			continue
		}
		if r := part.replica(report.Member); r != nil && r.Async == report.Async && r.Since == report.Since {
			r.Current = true
		}
	}
	if !reflect.DeepEqual(before, next) {
		next.Version++
		m.publish(next, db)
		m.nudge()
	}
	return struct{}{}, nil
}

// nudge lets the catalog service look again at once.
func (m *member) nudge() {
	select {
	case m.leadWake <- struct{}{}:
	default:
	}
}
