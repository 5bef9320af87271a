package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	answerWithin = 2 * time.Second
	silentFor    = 5 * time.Second        // for which who gave no answer is not waited for as long again
	silentWithin = 200 * time.Millisecond // then
	mostBytes    = 8 << 20
)

// container is what the agent runs: one, as in a pod there is one.
type container struct {
	Name   string   `json:"name"`
	Mode   string   `json:"mode"`
	Cores  int      `json:"cores"`
	Port   int      `json:"port"`
	Domain string   `json:"failureDomain"`
	Join   []string `json:"join"`
	Host   int      `json:"host"`
	GUID   string   `json:"guid"`
	Failed string   `json:"lastFailure"`
}

// agent keeps a container, its part of the cluster's register, and its drives. Its files are in one folder.
type agent struct {
	settings settings
	own      acceptor

	mu      sync.Mutex // of what follows
	at      container
	running bool
	faults  faults
	cut     map[string]bool // peers that are not reached, in tests

	changing sync.Mutex // one change of the register at a time
	round    int
	seen     map[int]time.Time    // when a member answered last
	silent   map[string]time.Time // by address: when it gave no answer
	client   *http.Client
	local    *http.Server
	peer     *http.Server
	done     chan struct{}
	loops    sync.WaitGroup
}

func newAgent(s settings) (*agent, error) {
	a := &agent{
		settings: s, cut: map[string]bool{}, seen: map[int]time.Time{}, silent: map[string]time.Time{}, done: make(chan struct{}),
		client: &http.Client{},
	}
	if err := os.MkdirAll(s.data, 0o700); err != nil {
		return nil, err
	}
	a.own.save = func(it *acceptor) error { return a.write("register.json", it) }
	if err := a.read("register.json", &a.own); err != nil {
		return nil, err
	}
	if err := a.read("container.json", &a.at); err != nil {
		return nil, err
	}
	if err := a.read("faults.json", &a.faults); err != nil {
		return nil, err
	}
	if !a.faults.Sticky {
		a.faults = faults{}
	}
	a.round = a.own.Promised.Round
	return a, nil
}

func (a *agent) read(name string, value any) error {
	text, err := os.ReadFile(filepath.Join(a.settings.data, name))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(text, value)
}

func (a *agent) write(name string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	path := filepath.Join(a.settings.data, name)
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// serve answers the command line.
func (a *agent) serve() error {
	_ = os.Remove(a.settings.socket)
	listener, err := net.Listen("unix", a.settings.socket)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /run", a.handleRun)
	a.local = &http.Server{Handler: mux, ReadHeaderTimeout: answerWithin}
	go func() { _ = a.local.Serve(listener) }()
	return nil
}

func (a *agent) close() {
	a.stop()
	close(a.done)
	if a.local != nil {
		_ = a.local.Close()
	}
	a.loops.Wait()
}

// start lets the container run: others reach it, and it looks after what it is part of.
func (a *agent) start() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.running {
		return nil
	}
	if a.at.Name == "" {
		return errors.New("no container is set up here")
	}
	listener, err := net.Listen("tcp", a.endpoint())
	if err != nil {
		a.at.Failed = err.Error()
		return err
	}
	a.peer = &http.Server{Handler: a.peerRoutes(), ReadHeaderTimeout: answerWithin}
	a.running, a.at.Failed = true, ""
	stop := make(chan struct{})
	a.peer.RegisterOnShutdown(func() { close(stop) })
	server := a.peer
	go func() { _ = server.Serve(listener) }()
	a.loops.Add(1)
	go a.look(stop)
	return a.write("container.json", a.at)
}

func (a *agent) stop() {
	a.mu.Lock()
	server := a.peer
	a.peer, a.running = nil, false
	a.mu.Unlock()
	if server != nil {
		ended, cancel := context.WithTimeout(context.Background(), answerWithin)
		defer cancel()
		_ = server.Shutdown(ended)
		_ = server.Close()
	}
}

func (a *agent) endpoint() string {
	return net.JoinHostPort(a.settings.address, strconv.Itoa(a.at.Port))
}

func (a *agent) isRunning() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.running
}

// look comes by every tick: who answers, whether this one is to join, and what is to be moved.
func (a *agent) look(stop <-chan struct{}) {
	defer a.loops.Done()
	for {
		select {
		case <-stop:
			return
		case <-a.done:
			return
		case <-time.After(a.settings.tick):
		}
		if a.container().GUID == "" {
			a.tryToJoin()
			continue
		}
		a.tellOthers()
		a.mend()
	}
}

func (a *agent) container() container {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.at
}

func (a *agent) edit(change func(*container)) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(&a.at)
	return a.write("container.json", a.at)
}

func (a *agent) version() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.faults.Version != "" {
		return a.faults.Version
	}
	return a.settings.version
}

// --- others ------------------------------------------------------------------------------------------------------

func (a *agent) peerRoutes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /who", func(w http.ResponseWriter, _ *http.Request) {
		at := a.container()
		answer(w, map[string]any{"name": at.Name, "guid": at.GUID, "host": at.Host, "version": a.version()})
	})
	mux.HandleFunc("POST /prepare", func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ Ballot ballot }
		if decoded(w, r, &asked) {
			reply(w)(a.own.prepare(asked.Ballot))
		}
	})
	mux.HandleFunc("POST /accept", func(w http.ResponseWriter, r *http.Request) {
		var asked settled
		if decoded(w, r, &asked) {
			reply(w)(a.own.accept(asked.Ballot, asked.Value))
		}
	})
	mux.HandleFunc("POST /learn", func(w http.ResponseWriter, r *http.Request) {
		var asked settled
		if decoded(w, r, &asked) {
			reply(w)(promise{}, a.take(asked))
		}
	})
	mux.HandleFunc("POST /join", a.handleJoin)
	mux.HandleFunc("PUT /block/{uuid}/{key}", a.handlePutBlock)
	mux.HandleFunc("GET /block/{uuid}/{key}", a.handleGetBlock)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		cut := a.faults.CutPeers
		a.mu.Unlock()
		if cut {
			panic(http.ErrAbortHandler)
		}
		r.Body = http.MaxBytesReader(w, r.Body, mostBytes)
		mux.ServeHTTP(w, r)
	})
}

