package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// lossy is a number of registers that reach each other only sometimes: what is asked may be lost, and so may the answer.
type lossy struct {
	t         *testing.T
	random    *rand.Rand
	acceptors map[int]*acceptor
	loses     float64
}

var errLost = errors.New("lost")

func (l *lossy) lost() bool { return l.random.Float64() < l.loses }

func (l *lossy) prepare(m *member, b ballot) (promise, error) {
	if l.lost() {
		return promise{}, errLost
	}
	got, err := l.acceptors[m.Host].prepare(b)
	if l.lost() {
		return promise{}, errLost
	}
	return got, err
}

func (l *lossy) accept(m *member, b ballot, value *state) (promise, error) {
	if l.lost() {
		return promise{}, errLost
	}
	got, err := l.acceptors[m.Host].accept(b, value)
	if l.lost() {
		return promise{}, errLost
	}
	return got, err
}

func (l *lossy) learn(m *member, b ballot, value *state) {
	if !l.lost() {
		ok(l.t, l.acceptors[m.Host].learn(b, value))
	}
}

// TestNothingThatWasTakenIsLost: whatever is lost on the way, each change that was said to be made is in the register, once
// and behind those that were said before it.
func TestNothingThatWasTakenIsLost(t *testing.T) {
	all := 0
	for seed := range uint64(30) {
		l := &lossy{t: t, random: rand.New(rand.NewPCG(seed, 1)), acceptors: map[int]*acceptor{}, loses: 0.2}
		first := newState("g")
		for host := range 5 {
			first.add(fmt.Sprint("m", host), "", "")
			l.acceptors[host] = &acceptor{save: func(*acceptor) error { return nil }}
		}
		first.elect(5)
		for _, a := range l.acceptors {
			ok(t, a.learn(ballot{1, 0}, first))
		}
		rounds, taken := make([]int, 5), []string{}
		for n := range 20 {
			host, name := l.random.IntN(5), fmt.Sprint("g", n)
			_, err := change(l.acceptors[host], host, &rounds[host], l, func(s *state) error {
				if !slices.Contains(s.Groups, name) {
					s.Groups = append(s.Groups, name)
				}
				return nil
			})
			if err == nil {
				taken = append(taken, name)
			}
		}
		l.loses = 0
		value, err := change(l.acceptors[0], 0, &rounds[0], l, func(*state) error { return nil })
		ok(t, err)
		at := -1
		for _, name := range taken {
			now := slices.Index(value.Groups, name)
			if now <= at {
				t.Fatalf("seed %d: %s was taken, and the register has %v", seed, name, value.Groups)
			}
			at = now
		}
		all += len(taken)
	}
	if all < 300 {
		t.Fatalf("only %d of 600 changes were taken", all)
	}
}

// TestWhatWasPromisedHolds: after a promise nothing earlier is taken.
func TestWhatWasPromisedHolds(t *testing.T) {
	a := &acceptor{save: func(*acceptor) error { return nil }}
	if got, _ := a.prepare(ballot{2, 1}); !got.OK {
		t.Fatal(got)
	}
	if got, _ := a.prepare(ballot{2, 0}); got.OK || got.Promised != (ballot{2, 1}) {
		t.Fatal(got)
	}
	if got, _ := a.accept(ballot{1, 9}, newState("g")); got.OK {
		t.Fatal(got)
	}
	if got, _ := a.accept(ballot{2, 1}, newState("g")); !got.OK {
		t.Fatal(got)
	}
}

// TestWhatIsNotOnDiskWasNotSaid: a member that can't write promises and takes nothing.
func TestWhatIsNotOnDiskWasNotSaid(t *testing.T) {
	full := errors.New("the disk is full")
	a := &acceptor{save: func(*acceptor) error { return full }}
	if _, err := a.prepare(ballot{1, 0}); !errors.Is(err, full) || a.Promised != (ballot{}) {
		t.Fatal(a.Promised, err)
	}
	if _, err := a.accept(ballot{1, 0}, newState("g")); !errors.Is(err, full) || a.Value != nil {
		t.Fatal(a.Value, err)
	}
}
