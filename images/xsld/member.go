package main

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"sync"
	"time"
)

// States of a member's own server.
const (
	starting = "Starting"
	online   = "Online"
	stopping = "Stopped"
	offline  = "Offline"
	ended    = "Ended" // the last word of one that stopped, to other members alone
)

// identity is what a member knows of itself beside the group's database.
type identity struct {
	// Address under which it is registered; after a restart with another one it stays wrong until it is mended.
	Address string `json:"address"`
	// Stale names the group that this volume was removed from; it can't be used to join again.
	Stale string `json:"stale,omitempty"`
}

// member is one server. Its mutex guards what follows it, and is never held while another member is asked.
type member struct {
	settings
	store       store
	certificate tls.Certificate
	client      *http.Client
	exit        func(int)
	logger      *log.Logger
	done        chan struct{}
	killed      sync.Once
	wake        chan struct{} // cuts the pause between two beats short
	leadWake    chan struct{} // and that between two looks at the placement
	leading     sync.Mutex    // over changes of the placement by its leader
	catalog     catalog
	data        *holdings

	mu          sync.Mutex
	closers     []io.Closer
	state       string
	identity    identity
	db          *database
	incarnation string // of this run of the process: what it held before is gone
	peers       map[string]*peer
	awake       time.Duration // how long this process has run, as far as it noticed: see clock.go
	ticked      time.Time
	doubts      bool // it slept, and has not asked yet what happened meanwhile
	lock        *lock
	tasks       []*task
	nextTask    int
	running     map[int]*running
	faults      faults
	trace       []exchange
	placement   *placement // that the group has agreed on
	oath        oath
	reign       reign
	highest     int // epoch that was heard of
}

func newMember(s settings) (*member, error) {
	if err := os.MkdirAll(s.volume, 0o755); err != nil {
		return nil, err
	}
	m := &member{
		settings: s, store: store{s.volume}, exit: os.Exit, logger: log.New(os.Stdout, s.name+" ", log.LstdFlags|log.Lmicroseconds),
		done: make(chan struct{}), wake: make(chan struct{}, 1), leadWake: make(chan struct{}, 1),
		state: starting, incarnation: newID(), peers: map[string]*peer{}, running: map[int]*running{},
		nextTask: 1, placement: &placement{}, ticked: time.Now(),
	}
	if s.quiet {
		m.logger.SetOutput(io.Discard)
	}
	m.data = newHoldings(m)
	m.client = peerClient(s)
	var err error
	if m.certificate, err = certificate(s.volume, s); err != nil {
		return nil, err
	}
	return m, m.load()
}

// load takes up what the volume holds; an empty one makes a group of one member.
func (m *member) load() error {
	if _, err := m.store.load("member.json", &m.identity); err != nil {
		return err
	}
	if m.identity.Address == "" || m.selfHeal {
		m.identity.Address = m.address
	}
	db := &database{}
	found, err := m.store.load("database.json", db)
	if err != nil {
		return err
	}
	if m.db = db; !found {
		m.db = m.formed()
	}
	if own := m.db.member(m.name); m.selfHeal && own != nil && own.Address != m.address {
		own.Address = m.address
		if m.db.Primary == m.name {
			m.db.Revision++
		}
	}
	if err := m.save("database.json", m.db); err != nil {
		return err
	}
	if _, err := m.store.load("placement.json", m.placement); err != nil {
		return err
	}
	if _, err := m.store.load(oathFile, &m.oath); err != nil {
		return err
	}
	if err := m.loadFaults(); err != nil {
		return err
	}
	if err := m.loadTasks(); err != nil {
		return err
	}
	return m.save("member.json", m.identity)
}

// formed is the group that a member makes of itself alone.
func (m *member) formed() *database {
	own := m.record()
	own.Catalog = true
	return &database{ID: newID(), Group: m.group, Term: 1, Revision: 1, Primary: m.name, Capacity: m.capacity,
		Password: digest(m.password), Members: []record{own}}
}

func (m *member) record() record {
	return record{Name: m.name, Alias: m.alias, Host: m.host, Address: m.identity.Address, Port: m.ports.admin,
		Capacity: m.capacity, Derby: none}
}

// start opens the control port and leaves the rest, which takes its time, to the background.
func (m *member) start() error {
	if err := m.serveControl(); err != nil {
		return err
	}
	if err := m.serveSQL(); err != nil {
		return err
	}
	go func() {
		if err := m.boot(); err != nil {
			m.say("cannot start: %v", err)
			if !m.ended() {
				m.exit(1)
			}
		}
	}()
	return nil
}

func (m *member) boot() error {
	m.nanny(starting)
	m.mu.Lock()
	slow := m.scaled(time.Duration(m.faults.SlowStart * float64(time.Second)))
	m.faults.SlowStart = 0
	err := m.saveFaults()
	m.mu.Unlock()
	if err != nil {
		return err
	}
	if !m.pause(m.scaled(m.startUp) + slow) {
		return nil
	}
	m.mu.Lock()
	m.ticked = time.Now()
	own := m.db.member(m.name)
	m.mu.Unlock()
	if digest(m.password) != m.db.Password {
		m.say("XSADMIN_PWD is not the password on the volume, which holds")
	}
	// Before the first answer, so that a master that was replaced meanwhile takes no writes.
	m.beatAll(true)
	if err := m.listenAll(own != nil && own.Catalog); err != nil {
		return err
	}
	m.mu.Lock()
	m.state = online
	m.mu.Unlock()
	go m.beatForever()
	go m.leadForever()
	if !m.lightweight {
		go m.data.shipForever()
	}
	m.nanny(online)
	return nil
}

