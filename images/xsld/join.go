package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// joinCall is what a joining member tells the group.
type joinCall struct {
	Record record `json:"record"`
	Group  string `json:"group"`
}

// join runs at the joining member and is aimed at any member of the group, which names the primary.
func (m *member) join(o order) (int, error) {
	if name := o.Parameters["memberName"]; name != m.name {
		return 0, bad(fmt.Sprintf("memberName is %q, but this member is %q", name, m.name))
	}
	catalog, err := strconv.ParseBool(o.Parameters["isCatalog"])
	if err != nil {
		return 0, bad(`isCatalog must be "true" or "false"`)
	}
	m.mu.Lock()
	own, stale, members := m.record(), m.identity.Stale, len(m.db.Members)
	m.mu.Unlock()
	own.Catalog = catalog
	ask := joinCall{own, m.group}

	primary, trouble := m.findPrimary(o.Parameters["cacheMemberGroupHost"])
	switch {
	case o.Parameters["secretKey"] != m.secret:
		trouble = errors.New("the secret key is not this member's")
	case stale != "":
		trouble = fmt.Errorf("stale volume: it is left over from group %s; wipe it first", stale)
	case members > 1:
		trouble = fmt.Errorf("%s is already a member of a group", m.name)
	case trouble == nil:
		trouble = m.call(primary, peerTimeout, "reserve", ask, &struct{}{})
		if refused := (*refusal)(nil); errors.As(trouble, &refused) && refused.code == http.StatusConflict {
			return 0, refused
		}
	}
	reserved := trouble == nil
	tell := func(name string, answer any) error { return m.call(primary, peerTimeout, name, ask, answer) }
	release := func() {}
	if reserved {
		release = m.holdOn(primary, ask)
	}
	id, err := m.submit(o.Command, o.Description, o.Parameters, plan{
		length: m.scaled(m.task),
		steps: []step{
			{10, func() error { return trouble }},
			{25, func() error { return tell("greet", &struct{}{}) }},
			{50, func() error {
				next := &database{}
				if err := tell("list", next); err != nil {
					return err
				}
				return m.enter(next)
			}},
			{60, func() error { return tell("joined", &struct{}{}) }},
		},
		end: release,
	})
	if err != nil {
		release()
	}
	return id, err
}

// findPrimary asks the host that a join was aimed at.
func (m *member) findPrimary(host string) (target, error) {
	port := m.ports.admin
	if name, text, err := net.SplitHostPort(host); err == nil {
		if number, err := strconv.Atoi(text); err == nil {
			host, port = name, number
		}
	}
	db := &database{}
	if err := m.call(target{host, port}, peerTimeout, "database", struct{}{}, db); err != nil {
		return target{}, fmt.Errorf("cannot reach the group at %s: %w", host, err)
	}
	if db.Group != m.group {
		return target{}, fmt.Errorf("the group at %s is called %s, not %s", host, db.Group, m.group)
	}
	if db.ID == m.database().ID && len(db.Members) == 1 {
		return target{}, errors.New("a member can't join itself")
	}
	primary := db.member(db.Primary)
	if primary == nil {
		return target{}, errors.New("the group has no primary")
	}
	return primary.target(), nil
}

// holdOn keeps the group's lock, which is this member's, until the function that it returns is called.
func (m *member) holdOn(primary target, ask joinCall) (release func()) {
	over := make(chan struct{})
	var holding sync.WaitGroup
	holding.Go(func() {
		for {
			select {
			case <-over:
				return
			case <-m.done:
				return
			case <-time.After(m.period()):
				_ = m.call(primary, peerTimeout, "hold", ask, &struct{}{})
			}
		}
	})
	return func() {
		close(over)
		holding.Wait()
		_ = m.call(primary, peerTimeout, "release", ask, &struct{}{})
	}
}

// enter gives up the own group, with its grids, for the one that was joined.
func (m *member) enter(next *database) error {
	m.mu.Lock()
	m.leaveGroup()
	err := m.install(next)
	own := next.member(m.name)
	m.mu.Unlock()
	if err == nil && own != nil {
		err = m.runCatalog(own.Catalog)
	}
	return err
}

const joinCommand = "NewMemberJoinTaskCommand"

func (m *member) onReserve(ask joinCall) (struct{}, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	listed := m.db.member(ask.Record.Name)
	switch {
	case m.db.Primary != m.name:
		return struct{}{}, errNotMaster
	case listed != nil && listed.Phase != joining:
		return struct{}{}, bad(ask.Record.Name + " is already a member")
	}
	if err := m.busyLocked(); err != nil {
		return struct{}{}, err
	}
	m.holdLocked(ask)
	return struct{}{}, nil
}

func (m *member) onHold(ask joinCall) (struct{}, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lock != nil && m.lock.member == ask.Record.Name || m.busyLocked() == nil {
		m.holdLocked(ask)
	}
	return struct{}{}, nil
}

func (m *member) holdLocked(ask joinCall) {
	m.lock = &lock{ask.Record.Name, joinCommand, time.Now().Add(6*m.period() + 2*time.Second)}
}

func (m *member) onRelease(ask joinCall) (struct{}, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lock != nil && m.lock.member == ask.Record.Name {
		m.lock = nil
	}
	return struct{}{}, nil
}

// onGreet proves that the group reaches the joining member where it says that it is.
func (m *member) onGreet(ask joinCall) (struct{}, error) {
	var said beat
	m.mu.Lock()
	question := m.beatLocked()
	m.mu.Unlock()
	err := m.call(ask.Record.target(), peerTimeout, "beat", question, &said)
	if err == nil && said.From != ask.Record.Name {
		err = fmt.Errorf("%s answers there", said.From)
	}
	if err != nil {
		err = bad(fmt.Sprintf("the group cannot reach %s at %s: %v", ask.Record.Name, ask.Record.Address, err))
	}
	return struct{}{}, err
}

// onList makes the membership appear.
func (m *member) onList(ask joinCall) (*database, error) {
	err := m.commit(func(db *database) error {
		if listed := db.member(ask.Record.Name); listed != nil && listed.Phase != joining {
			return bad(ask.Record.Name + " is already a member")
		}
		db.dropMember(ask.Record.Name)
		ask.Record.Phase = joining
		db.Members = append(db.Members, ask.Record)
		return nil
	})
	return m.database(), err
}

func (m *member) onJoined(ask joinCall) (struct{}, error) {
	return struct{}{}, m.commit(func(db *database) error {
		listed := db.member(ask.Record.Name)
		if listed == nil {
			return bad(ask.Record.Name + " was removed")
		}
		listed.Phase = ""
		return nil
	})
}
