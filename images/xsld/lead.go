package main

import (
	"cmp"
	"errors"
	"net/http"
	"reflect"
	"sync"
	"time"
)

// leadForever is the catalog service: a catalog server that most members have elected keeps the placement right.
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

// leadsLocked tells whether this member should be the acting catalog server. Who is one stays it; else it is the first
// live one of the group's list. One that is about to stop gives way to another.
func (m *member) leadsLocked() bool {
	if m.state == ended || !m.liveLocked(m.name) || !m.enoughLocked(m.liveLocked) {
		return false
	}
	first, second := "", ""
	for _, r := range m.db.Members {
		if !r.Catalog || !m.liveLocked(r.Name) {
			continue
		}
		serves := m.stateLocked(r.Name) == online
		if serves && r.Name == m.placement.Leader {
			return r.Name == m.name
		}
		if serves && first == "" {
			first = r.Name
		}
		if second == "" {
			second = r.Name
		}
	}
	return cmp.Or(first, second) == m.name
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
	leads := m.leadsLocked()
	if !leads {
		m.reign = reign{} // else it would refuse its vote to the one who should lead
	}
	idle := !leads || len(m.db.Grids) == 0 && len(m.placement.Grids) == 0
	reigns := m.reign.epoch > 0
	m.mu.Unlock()
	if idle {
		return
	}
	if !reigns {
		if !m.stand() {
			return
		}
		m.beatAll(true)
	}
	m.mu.Lock()
	now, db := m.reign, m.db
	if now.epoch == 0 {
		m.mu.Unlock()
		return
	}
	w := m.worldLocked()
	m.mu.Unlock()
	next := cloned(now.base)
	next.Epoch, next.Leader = now.epoch, m.name
	for _, s := range next.arrange(w) {
		question := freeze{Spot: s.at, To: s.to, Epoch: now.base.Epoch, Version: now.base.Version}
		if err := m.call(db.member(s.from).target(), 2*time.Second, "frozen", question, &struct{}{}); err == nil {
			next.swapped(s)
		}
	}
	m.publish(next, db)
}

// worldLocked is what the leader knows of the others. Silence is no evidence: who is silent may hold what it held.
func (m *member) worldLocked() world {
	w := world{grids: m.db.Grids, away: map[string]bool{}}
	for _, r := range m.db.Members {
		state, run, known := m.state, m.incarnation, m.peers[r.Name]
		here := r.Name == m.name && m.liveLocked(m.name)
		if r.Name != m.name && known != nil {
			state, run = known.last.State, known.last.Incarnation
			here = m.liveLocked(r.Name) && known.heard.After(m.reign.since)
		}
		switch {
		case here && (state == online || state == stopping):
			w.members = append(w.members, present{r.Name, run, state == online && r.Phase == ""})
		case known == nil || known.over == "" || known.over != m.reign.base.Runs[r.Name]:
			w.away[r.Name] = m.silentLocked(r.Name)
		}
	}
	return w
}

// publish has most members agree to the placement, if it is another than before. Then it holds: it is installed here and
// sent to the others, without waiting for one that does not answer.
func (m *member) publish(next *placement, db *database) bool {
	m.mu.Lock()
	if reflect.DeepEqual(m.reign.base, next) {
		m.mu.Unlock()
		return false
	}
	m.reign.version++ // what was offered before and came to nothing is outdone
	next.Version = m.reign.version
	m.mu.Unlock()
	if _, err := m.onOffer(*next); err != nil {
		m.say("cannot offer the placement: %v", err)
		return false
	}
	agrees := func(r record) bool {
		err := m.call(r.target(), m.lease(), "offer", next, &struct{}{})
		if refused := (*refusal)(nil); errors.As(err, &refused) && refused.code == http.StatusConflict {
			m.resign(next.Epoch) // it has promised to follow a later leader, and takes none of these offers any more
		}
		return err == nil
	}
	if !m.canvass(db, agrees) {
		m.say("most of the group do not agree to placement %d.%d", next.Epoch, next.Version)
		return false
	}
	m.mu.Lock()
	if m.reign.epoch == next.Epoch {
		m.reign.base = next
	}
	m.mu.Unlock()
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
	return true
}

// resign ends the reign of an epoch; who should still lead asks for votes anew.
func (m *member) resign(epoch int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reign.epoch == epoch {
		m.reign = reign{}
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
	Tenure  string `json:"tenure"`
}

func (m *member) onCopied(reports []copied) (struct{}, error) {
	m.leading.Lock()
	defer m.leading.Unlock()
	m.mu.Lock()
	now, db := m.reign, m.db
	m.mu.Unlock()
	if now.epoch == 0 || now.base.Leader != m.name {
		return struct{}{}, errNotMaster
	}
	next := cloned(now.base)
	for _, report := range reports {
		part := next.partition(report.Spot)
		if part == nil || part.Primary != report.Primary || part.Tenure != report.Tenure || next.Runs[report.Member] != report.Run {
			continue
		}
		if r := part.replica(report.Member); r != nil && r.Async == report.Async && r.Since == report.Since {
			r.Current = true
		}
	}
	if m.publish(next, db) {
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