type settled struct {
	Ballot ballot `json:"ballot"`
	Value  *state `json:"value"`
	Host   int    `json:"host"` // who is told
}

// take learns what most have taken. Who belongs to no cluster becomes by it the member that it is told to be.
func (a *agent) take(told settled) error {
	at := a.container()
	if told.Value == nil || (at.GUID != "" && at.GUID != told.Value.GUID) {
		return errors.New("it belongs to another cluster")
	}
	if err := a.own.learn(told.Ballot, told.Value); err != nil {
		return err
	}
	m := told.Value.Members[told.Host]
	if at.GUID == "" && m != nil && m.Name == at.Name {
		return a.edit(func(c *container) { c.GUID, c.Host = told.Value.GUID, told.Host })
	}
	return nil
}

func (a *agent) prepare(m *member, b ballot) (promise, error) {
	if m.Host == a.container().Host {
		return a.own.prepare(b)
	}
	return a.ask(m, "prepare", settled{Ballot: b})
}

func (a *agent) accept(m *member, b ballot, value *state) (promise, error) {
	if m.Host == a.container().Host {
		return a.own.accept(b, value)
	}
	return a.ask(m, "accept", settled{Ballot: b, Value: value})
}

func (a *agent) learn(m *member, b ballot, value *state) {
	if m.Host != a.container().Host {
		_, _ = a.ask(m, "learn", settled{Ballot: b, Value: value, Host: m.Host})
	}
}

func (a *agent) ask(m *member, what string, told settled) (promise, error) {
	var got promise
	err := a.post(m.Address, "/"+what, told, &got)
	if err == nil {
		a.heard(m.Host)
	}
	return got, err
}

func (a *agent) heard(host int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen[host] = time.Now()
}

func (a *agent) post(address, path string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return a.send(http.MethodPost, address, path, text, into)
}

func (a *agent) send(method, address, path string, body []byte, into any) error {
	a.mu.Lock()
	cut, within := a.faults.CutPeers || a.cut[address], answerWithin
	if time.Since(a.silent[address]) < silentFor {
		within = silentWithin
	}
	a.mu.Unlock()
	if cut {
		return errors.New("cut off by a fault")
	}
	bounded, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	request, err := http.NewRequestWithContext(bounded, method, "http://"+address+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := a.client.Do(request)
	if err != nil {
		if within == answerWithin && errors.Is(err, context.DeadlineExceeded) {
			a.mu.Lock()
			a.silent[address] = time.Now()
			a.mu.Unlock()
		}
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, mostBytes))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", response.Status, strings.TrimSpace(string(text)))
	}
	if into == nil {
		return nil
	}
	if raw, ok := into.(*[]byte); ok {
		*raw = text
		return nil
	}
	return json.Unmarshal(text, into)
}

// change has the cluster take what an edit makes of its state.
func (a *agent) change(edit func(*state) error) (*state, error) {
	a.changing.Lock()
	defer a.changing.Unlock()
	return change(&a.own, a.container().Host, &a.round, a, edit)
}

// known is the state as most have it now; where most don't answer, as this one has it, and an error.
func (a *agent) known() (*state, error) {
	value, err := a.change(func(*state) error { return nil })
	if err != nil {
		last, _ := a.own.last()
		return last, err
	}
	return value, nil
}

// alive asks a member whether it answers; what it said a moment ago counts.
func (a *agent) alive(m *member) bool {
	if m.Host == a.container().Host {
		return a.isRunning()
	}
	a.mu.Lock()
	at, known := a.seen[m.Host]
	a.mu.Unlock()
	if known && time.Since(at) < a.settings.tick {
		return true
	}
	var who struct{ GUID string }
	if a.send(http.MethodGet, m.Address, "/who", nil, &who) != nil {
		return false
	}
	a.heard(m.Host)
	return true
}

// tellOthers tells members that have not heard of it what most have taken, such as one that is to be a member.
func (a *agent) tellOthers() {
	value, b := a.own.last()
	if value == nil {
		return
	}
	for _, m := range value.Members {
		a.learn(m, b, value)
	}
}

func (a *agent) tryToJoin() {
	at := a.container()
	for _, to := range at.Join {
		var got settled
		asked := map[string]string{"name": at.Name, "address": a.endpoint(), "version": a.version()}
		if a.post(to, "/join", asked, &got) == nil && got.Value != nil {
			_ = a.take(got)
			return
		}
	}
}

func (a *agent) handleJoin(w http.ResponseWriter, r *http.Request) {
	var asked struct{ Name, Address, Version string }
	if !decoded(w, r, &asked) {
		return
	}
	if a.container().GUID == "" {
		http.Error(w, "this container belongs to no cluster", http.StatusConflict)
		return
	}
	host := 0
	value, err := a.change(func(s *state) error {
		host = s.add(asked.Name, asked.Address, asked.Version).Host
		return nil
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_, b := a.own.last()
	answer(w, settled{Ballot: b, Value: value, Host: host})
}

func decoded(w http.ResponseWriter, r *http.Request, into any) bool {
	if err := json.NewDecoder(r.Body).Decode(into); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return false
	}
	return true
}

func reply(w http.ResponseWriter) func(promise, error) {
	return func(p promise, err error) {
		if err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		answer(w, p)
	}
}

func answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value)
}
