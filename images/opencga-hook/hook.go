package main

import (
	"bufio"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const mostRequest = 1 << 20

// settings are what the operator puts into the container's environment.
type settings struct {
	socket, home, conf, laid, ping string
	trusted                        string        // the image's file with whom its programs trust
	startup                        time.Duration // how long a server that has never answered counts as alive
	linger                         time.Duration // how long a server serves on once its pod is to end
}

func settingsFromEnvironment() settings {
	return settings{
		socket:  os.Getenv("OPENCGA_HOOK"),
		home:    strings.TrimSuffix(os.Getenv("OPENCGA_HOME"), "/"),
		conf:    os.Getenv("OPENCGA_CONF"),
		laid:    filepath.Join(os.TempDir(), "opencga"),
		ping:    os.Getenv("OPENCGA_PING"),
		trusted: authorities,
		startup: seconds("OPENCGA_STARTUP_SECONDS", 900),
		linger:  seconds("OPENCGA_LINGER_SECONDS", 0),
	}
}

func seconds(variable string, otherwise int) time.Duration {
	given, err := strconv.Atoi(os.Getenv(variable))
	if err != nil || given < 0 {
		given = otherwise
	}
	return time.Duration(given) * time.Second
}

// request is what an agent or a probe asks, one on a connection.
type request struct {
	Do      string   `json:"do"`
	ID      string   `json:"id"`
	Args    []string `json:"args"`
	Stdin   string   `json:"stdin"`
	Seconds float64  `json:"seconds"`
}

type command struct {
	ID      string `json:"id"`
	Running bool   `json:"running"`
	Exit    int    `json:"exit"`
	Output  string `json:"output"`
}

type answer struct {
	Error   string            `json:"error,omitempty"`
	Running bool              `json:"running"`
	Boot    string            `json:"boot,omitempty"`
	Command *command          `json:"command,omitempty"`
	Files   map[string]string `json:"files,omitempty"`
	Exit    int               `json:"exit"`
	Output  string            `json:"output,omitempty"`
	Well    bool              `json:"well"`
}

// hook is the first process: the parent of the server, and of one command at a time.
type hook struct {
	settings
	boot      string
	processes *processes

	mu       sync.Mutex
	ending   bool
	server   *process
	since    time.Time
	answered bool // the server has answered its ping since it was started
	command  *process
	id       string
}

func newHook(s settings) *hook {
	boot := make([]byte, 8)
	_, _ = rand.Read(boot)
	return &hook{settings: s, boot: hex.EncodeToString(boot), processes: newProcesses()}
}

// first runs until the container is to end, and what it has started has ended.
func first(s settings) error {
	if err := laid(s.home, s.conf, s.laid); err != nil {
		return err
	}
	h := newHook(s)
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, syscall.SIGTERM, syscall.SIGINT)
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	go func() {
		for range children {
			h.processes.reap()
		}
	}()
	if err := os.Remove(s.socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", s.socket)
	if err != nil {
		return err
	}
	defer listener.Close()
	if err := os.Chmod(s.socket, 0o660); err != nil {
		return err
	}
	go h.serve(listener)
	<-ends
	h.lingers()
	for _, each := range h.end() {
		<-each.done
	}
	return nil
}

// lingers lets the server serve on until Services, which learn of a pod's end as late as its containers do, send it no
// more queries. Nothing is begun meanwhile.
func (h *hook) lingers() {
	h.mu.Lock()
	h.ending = true
	server := h.server
	h.mu.Unlock()
	if server == nil {
		return
	}
	select {
	case <-server.done:
	case <-time.After(h.linger):
	}
}

// end has the server end in order; a command at the catalog gets the time that the kubelet leaves it.
func (h *hook) end() []*process {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ending = true
	var left []*process
	if h.server != nil && h.server.running() {
		h.server.signal(syscall.SIGTERM)
		left = append(left, h.server)
	}
	if h.command != nil && h.command.running() {
		left = append(left, h.command)
	}
	return left
}

func (h *hook) serve(listener net.Listener) {
	for {
		line, err := listener.Accept()
		if err != nil {
			return
		}
		go h.converse(line)
	}
}

func (h *hook) converse(line net.Conn) {
	defer line.Close()
	_ = line.SetReadDeadline(time.Now().Add(10 * time.Second))
	text, err := bufio.NewReaderSize(&limited{line, mostRequest}, 64<<10).ReadBytes('\n')
	if err != nil {
		return
	}
	var asked request
	told := answer{Error: "the request is no JSON"}
	if json.Unmarshal(text, &asked) == nil {
		told = h.do(asked)
	}
	reply, err := json.Marshal(told)
	if err != nil {
		return
	}
	_, _ = line.Write(append(reply, '\n'))
}

type limited struct {
	from net.Conn
	left int
}

func (l *limited) Read(into []byte) (int, error) {
	if l.left <= 0 {
		return 0, errors.New("a request without end")
	}
	n, err := l.from.Read(into[:min(len(into), l.left)])
	l.left -= n
	return n, err
}

func (h *hook) do(asked request) answer {
	switch asked.Do {
	case "state":
		return h.state()
	case "files":
		found, err := own(h.home, h.trusted)
		if err != nil {
			return refused(err)
		}
		return answer{Files: found}
	case "start":
		return h.start(asked)
	case "stop":
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.server != nil {
			h.server.signal(syscall.SIGTERM)
		}
		return answer{}
	case "run":
		return h.run(asked)
	case "ask":
		return h.ask(asked)
	case "started", "alive":
		return answer{Well: h.well(asked.Do)}
	}
	return refused(fmt.Errorf("%q is no request", asked.Do))
}

func refused(err error) answer { return answer{Error: err.Error()} }

func (h *hook) state() answer {
	h.mu.Lock()
	defer h.mu.Unlock()
	told := answer{Boot: h.boot, Running: h.server != nil && h.server.running()}
	if h.command != nil {
		told.Command = &command{ID: h.id, Running: h.command.running(), Output: h.command.output.String()}
		if !told.Command.Running {
			told.Command.Exit = h.command.exit
		}
	}
	return told
}

func (h *hook) start(asked request) answer {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.server != nil && h.server.running() {
		return answer{Running: true}
	}
	made, err := h.begin(asked)
	if err != nil {
		return refused(err)
	}
	h.server, h.since, h.answered = made, time.Now(), false
	return answer{Running: true}
}

func (h *hook) run(asked request) answer {
	h.mu.Lock()
	defer h.mu.Unlock()
	if asked.ID == "" {
		return refused(errors.New("a command has an id"))
	}
	if h.command != nil && h.id == asked.ID {
		return answer{}
	}
	if h.command != nil && h.command.running() {
		return refused(fmt.Errorf("command %s runs", h.id))
	}
	made, err := h.begin(asked)
	if err != nil {
		return refused(err)
	}
	h.command, h.id = made, asked.ID
	return answer{}
}

// begin starts a process, with `mu` held: none is started once the container is to end.
func (h *hook) begin(asked request) (*process, error) {
	if h.ending {
		return nil, errors.New("the container is about to end")
	}
	if len(asked.Args) == 0 {
		return nil, errors.New("there is nothing to start")
	}
	for _, word := range asked.Args {
		if word == "--force" {
			return nil, errors.New("--force drops what is there, and is never passed on")
		}
	}
	args := append([]string{within(asked.Args[0], h.home, h.laid)}, asked.Args[1:]...)
	return h.processes.start(args, h.environment(), asked.Stdin, os.Stdout)
}

func (h *hook) environment() []string {
	made := []string{"OPENCGA_HOME=" + h.laid}
	for _, each := range os.Environ() {
		if !strings.HasPrefix(each, "OPENCGA_HOME=") {
			made = append(made, each)
		}
	}
	return made
}

// ask runs what changes nothing, and waits for its end.
func (h *hook) ask(asked request) answer {
	h.mu.Lock()
	made, err := h.begin(asked)
	h.mu.Unlock()
	if err != nil {
		return refused(err)
	}
	select {
	case <-made.done:
		return answer{Exit: made.exit, Output: made.output.String()}
	case <-time.After(time.Duration(max(asked.Seconds, 1) * float64(time.Second))):
		made.signal(syscall.SIGKILL)
		return refused(fmt.Errorf("%s did not end within %g s", asked.Args[0], asked.Seconds))
	}
}

// well is what a probe is told. While no server is to run all is well: what it waits for is outside, and no restart
// brings it. One that has answered once must go on answering its ping, which asks for nothing outside.
func (h *hook) well(what string) bool {
	h.mu.Lock()
	running := h.server != nil && h.server.running()
	since, answered := h.since, h.answered
	h.mu.Unlock()
	if !running {
		return true
	}
	if pings(h.ping) {
		h.mu.Lock()
		h.answered = h.answered || h.since.Equal(since)
		h.mu.Unlock()
		return true
	}
	return what == "alive" && !answered && time.Since(since) < h.startup
}

// well asks the first process, for a probe.
func well(socket, what string) error {
	line, err := net.DialTimeout("unix", socket, 3*time.Second)
	if err != nil {
		return err
	}
	defer line.Close()
	_ = line.SetDeadline(time.Now().Add(8 * time.Second))
	if _, err := fmt.Fprintf(line, "{\"do\":%q}\n", what); err != nil {
		return err
	}
	var told answer
	if err := json.NewDecoder(line).Decode(&told); err != nil {
		return err
	}
	if told.Error != "" {
		return errors.New(told.Error)
	}
	if !told.Well {
		return errors.New("the server does not answer its ping")
	}
	return nil
}