// stop hands over what this member holds and ends; with the fault, only after its catalog process was killed.
func (m *member) stop() {
	m.mu.Lock()
	wasOnline, hangs := m.state == online, m.faults.StopHangs
	m.state = stopping
	m.mu.Unlock()
	m.nanny(stopping)
	if wasOnline {
		m.data.handOver()
	}
	if hangs {
		m.say("waiting for %s to end", catalogProcess)
		m.catalog.wait()
	}
	m.finishRequests()
	m.farewell()
	m.kill()
}

// kill ends at once, as a dead process would: afterwards nothing listens, and nothing is written to the volume any more,
// whoever killed it.
func (m *member) kill() {
	m.killed.Do(func() {
		close(m.done)
		m.catalog.close()
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, closer := range m.closers {
			closer.Close()
		}
		m.client.CloseIdleConnections()
	})
}

// save writes to the volume, which is the next run's once this one is dead; the lock is held.
func (m *member) save(name string, value any) error {
	if m.ended() {
		return errEnding
	}
	return m.store.save(name, value)
}

// commit writes to the group's database, which the primary alone may do. The slave of a replication has it before the
// answer, if it can be reached.
func (m *member) commit(change func(*database) error) error {
	next, err := m.write(change)
	if err != nil {
		return err
	}
	for _, r := range next.Members {
		m.mu.Lock()
		follows := r.Derby == slave && m.liveLocked(r.Name)
		m.mu.Unlock()
		if follows {
			_ = m.call(r.target(), peerTimeout, "adopt", next, &struct{}{})
		}
	}
	return nil
}

func (m *member) write(change func(*database) error) (*database, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.db.Primary != m.name:
		return nil, errNotMaster
	case m.sleptLocked():
		return nil, errAsleep
	}
	next := m.db.clone()
	if err := change(next); err != nil {
		return nil, err
	}
	next.Revision++
	return next, m.install(next)
}

// install makes a database the one in use; the lock is held.
func (m *member) install(next *database) error {
	if err := m.save("database.json", next); err != nil {
		return err
	}
	m.db = next
	if own := next.member(m.name); own != nil && own.Address == m.address && m.identity.Address != m.address {
		m.identity.Address = m.address
		if err := m.save("member.json", m.identity); err != nil {
			return err
		}
	}
	m.nudge()
	select {
	case m.wake <- struct{}{}:
	default:
	}
	return nil
}

// adopt takes another member's copy if it is newer; one that no longer lists this member means that it was removed.
func (m *member) adopt(next *database) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if next.ID != m.db.ID || !next.newer(m.db.Term, m.db.Revision) {
		return nil
	}
	if next.member(m.name) == nil {
		return errors.Join(m.resetLocked(), m.runCatalog(true))
	}
	if m.db.Primary == m.name && next.Primary != m.name {
		m.say("%s is the master now", next.Primary)
	}
	return m.install(next)
}

// resetLocked returns to a group of one after a removal. The volume is marked: it can't join again unless it is wiped.
func (m *member) resetLocked() error {
	m.say("removed from group %s", m.db.Group)
	m.identity.Stale = m.db.Group
	m.identity.Address = m.address
	if err := m.save("member.json", m.identity); err != nil {
		return err
	}
	m.leaveGroup()
	return m.install(m.formed())
}

// leaveGroup drops what is of the group that this member was in; the lock is held.
func (m *member) leaveGroup() {
	m.forgetData()
	m.placement, m.oath, m.reign = &placement{}, oath{}, reign{}
	m.store.remove("placement.json")
	m.store.remove(oathFile)
	m.peers = map[string]*peer{}
}

// forgetData empties this member's part of all grids, as a restart does; the lock is held.
func (m *member) forgetData() {
	m.incarnation = newID()
	m.data.clear()
}

func (m *member) database() *database {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.db
}

func (m *member) say(format string, values ...any) { m.logger.Printf(format, values...) }

// nanny tells of the server's state the way the vendor's supervisor does, in a file that others search.
func (m *member) nanny(state string) {
	m.say("status to %s", state)
	if m.nannyLog == "" {
		return
	}
	file, err := os.OpenFile(m.nannyLog, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return // a read-only root file system; the line is on stdout as well
	}
	defer file.Close()
	fmt.Fprintf(file, "%s %s status to %s\n", time.Now().UTC().Format(time.RFC3339), m.name, state)
}

func (m *member) scaled(d time.Duration) time.Duration { return time.Duration(float64(d) / m.speed) }

// pause waits; false when the member ends meanwhile.
func (m *member) pause(d time.Duration) bool {
	select {
	case <-m.done:
		return false
	case <-time.After(d):
		return !m.ended()
	}
}

func (m *member) ended() bool {
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}

func digest(text string) string {
	sum := sha256.Sum256([]byte("xsld:" + text))
	return hex.EncodeToString(sum[:])
}
