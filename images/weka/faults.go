package main

import (
	"errors"
	"strings"
	"time"
)

// faults are the ways in which a container is told to fail, while it runs. The zero value of each is: works. What names
// commands names how their words begin, such as "cluster create".
type faults struct {
	Refuse     string `json:"refuse,omitempty"`     // commands that are refused
	Hang       string `json:"hang,omitempty"`       // commands that get no answer
	Lost       string `json:"lost,omitempty"`       // commands that are carried out, and whose answer is lost
	BadJSON    string `json:"badJson,omitempty"`    // commands that answer half of a text
	NotFound   string `json:"notFound,omitempty"`   // commands that find nothing
	SlowMs     int    `json:"slowMs,omitempty"`     // each command takes so much longer
	StuckLeave bool   `json:"stuckLeave,omitempty"` // nothing is moved away from who is deactivated
	StuckStop  bool   `json:"stuckStop,omitempty"`  // a graceful stop never ends
	Version    string `json:"version,omitempty"`    // it calls itself so
	LostDrive  string `json:"lostDrive,omitempty"`  // a drive that does not read or write, by its serial
	CutPeers   bool   `json:"cutPeers,omitempty"`   // no traffic with other members
	Sticky     bool   `json:"sticky,omitempty"`     // all of this holds over restarts
}

var errRefused = errors.New("refused by a fault")

func strikes(begins, words string) bool { return begins != "" && strings.HasPrefix(words, begins) }

// before a command: what a fault makes of it.
func (f faults) before(words string, done <-chan struct{}) error {
	if f.SlowMs > 0 {
		pause(time.Duration(f.SlowMs)*time.Millisecond, done)
	}
	if strikes(f.Hang, words) {
		<-done
	}
	if strikes(f.Refuse, words) {
		return errRefused
	}
	if strikes(f.NotFound, words) {
		return errNotFound
	}
	return nil
}

func pause(d time.Duration, done <-chan struct{}) {
	select {
	case <-time.After(d):
	case <-done:
	}
}
