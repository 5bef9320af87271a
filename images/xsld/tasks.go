package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// States of a task.
const (
	pending   = "Pending"
	runs      = "Running"
	success   = "Success"
	failed    = "Failed"
	cancelled = "Cancelled"
)

// task is one long action. Its number counts on the member that runs it; the history stays on the volume.
type task struct {
	ID          int               `json:"taskId"`
	Command     string            `json:"command"`
	Description string            `json:"description"`
	Parameters  map[string]string `json:"parameters"`
	Status      string            `json:"status"`
	Progress    int               `json:"progress"`
	Message     string            `json:"message"`
	StartTime   int64             `json:"startTime"` // milliseconds since the epoch
	EndTime     int64             `json:"endTime"`   // 0 while it runs
}

func (t *task) over() bool { return t.Status != pending && t.Status != runs }

// plan is what a task does: steps, each when its progress comes to a percentage.
type plan struct {
	length time.Duration
	steps  []step
	undo   func() // after a failure or a cancellation
	end    func() // always
}

type step struct {
	at int
	do func() error
}

// running is a task's part that lives as long as the process.
type running struct{ cancel chan struct{} }

var errCancelled = errors.New("cancelled")

// lock is the group's right to run one task, as the primary gives it to a joining member. It ends when that member is
// silent for a while.
type lock struct {
	member  string
	command string
	until   time.Time
}

// busyLocked says which task is in the way of another.
func (m *member) busyLocked() error {
	for _, t := range m.tasks {
		if !t.over() {
			return &refusal{http.StatusConflict, fmt.Sprintf("parallel task conflict: task %d (%s) is running", t.ID, t.Command)}
		}
	}
	if m.lock != nil && time.Now().Before(m.lock.until) {
		return &refusal{http.StatusConflict, fmt.Sprintf("parallel task conflict: %s of %s is running", m.lock.command, m.lock.member)}
	}
	return nil
}

// submit makes a task and runs it in the background; only one at a time.
func (m *member) submit(command, description string, parameters map[string]string, p plan) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.busyLocked(); err != nil {
		return 0, err
	}
	t := &task{ID: m.nextTask, Command: command, Description: description, Parameters: masked(parameters),
		Status: pending, StartTime: time.Now().UnixMilli()}
	m.nextTask++
	m.tasks = append(m.tasks, t)
	if err := m.saveTasks(); err != nil {
		return 0, err
	}
	control := &running{cancel: make(chan struct{})}
	m.running[t.ID] = control
	m.say("task %d %s %s", t.ID, command, pending)
	go m.run(t, p, control)
	return t.ID, nil
}

func (m *member) run(t *task, p plan, control *running) {
	err := m.advance(t, p, control)
	if errors.Is(err, errEnding) {
		return // the process ends; what became of the task is judged at the next start
	}
	if err != nil && p.undo != nil {
		p.undo()
	}
	if p.end != nil {
		p.end()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.running, t.ID)
	switch {
	case err == nil:
		t.Status, t.Message = success, "done"
	case errors.Is(err, errCancelled):
		t.Status, t.Message = cancelled, "cancelled by force"
	default:
		t.Status, t.Message = failed, err.Error()
	}
	t.EndTime = time.Now().UnixMilli()
	m.say("task %d %s %s: %s", t.ID, t.Command, t.Status, t.Message)
	if err := m.saveTasks(); err != nil {
		m.say("cannot save tasks: %v", err)
	}
}

var errEnding = errors.New("the member ends")

func (m *member) advance(t *task, p plan, control *running) error {
	slices.SortStableFunc(p.steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	begin, next := time.Now(), 0
	var stood time.Duration // time spent at a fault does not count
	for percent := 0; ; percent++ {
		m.mu.Lock()
		t.Status, t.Progress = runs, percent
		m.mu.Unlock()
		since := time.Now()
		if err := m.taskFaults(t, control); err != nil {
			return err
		}
		stood += time.Since(since)
		for ; next < len(p.steps) && p.steps[next].at <= percent; next++ {
			if err := p.steps[next].do(); err != nil {
				return err
			}
		}
		if percent == 100 {
			return nil
		}
		due := begin.Add(stood + p.length*time.Duration(percent+1)/100)
		select {
		case <-m.done:
			return errEnding
		case <-control.cancel:
			return errCancelled
		case <-time.After(time.Until(due)):
		}
	}
}

// cancelTask ends a task at once. One that is only left over from before a restart has nothing that runs.
func (m *member) cancelTask(id int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.taskLocked(id)
	if t == nil {
		return errNoTask
	}
	if t.over() {
		return nil
	}
	if control := m.running[id]; control != nil {
		select {
		case <-control.cancel:
		default:
			close(control.cancel)
		}
		return nil
	}
	t.Status, t.Message, t.EndTime = cancelled, "cancelled by force", time.Now().UnixMilli()
	if m.db.Primary == m.name {
		if err := m.install(tidied(m.db)); err != nil {
			return err
		}
	}
	return m.saveTasks()
}

var errNoTask = &refusal{http.StatusNotFound, "there is no such task"}

func (m *member) taskLocked(id int) *task {
	for _, t := range m.tasks {
		if t.ID == id {
			return t
		}
	}
	return nil
}

// history is the file of all tasks.
type history struct {
	Next  int     `json:"next"`
	Tasks []*task `json:"tasks"`
}

func (m *member) saveTasks() error { return m.save("tasks.json", history{m.nextTask, m.tasks}) }

// loadTasks reads the history. A task that ran when the process ended has failed, unless a fault leaves it listed as
// running until it is cancelled by force.
func (m *member) loadTasks() error {
	past := history{Next: 1}
	if _, err := m.store.load("tasks.json", &past); err != nil {
		return err
	}
	m.nextTask, m.tasks = past.Next, past.Tasks
	if m.faults.ZombieTasks {
		return nil
	}
	for _, t := range m.tasks {
		if !t.over() {
			t.Status, t.Message, t.EndTime = failed, "the server stopped while the task ran", time.Now().UnixMilli()
		}
	}
	if m.db.Primary == m.name {
		m.db = tidied(m.db)
	}
	return errors.Join(m.saveTasks(), m.save("database.json", m.db))
}

// tidied is the database without what a task that was cut short left half done.
func tidied(db *database) *database {
	next := db.clone()
	next.Revision++
	for i := range next.Members {
		if next.Members[i].Phase == leaving {
			next.Members[i].Phase = ""
		}
	}
	for i := range next.Grids {
		if next.Grids[i].Status == created {
			next.Grids[i].Status = online
		}
	}
	return next
}

// masked is the parameters without the secret key.
func masked(parameters map[string]string) map[string]string {
	shown := map[string]string{}
	for name, value := range parameters {
		if secretNames[name] {
			value = mask
		}
		shown[name] = value
	}
	return shown
}
