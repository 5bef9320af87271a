package main

import (
	"errors"
	"fmt"
)

// replicate makes one member follow the database of another, which must be the primary.
func (m *member) replicate(o order) (int, error) {
	of, to := o.Parameters["masterMemberName"], o.Parameters["slaveMemberName"]
	if err := m.onlyMaster(); err != nil {
		return 0, err
	}
	switch db := m.database(); {
	case of != m.name:
		return 0, bad("the master must be the primary, " + m.name)
	case of == to:
		return 0, bad("master and slave must be two members")
	case db.member(to) == nil:
		return 0, bad(to + " is not a member")
	}
	return m.submit(o.Command, o.Description, o.Parameters, plan{
		length: m.scaled(m.task),
		steps: []step{
			{45, func() error {
				m.mu.Lock()
				defer m.mu.Unlock()
				if !m.liveLocked(to) {
					return fmt.Errorf("the slave %s is not reachable", to)
				}
				return nil
			}},
			{90, func() error {
				return m.commit(func(db *database) error {
					if db.member(to) == nil {
						return bad(to + " is no longer a member")
					}
					db.pair(of, to)
					return nil
				})
			}},
		},
	})
}

// failover makes the slave, where it is posted, the primary. A master that is alive is asked to yield first.
func (m *member) failover(o order) (int, error) {
	if name := o.Parameters["newMasterMemberName"]; name != m.name {
		return 0, bad(fmt.Sprintf("the new master must be the member that is asked, %s, not %q", m.name, name))
	}
	db := m.database()
	if own := db.member(m.name); db.Primary == m.name || own == nil || own.Derby != slave {
		return 0, bad(m.name + " is not the slave of a replication")
	}
	return m.submit(o.Command, o.Description, o.Parameters, plan{
		length: m.scaled(m.task) / 2,
		steps:  []step{{50, m.promote}},
	})
}

func (m *member) promote() error {
	before := m.database()
	next := &database{}
	err := m.call(before.member(before.Primary).target(), peerTimeout, "yield", m.name, next)
	if refused := (*refusal)(nil); errors.As(err, &refused) {
		return fmt.Errorf("the master does not agree: %w", err)
	}
	if err == nil {
		return m.adopt(next)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.install(succeeded(m.db, m.name))
}

// succeeded is the database with a new primary, in the next term.
func succeeded(db *database, name string) *database {
	next := db.clone()
	next.Term++
	next.Revision++
	next.Primary = name
	next.pair("", "")
	return next
}

// onYield hands the mastery over with all that was written.
func (m *member) onYield(to string) (*database, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	heir := m.db.member(to)
	switch {
	case m.db.Primary == to:
		return m.db, nil
	case m.db.Primary != m.name:
		return nil, errNotMaster
	case heir == nil || heir.Derby != slave:
		return nil, bad(to + " is not the slave")
	}
	if err := m.busyLocked(); err != nil {
		return nil, err
	}
	return m.db, m.install(succeeded(m.db, to))
}
