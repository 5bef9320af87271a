package main

import (
	"net/http"
	"sync"
	"time"
)

// Who leads, and that the group agrees on where data is. A leader is elected by most members for an epoch that none of
// them has seen before; each lets go of earlier leaders with its vote. What the leader wants is offered to all, and holds
// once most have it on their volumes: so the next leader, who asks most of them, finds it.

const oathFile = "oath.json"

// oath is what a member has promised, and keeps over restarts.
type oath struct {
	Epoch    int        `json:"epoch"`              // it takes no offers of earlier leaders
	Accepted *placement `json:"accepted,omitempty"` // the newest offer
}

// reign is a leader's own time; the zero value is that of one who does not lead.
type reign struct {
	epoch   int
	version int       // of its last offer
	since   time.Time // only who answered later is judged: what was known of runs before may be older than the placement
	base    *placement
}

// enoughLocked tells whether some members are most of the group; or exactly half, and the other half are known to have
// ended, so that they can't be the other part of a group that was torn. Who has not finished its join has no say.
func (m *member) enoughLocked(counts func(name string) bool) bool {
	all, yes, over := 0, 0, 0
	for _, r := range m.db.Members {
		if r.Phase == joining {
			continue
		}
		all++
		if counts(r.Name) {
			yes++
		} else if known := m.peers[r.Name]; known != nil && known.answered && known.over == known.last.Incarnation && !known.stirs {
			over++
		}
	}
	return 2*yes > all || 2*yes == all && yes+over == all
}

// holdsLocked tells whether this member may act for the group: most have answered it a short while ago. Without that,
// others may have replaced it, and it takes no requests.
func (m *member) holdsLocked() bool {
	return m.state != ended && m.liveLocked(m.name) && m.enoughLocked(func(name string) bool {
		known := m.peers[name]
		return name == m.name || known != nil && m.liveLocked(name) && time.Since(known.heard) < m.lease()
	})
}

// ballot is a candidate's question for a vote.
type ballot struct {
	GroupID   string `json:"groupId"`
	Epoch     int    `json:"epoch"`
	Candidate string `json:"candidate"`
}

// vote is the answer, with the newest placement that the voter knows.
type vote struct {
	Granted bool       `json:"granted"`
	Epoch   int        `json:"epoch"` // that it has promised
	Newest  *placement `json:"newest"`
}

func (m *member) onVote(b ballot) (vote, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b.GroupID != m.db.ID {
		return vote{}, &refusal{http.StatusConflict, m.name + " is of another group"}
	}
	newest := m.placement
	if offer := m.oath.Accepted; offer != nil && offer.newerThan(newest.Epoch, newest.Version) {
		newest = offer
	}
	promised := max(m.oath.Epoch, newest.Epoch)
	if b.Epoch <= promised || b.Candidate != m.name && m.reign.epoch > 0 && m.state == online && m.holdsLocked() {
		return vote{false, promised, newest}, nil
	}
	next := oath{b.Epoch, m.oath.Accepted}
	if err := m.save(oathFile, next); err != nil {
		return vote{}, err
	}
	m.oath, m.reign = next, reign{}
	return vote{true, b.Epoch, newest}, nil
}

// stand asks for votes, and tells whether this member leads now.
func (m *member) stand() bool {
	m.mu.Lock()
	highest := max(m.oath.Epoch, m.placement.Epoch, m.highest)
	for _, known := range m.peers {
		highest = max(highest, known.last.Epoch)
	}
	b, db := ballot{m.db.ID, highest + 1, m.name}, m.db
	m.mu.Unlock()
	own, err := m.onVote(b)
	if err != nil || !own.Granted {
		return false
	}
	var mu sync.Mutex
	best := own.Newest
	won := m.canvass(db, func(r record) bool {
		var said vote
		if err := m.call(r.target(), m.lease(), "vote", b, &said); err != nil {
			return false
		}
		m.mu.Lock()
		m.highest = max(m.highest, said.Epoch)
		m.mu.Unlock()
		mu.Lock()
		defer mu.Unlock()
		if said.Granted && said.Newest != nil && said.Newest.newerThan(best.Epoch, best.Version) {
			best = said.Newest
		}
		return said.Granted
	})
	mu.Lock()
	defer mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	if !won || m.oath.Epoch != b.Epoch || m.db.ID != b.GroupID {
		return false
	}
	m.reign = reign{epoch: b.Epoch, version: best.Version, since: time.Now(), base: best}
	m.say("leads the group in epoch %d", b.Epoch)
	return true
}

// canvass puts a question to all others at once, until enough of them agree or all have answered.
func (m *member) canvass(db *database, agrees func(record) bool) bool {
	answers, open := make(chan string, len(db.Members)), 0
	for _, r := range db.Members {
		if r.Name == m.name {
			continue
		}
		open++
		go func() {
			if !agrees(r) {
				r.Name = ""
			}
			answers <- r.Name
		}()
	}
	agreed := map[string]bool{m.name: true}
	for {
		m.mu.Lock()
		enough := m.enoughLocked(func(name string) bool { return agreed[name] })
		m.mu.Unlock()
		if enough || open == 0 {
			return enough
		}
		select {
		case <-m.done:
			return false
		case name := <-answers:
			open--
			agreed[name] = true
		}
	}
}

// onOffer takes what a leader wants to hold, unless a later one was promised to be followed.
func (m *member) onOffer(next placement) (struct{}, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if next.Epoch < m.oath.Epoch || m.placement.newerThan(next.Epoch, next.Version) {
		return struct{}{}, &refusal{http.StatusConflict, "another leads since"}
	}
	if offer := m.oath.Accepted; offer != nil && !offer.olderThan(next.Epoch, next.Version) {
		return struct{}{}, nil // it was overtaken by a later one of the same leader
	}
	sworn := oath{next.Epoch, &next}
	if err := m.save(oathFile, sworn); err != nil {
		return struct{}{}, err
	}
	m.oath = sworn
	return struct{}{}, nil
}
