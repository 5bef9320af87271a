package main

import (
	"sync"
	"time"
)

// peer is what this member has seen of another.
type peer struct {
	seen   time.Time // when it last answered
	last   beat
	asking bool
}

// beat is what two members tell each other, in the question and in the answer.
type beat struct {
	From        string `json:"from"`
	GroupID     string `json:"groupId"`
	Term        int    `json:"term"`
	Revision    int    `json:"revision"`
	Incarnation string `json:"incarnation"`
	State       string `json:"state"`
	Registered  string `json:"registered"` // the address that it believes to be registered under
	Actual      string `json:"actual"`
	Reached     string `json:"reached,omitempty"` // where the sender's records say that the receiver is
	Epoch       int    `json:"epoch"`
	Version     int    `json:"version"`
}

// period between two beats, and the time after which a silent member counts as dead. Both have a floor, because a busy
// machine delays a process by tens of milliseconds whatever the speed of the clock.
func (m *member) period() time.Duration {
	return max(m.scaled(500*time.Millisecond), 150*time.Millisecond)
}

func (m *member) patience() time.Duration { return 3 * m.period() }

func (m *member) beatLocked() beat {
	return beat{From: m.name, GroupID: m.db.ID, Term: m.db.Term, Revision: m.db.Revision, Incarnation: m.incarnation,
		State: m.state, Registered: m.identity.Address, Actual: m.address,
		Epoch: m.placement.Epoch, Version: m.placement.Version}
}

// onBeat answers, and at the primary mends the record of a member whose own record is right.
func (m *member) onBeat(from beat) (beat, error) {
	m.mu.Lock()
	own := m.beatLocked()
	listed := m.db.member(from.From)
	known := m.db.Primary == m.name && from.GroupID == m.db.ID && listed != nil
	moved := known && from.Registered == from.Actual && listed.Address != from.Actual
	// Its join was cut short after it was listed; as it is here, it is a member.
	joined := known && listed.Phase == joining && (m.lock == nil || time.Now().After(m.lock.until))
	// The sender was told by recoverXSLD.sh, which is right where this member's own record is not.
	recovered := from.GroupID == m.db.ID && from.Reached == m.address && m.identity.Address != m.address
	m.mu.Unlock()
	if recovered {
		m.setAddress(func(r record) bool { return r.Name == m.name }, m.address)
	}
	if moved || joined {
		m.say("%s is at %s now", from.From, from.Actual)
		_ = m.commit(func(db *database) error {
			if listed := db.member(from.From); listed != nil && moved {
				listed.Address = from.Actual
			}
			if listed := db.member(from.From); listed != nil && joined {
				listed.Phase = ""
			}
			return nil
		})
	}
	return own, nil
}

func (m *member) beatForever() {
	for {
		m.beatAll(false)
		select {
		case <-m.done:
			return
		case <-m.wake:
		case <-time.After(m.period()):
		}
	}
}

// beatAll asks every listed member; one that does not answer delays no other.
func (m *member) beatAll(wait bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var round sync.WaitGroup
	for _, other := range m.db.Members {
		if other.Name == m.name {
			continue
		}
		known := m.peers[other.Name]
		if known == nil {
			known = &peer{}
			m.peers[other.Name] = known
		}
		if known.asking {
			continue
		}
		known.asking = true
		round.Go(func() { m.beatOne(other, known) })
	}
	if wait {
		m.mu.Unlock()
		round.Wait()
		m.mu.Lock()
	}
}

func (m *member) beatOne(other record, known *peer) {
	m.mu.Lock()
	question := m.beatLocked()
	m.mu.Unlock()
	question.Reached = other.Address
	var said beat
	timeout := max(m.period(), 500*time.Millisecond)
	err := m.call(other.target(), timeout, "beat", question, &said)
	if err != nil && question.Registered == question.Actual && other.Host != other.Address {
		// When all members moved at once, none is where the others look for it; but each knows by its own record where
		// it is itself, and tells it to the host name. That it answers there does not count.
		question.Reached = ""
		_ = m.call(target{other.Host, other.Port}, timeout, "beat", question, &beat{})
	}
	m.mu.Lock()
	known.asking = false
	if err != nil || said.From != other.Name || said.GroupID != m.db.ID {
		m.mu.Unlock()
		return
	}
	before := known.last
	known.seen, known.last = time.Now(), said
	db, placed := m.db, m.placement
	m.mu.Unlock()
	if before.State != said.State || before.Incarnation != said.Incarnation {
		m.nudge()
		m.say("%s is %s", said.From, said.State)
	}
	m.exchange(other.target(), said, db, placed)
}

// exchange brings the two to the same database and placement, whichever is ahead.
func (m *member) exchange(to target, said beat, db *database, placed *placement) {
	timeout := max(m.period(), time.Second)
	var err error
	switch newer := (&database{Term: said.Term, Revision: said.Revision}).newer(db.Term, db.Revision); {
	case newer:
		next := &database{}
		if err = m.call(to, timeout, "database", struct{}{}, next); err == nil {
			err = m.adopt(next)
		}
	case db.newer(said.Term, said.Revision):
		err = m.call(to, timeout, "adopt", db, &struct{}{})
	}
	switch newer := placed.olderThan(said.Epoch, said.Version); {
	case err != nil:
	case newer:
		next := &placement{}
		if err = m.call(to, timeout, "where", struct{}{}, next); err == nil {
			_, err = m.onPlace(*next)
		}
	case placed.newerThan(said.Epoch, said.Version):
		err = m.call(to, timeout, "place", placed, &struct{}{})
	}
	if err != nil {
		m.say("exchange with %s: %v", said.From, err)
	}
}

// liveLocked tells whether a member takes part in the group, as far as this one can see. It sees itself by its record:
// with a wrong one nobody else reaches it.
func (m *member) liveLocked(name string) bool {
	if name == m.name {
		listed := m.db.member(name)
		return listed != nil && listed.Address == m.address && !m.faults.CutPeers
	}
	known := m.peers[name]
	return known != nil && time.Since(known.seen) < m.patience()
}

func (m *member) statusLocked(r record) string {
	if said, ok := m.faults.MemberStatus[r.Name]; ok {
		return said
	}
	if r.Phase != "" {
		return r.Phase
	}
	if !m.liveLocked(r.Name) {
		return offline
	}
	if r.Name == m.name {
		return m.state
	}
	return m.peers[r.Name].last.State
}
