package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"
)

const (
	stale = 60 * time.Second // after which a server that was up counts as down
	stuck = 15 * time.Second // after which a step that waits holds nobody back
	fresh = 10 * time.Second // within which a server that was up is up, so that such a step holds nobody back at all
)

type probe struct {
	me, health, document string
	now                  time.Time
}

func probeFromEnvironment() probe {
	document := os.Getenv("OPENCGA_CONFIGURATION")
	if document == "" {
		document = "/var/lib/automation/config/cluster-config.json"
	}
	return probe{os.Getenv("POD_NAME"), os.Getenv("AGENT_STATUS_FILEPATH"), document, time.Now()}
}

type state struct {
	IsInGoalState     bool
	LastMongoUpTime   int64
	ExpectedToBeUp    bool
	ReplicationStatus *int
}

type step struct {
	Step       string     `json:"step"`
	IsWaitStep bool       `json:"isWaitStep"`
	Started    *time.Time `json:"started"`
	Completed  *time.Time `json:"completed"`
}

type plan struct {
	Completed *time.Time `json:"completed"`
	Moves     []struct {
		Steps []step `json:"steps"`
	} `json:"moves"`
}

type progress struct {
	LastGoalVersionAchieved int64  `json:"lastGoalVersionAchieved"`
	Plans                   []plan `json:"plans"`
}

type told struct {
	Statuses  map[string]state    `json:"statuses"`
	MmsStatus map[string]progress `json:"mmsStatus"`
}

// ready tells whether the pod is, or why not.
func ready(p probe) error {
	text, err := os.ReadFile(p.health)
	if err != nil {
		return err
	}
	var found told
	if err := json.Unmarshal(text, &found); err != nil {
		return fmt.Errorf("%s can't be read: %w", p.health, err)
	}
	text, err = os.ReadFile(p.document)
	if err != nil {
		return err
	}
	var document struct {
		Version int64 `json:"version"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return fmt.Errorf("%s can't be read: %w", p.document, err)
	}
	return judged(p, found, document.Version)
}

func judged(p probe, found told, wanted int64) error {
	state, known := found.Statuses[p.me]
	if !known {
		return fmt.Errorf("the agent tells nothing of %s", p.me)
	}
	at, known := found.MmsStatus[p.me]
	applied := !known || at.LastGoalVersionAchieved == wanted
	if applied {
		return works(state, p.now)
	}
	patience := stuck
	if p.now.Sub(time.Unix(state.LastMongoUpTime, 0)) < fresh {
		patience = 0
	}
	if waiting := waits(at.Plans, p.now, patience); waiting != "" && works(state, p.now) == nil {
		return nil // it serves on, with what it had
	}
	return fmt.Errorf("version %d of the configuration is applied, %d is wanted", at.LastGoalVersionAchieved, wanted)
}

func works(state state, now time.Time) error {
	if !state.ExpectedToBeUp {
		return nil
	}
	if age := now.Sub(time.Unix(state.LastMongoUpTime, 0)); age > stale {
		return fmt.Errorf("the server was last up %s ago", age.Round(time.Second))
	}
	if r := state.ReplicationStatus; r != nil && *r != -1 && *r != 1 && *r != 2 && *r != 7 {
		return errors.New("the server does not serve in its present state")
	}
	return nil
}

// waits names the step at which the last plan waits, for longer than that.
func waits(plans []plan, now time.Time, patience time.Duration) string {
	if len(plans) == 0 {
		return ""
	}
	last := plans[len(plans)-1]
	if last.Completed != nil {
		return ""
	}
	for m := len(last.Moves) - 1; m >= 0; m-- {
		steps := last.Moves[m].Steps
		for s := len(steps) - 1; s >= 0; s-- {
			if steps[s].Started == nil || steps[s].Completed != nil {
				continue
			}
			if steps[s].IsWaitStep && now.Sub(*steps[s].Started) > patience {
				return steps[s].Step
			}
			return ""
		}
	}
	return ""
}
