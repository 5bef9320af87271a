package main

import (
	"io"
	"os"
	"sync"
	"syscall"
)

const mostOutput = 16 << 10

// process is one that was started here; a first process reaps whatever ends, so that its end is told by the reaper.
type process struct {
	pid    int
	done   chan struct{} // closed when it has ended
	exit   int           // once it has
	output *tail
}

// tail keeps the last of what is written to it, and hands it on.
type tail struct {
	mu   sync.Mutex
	text []byte
	also io.Writer
}

func (t *tail) Write(part []byte) (int, error) {
	t.mu.Lock()
	t.text = append(t.text, part...)
	if len(t.text) > mostOutput {
		t.text = append([]byte(nil), t.text[len(t.text)-mostOutput:]...)
	}
	t.mu.Unlock()
	if t.also != nil {
		return t.also.Write(part)
	}
	return len(part), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}

// processes knows who was started; `mu` is held from before a start until it is known, so that no end is missed.
type processes struct {
	mu    sync.Mutex
	known map[int]*process
}

func newProcesses() *processes { return &processes{known: map[int]*process{}} }

// start starts a process in a group of its own, with that on its standard input.
func (p *processes) start(args []string, env []string, stdin string, also io.Writer) (*process, error) {
	in, feed, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	out, sink, err := os.Pipe()
	if err != nil {
		feed.Close()
		return nil, err
	}
	defer sink.Close()
	made := &process{done: make(chan struct{}), output: &tail{also: also}}
	p.mu.Lock()
	defer p.mu.Unlock()
	made.pid, err = syscall.ForkExec(args[0], args, &syscall.ProcAttr{
		Env:   env,
		Files: []uintptr{in.Fd(), sink.Fd(), sink.Fd()},
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		feed.Close()
		out.Close()
		return nil, &os.PathError{Op: "start", Path: args[0], Err: err}
	}
	p.known[made.pid] = made
	go func() {
		_, _ = io.WriteString(feed, stdin)
		feed.Close()
	}()
	go func() {
		_, _ = io.Copy(made.output, out)
		out.Close()
	}()
	return made, nil
}

// reap takes in all who have ended, whoever started them.
func (p *processes) reap() {
	for {
		var status syscall.WaitStatus
		p.mu.Lock()
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		ended := p.known[pid]
		if ended != nil {
			delete(p.known, pid)
			ended.exit = status.ExitStatus()
			if status.Signaled() {
				ended.exit = 128 + int(status.Signal())
			}
			close(ended.done)
		}
		p.mu.Unlock()
		if err == syscall.EINTR {
			continue
		}
		if pid <= 0 || err != nil {
			return
		}
	}
}

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// signal reaches the process and all that it has started.
func (p *process) signal(which syscall.Signal) {
	if p.running() {
		_ = syscall.Kill(-p.pid, which)
	}
}
