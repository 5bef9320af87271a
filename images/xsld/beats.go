package main

import (
	"errors"
	"sync"
	"syscall"
	"time"
)

// peer is what this member has seen of another.
type peer struct {
	heard    time.Time     // when the last question that it answered was put
	seen     time.Duration // by the clock of the time that this process has run: when it answered, or was first asked
	answered bool
	refused  bool   // nobody listens where it was last looked for
	over     string // its run that is known to have ended: it said so, or where it answered nobody listens any more
	stirs    bool   // another run than that has asked something
	last     beat
	asking   bool
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
	m.heardLocked(from)
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

// heardLocked notes what a question tells of who asks. That it can ask does not make it one that can be reached.
func (m *member) heardLocked(from beat) {
	known := m.peers[from.From]
	switch {
	case known == nil || from.GroupID != m.db.ID:
	case from.State == ended && from.Incarnation == known.last.Incarnation:
		known.end()
		m.nudge()
	case from.Incarnation != known.over:
		known.stirs = true
	}
}

func (p *peer) end() { p.over, p.stirs = p.last.Incarnation, false }

// farewell tells the others that this run is over, so that none has to wait for it.
func (m *member) farewell() {
	m.mu.Lock()
	m.state = ended
	last, db := m.beatLocked(), m.db
	m.mu.Unlock()
	var all sync.WaitGroup
	for _, r := range db.Members {
		if r.Name != m.name {
			all.Go(func() { _ = m.call(r.target(), time.Second, "beat", last, &beat{}) })
		}
	}
	all.Wait()
}

func (m *member) beatForever() {
	for {
		m.mu.Lock()
		slept := m.tickLocked()
		m.mu.Unlock()
		m.beatAll(slept)
		if slept {
			m.mu.Lock()
			m.doubts = false
			m.mu.Unlock()
		}
		select {
		case <-m.done:
			return
		case <-m.wake:
		case <-time.After(m.period()):
		}
	}
}

// beatAll asks every listed member; one that does not answer delays no other. To wait is to wait for all answers, but
// not for long.
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
			known = &peer{seen: m.awake}
			m.peers[other.Name] = known
		}
		if known.asking {
			continue
		}
		known.asking = true
		round.Go(func() { m.beatOne(other, known) })
	}
	if wait {
		all := make(chan struct{})
		go func() {
			round.Wait()
			close(all)
		}()
		m.mu.Unlock()
		select {
		case <-all:
		case <-time.After(m.lease()):
		}
		m.mu.Lock()
	}
}

func (m *member) beatOne(other record, known *peer) {
	m.mu.Lock()
	question := m.beatLocked()
	m.mu.Unlock()
	question.Reached = other.Address
	var said beat
	timeout, asked := m.patience(), time.Now()
	err := m.call(other.target(), timeout, "beat", question, &said)
	if err != nil && question.Registered == question.Actual && other.Host != other.Address {
		// When all members moved at once, none is where the others look for it; but each knows by its own record where
		// it is itself, and tells it to the host name. That it answers there does not count.
		question.Reached = ""
		_ = m.call(target{other.Host, other.Port}, timeout, "beat", question, &beat{})
	}
	m.mu.Lock()
	known.asking = false
	if errors.Is(err, syscall.ECONNREFUSED) {
		m.refusedLocked(other, known)
	}
	if err != nil || said.From != other.Name || said.GroupID != m.db.ID {
		m.mu.Unlock()
		return
	}
	before := known.last
	known.heard, known.seen, known.answered, known.refused, known.last = asked, m.awake, true, false, said
	if before.Incarnation != "" && before.Incarnation != said.Incarnation {
		known.over = before.Incarnation // a member has one run at a time
	}
	db, placed := m.db, m.placement
	m.mu.Unlock()
	if before.State != said.State || before.Incarnation != said.Incarnation {
		m.nudge()
		m.say("%s is %s", said.From, said.State)
	}
	m.exchange(other.target(), said, db, placed)
}

// refusedLocked: the kernel of its machine answers, and no process listens. Where it was at home, that is its end; else
// it is only not where the records say.
func (m *member) refusedLocked(other record, known *peer) {
	if !known.refused {
		m.say("nobody listens at %s, where %s should be", other.Address, other.Name)
		m.nudge()
	}
	known.refused = true
	if known.answered && other.Address == known.last.Actual && known.over != known.last.Incarnation {
		known.end()
		m.nudge()
	}
}

// exchange brings the two to the same database and placement, whichever is ahead.
func (m *member) exchange(to target, said beat, db *database, placed *placement) {
	timeout := max(m.lease(), time.Second)
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
	return known != nil && known.answered && !known.refused && known.over != known.last.Incarnation &&
		m.awake-known.seen < m.patience()
}

// silentLocked tells whether nothing was heard of a member for so long that another may take its place.
func (m *member) silentLocked(name string) bool {
	known := m.peers[name]
	return known != nil && m.awake-known.seen >= m.patience()
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
