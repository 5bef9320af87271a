package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// ballot orders attempts to change the register: a later round wins, and of one round the higher member.
type ballot struct {
	Round int `json:"round"`
	Host  int `json:"host"`
}

func (b ballot) less(other ballot) bool {
	return b.Round < other.Round || (b.Round == other.Round && b.Host < other.Host)
}

// acceptor is one member's part of the register: what it has promised, and what it took last. It is on disk before it is
// told to anybody.
type acceptor struct {
	mu       sync.Mutex
	Promised ballot `json:"promised"`
	Accepted ballot `json:"accepted"`
	Value    *state `json:"value"`
	save     func(*acceptor) error
}

// promise answers whoever wants to change the register: what was taken last, unless somebody later asked before.
type promise struct {
	OK       bool   `json:"ok"`
	Promised ballot `json:"promised"`
	Accepted ballot `json:"accepted"`
	Value    *state `json:"value"`
}

func (a *acceptor) prepare(b ballot) (promise, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.Promised.less(b) {
		return promise{Promised: a.Promised}, nil
	}
	before := a.Promised
	a.Promised = b
	if err := a.save(a); err != nil {
		a.Promised = before
		return promise{}, err
	}
	return promise{OK: true, Promised: b, Accepted: a.Accepted, Value: copied(a.Value)}, nil
}

func (a *acceptor) accept(b ballot, value *state) (promise, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if b.less(a.Promised) {
		return promise{Promised: a.Promised}, nil
	}
	old := a.Accepted
	promised, was := a.Promised, a.Value
	a.Promised, a.Accepted, a.Value = b, b, copied(value)
	if err := a.save(a); err != nil {
		a.Promised, a.Accepted, a.Value = promised, old, was
		return promise{}, err
	}
	return promise{OK: true, Promised: b}, nil
}

// learn takes a value that most have taken, as it is told to all members.
func (a *acceptor) learn(b ballot, value *state) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.Accepted.less(b) {
		return nil
	}
	if a.Promised.less(b) {
		a.Promised = b
	}
	a.Accepted, a.Value = b, copied(value)
	return a.save(a)
}

func (a *acceptor) last() (*state, ballot) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return copied(a.Value), a.Accepted
}

func copied(s *state) *state {
	if s == nil {
		return nil
	}
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // all of it is plain data
	}
	var made state
	if err := json.Unmarshal(text, &made); err != nil {
		panic(err)
	}
	return &made
}

// peers is how a member reaches the register of another.
type peers interface {
	prepare(m *member, b ballot) (promise, error)
	accept(m *member, b ballot, value *state) (promise, error)
	learn(m *member, b ballot, value *state)
}

// change lets most of those who decide take what `edit` makes of the value that they took last. An edit that fails
// changes nothing, but what was taken by some only may be settled by it.
func change(own *acceptor, host int, round *int, to peers, edit func(*state) error) (*state, error) {
	known, _ := own.last()
	if known == nil {
		return nil, errors.New("this container belongs to no cluster")
	}
	for attempt := range 20 {
		time.Sleep(time.Duration(rand.IntN(1+10*attempt)) * time.Millisecond) // so that two don't overtake each other for ever
		*round++
		b := ballot{*round, host}
		value, most, behind := ask(known, b, to)
		if behind > *round {
			*round = behind
		}
		if value == nil {
			if most {
				continue // somebody was faster
			}
			return nil, errNoLeader
		}
		if fmt.Sprint(value.Leaders) != fmt.Sprint(known.Leaders) {
			known = value // others decide by now
			continue
		}
		deciders := value.Leaders
		if err := edit(value); err != nil {
			return value, err
		}
		if settle(value, deciders, b, to) {
			if fmt.Sprint(value.Leaders) != fmt.Sprint(deciders) && !settle(value, value.Leaders, b, to) {
				return nil, errNoLeader
			}
			for _, m := range value.Members {
				to.learn(m, b, value)
			}
			return value, own.learn(b, value)
		}
	}
	return nil, errNoLeader
}

// ask gets the value that was taken last from most of those who decide. Without one: whether most answered at all.
func ask(known *state, b ballot, to peers) (value *state, most bool, behind int) {
	answered, promised := 0, 0
	var latest ballot
	value = known
	for _, host := range known.Leaders {
		m := known.Members[host]
		if m == nil {
			continue
		}
		got, err := to.prepare(m, b)
		if err != nil {
			continue
		}
		answered++
		if !got.OK {
			behind = max(behind, got.Promised.Round)
			continue
		}
		promised++
		if got.Value != nil && latest.less(got.Accepted) {
			latest, value = got.Accepted, got.Value
		}
	}
	needed := len(known.Leaders)/2 + 1
	if promised < needed {
		return nil, answered >= needed, behind
	}
	return copied(value), true, behind
}

func settle(value *state, deciders []int, b ballot, to peers) bool {
	taken := 0
	for _, host := range deciders {
		if m := value.Members[host]; m != nil {
			if got, err := to.accept(m, b, value); err == nil && got.OK {
				taken++
			}
		}
	}
	return taken >= len(deciders)/2+1
}
