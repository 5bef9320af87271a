package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// faults are the ways in which a member is told to fail. The zero value of each is: works.
type faults struct {
	// Of the admin port.
	Refuse          bool `json:"refuse,omitempty"`          // closes each connection at once
	Hang            bool `json:"hang,omitempty"`            // accepts and never answers
	Status503       bool `json:"status503,omitempty"`       // answers 503 to everything
	AdminDelayMs    int  `json:"adminDelayMs,omitempty"`    // answers that late
	Unauthorized    bool `json:"unauthorized,omitempty"`    // answers 401 to everybody
	Conflict        int  `json:"conflict,omitempty"`        // refuses the next N changes with 409
	DropReply       int  `json:"dropReply,omitempty"`       // carries the next N POSTs out and cuts the connection
	TransientStatus int  `json:"transientStatus,omitempty"` // the next N reads of a task's status fail

	// Of tasks.
	StuckAt     *taskFault `json:"stuckAt,omitempty"`     // stops there until the fault is gone or the task cancelled
	FailAt      *taskFault `json:"failAt,omitempty"`      // fails there
	DieAt       *taskFault `json:"dieAt,omitempty"`       // the process exits there with 137
	FailNext    int        `json:"failNext,omitempty"`    // the next N tasks fail at once
	ForgetTasks bool       `json:"forgetTasks,omitempty"` // drops the history, once
	ZombieTasks bool       `json:"zombieTasks,omitempty"` // what ran before a restart stays listed as running

	// Of the group.
	CutPeers       bool              `json:"cutPeers,omitempty"`       // no traffic with other members
	MemberStatus   map[string]string `json:"memberStatus,omitempty"`   // what this member says of others
	GridError      []string          `json:"gridError,omitempty"`      // puts grids into Error, once
	GridErrorStays []string          `json:"gridErrorStays,omitempty"` // they never get out of Error
	LoseGrid       []string          `json:"loseGrid,omitempty"`       // drops grids, once

	// Of the process.
	SlowStart float64 `json:"slowStart,omitempty"` // seconds more at the next start, at speed 1, once
	StopHangs bool    `json:"stopHangs,omitempty"` // a stop waits until cs-default is killed
	Sticky    bool    `json:"sticky,omitempty"`    // all of this holds over restarts
}

// taskFault strikes at a percentage; in JSON also that number alone.
type taskFault struct {
	Percent int    `json:"percent"`
	Command string `json:"command,omitempty"` // a part of the command's name; empty is any
	Times   int    `json:"times,omitempty"`   // so many tasks; 0 is all
}

func (f *taskFault) UnmarshalJSON(text []byte) error {
	if json.Unmarshal(text, &f.Percent) == nil {
		return nil
	}
	type plain taskFault
	return json.Unmarshal(text, (*plain)(f))
}

// strikes tells whether the fault is for this task now, and counts.
func (f *taskFault) strikes(t *task) bool {
	return f != nil && t.Progress == f.Percent && strings.Contains(t.Command, f.Command) && f.Times >= 0
}

func (f *taskFault) spend() {
	if f.Times == 1 {
		f.Times = -1
	} else if f.Times > 1 {
		f.Times--
	}
}

// taskFaults strikes a task at its present progress.
func (m *member) taskFaults(t *task, control *running) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t.Progress == 0 && m.faults.FailNext > 0 {
		m.faults.FailNext--
		return errors.New("failed by a fault")
	}
	if m.faults.DieAt.strikes(t) {
		m.faults.DieAt.spend()
		_ = m.saveTasks()
		_ = m.saveFaults()
		m.say("dies by a fault")
		m.exit(137)
		return errEnding
	}
	if m.faults.FailAt.strikes(t) {
		m.faults.FailAt.spend()
		return fmt.Errorf("failed by a fault at %d %%", t.Progress)
	}
	stuck := m.faults.StuckAt
	if !stuck.strikes(t) {
		return nil
	}
	stuck.spend()
	for m.faults.StuckAt == stuck {
		m.mu.Unlock()
		var err error
		select {
		case <-m.done:
			err = errEnding
		case <-control.cancel:
			err = errCancelled
		case <-time.After(5 * time.Millisecond):
		}
		m.mu.Lock()
		if err != nil {
			return err
		}
	}
	return nil
}

// faulty puts the faults of the admin port before its calls.
func (m *member) faulty(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		f := m.faults
		m.mu.Unlock()
		switch {
		case f.Refuse:
			panic(http.ErrAbortHandler)
		case f.Hang:
			select {
			case <-r.Context().Done():
			case <-m.done:
			}
			panic(http.ErrAbortHandler)
		}
		if f.AdminDelayMs > 0 && !m.pause(time.Duration(f.AdminDelayMs)*time.Millisecond) {
			panic(http.ErrAbortHandler)
		}
		switch {
		case f.Status503:
			answer(w, nil, &refusal{http.StatusServiceUnavailable, "service unavailable"})
		case f.Unauthorized:
			answer(w, nil, &refusal{http.StatusUnauthorized, "user name or password is wrong"})
		case r.Method != http.MethodGet && !strings.HasSuffix(r.URL.Path, "/force") && m.take(func(f *faults) *int { return &f.Conflict }):
			answer(w, nil, &refusal{http.StatusConflict, "parallel task conflict: by a fault"})
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// take uses up one of a counted fault.
func (m *member) take(counter func(*faults) *int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	left := counter(&m.faults)
	if *left <= 0 {
		return false
	}
	*left--
	return true
}

// loadFaults reads those of the environment, else those on the volume. What is not sticky ends with the start that it
// was meant for.
func (m *member) loadFaults() error {
	if _, err := m.store.load("faults.json", &m.faults); err != nil {
		return err
	}
	if !m.faults.Sticky {
		m.faults = faults{SlowStart: m.faults.SlowStart, ZombieTasks: m.faults.ZombieTasks}
	}
	if m.settings.faults != "" {
		return decodeStrictly([]byte(m.settings.faults), &m.faults)
	}
	return nil
}

func (m *member) saveFaults() error { return m.save("faults.json", m.faults) }

// setFaults replaces all, and does at once what is done once.
func (m *member) setFaults(next faults) error {
	broken, lost := next.GridError, next.LoseGrid
	next.GridError, next.LoseGrid = nil, nil
	m.mu.Lock()
	if next.ForgetTasks {
		next.ForgetTasks = false
		m.tasks = nil // what runs goes on, unlisted
		_ = m.saveTasks()
	}
	m.faults = next
	err := m.saveFaults()
	m.mu.Unlock()
	if err == nil && len(broken)+len(lost) > 0 {
		err = m.commit(func(db *database) error {
			for _, name := range broken {
				if g := db.grid(name); g != nil {
					g.Status = failing
				}
			}
			for _, name := range lost {
				db.dropGrid(name)
			}
			return nil
		})
	}
	return err
}
