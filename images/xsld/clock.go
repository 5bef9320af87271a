package main

import (
	"net/http"
	"time"
)

// Two clocks. Whether others are silent is measured in the time that this process has run, of which it notices at each
// beat that it did: one that the machine did not let run has heard nobody, and must not judge them by that. Its own
// rights end by the real time, in which others may have given it up.

// period between two beats. It has a floor, because a busy machine delays a process by tens of milliseconds whatever
// the speed of the clock.
func (m *member) period() time.Duration {
	return max(m.scaled(500*time.Millisecond), 150*time.Millisecond)
}

// patience is after how much silence a member is given up.
func (m *member) patience() time.Duration { return max(m.silence, 3*m.period()) }

// lease is how long a member acts on what the others answered: it ends before they lose patience.
func (m *member) lease() time.Duration { return m.patience() / 2 }

// tickLocked moves the clock of the time that this process has run, and tells whether it slept for so long that others
// may have gone on without it.
func (m *member) tickLocked() (slept bool) {
	now := time.Now()
	passed := now.Sub(m.ticked)
	slept = m.sleptLocked()
	m.awake += min(passed, 2*m.period())
	m.ticked, m.doubts = now, slept
	if slept {
		m.say("did not run for %v", passed.Round(time.Millisecond))
	}
	return slept
}

func (m *member) sleptLocked() bool { return m.doubts || time.Since(m.ticked) > m.lease() }

var errAsleep = &refusal{http.StatusServiceUnavailable, "this member did not run for a while, and asks the others first"}
