package main

import (
	"net/http"
	"time"
)

// command is one that POST /task takes.
type command struct {
	parameters []string // that must be there
	run        func(*member, order) (int, error)
}

var commands map[string]command

func init() {
	commands = map[string]command{
		"NewMemberJoinTaskCommand":    {[]string{"secretKey", "memberName", "cacheMemberGroupHost", "isCatalog"}, (*member).join},
		"RemoveMemberTaskCommand":     {[]string{"memberName"}, (*member).remove},
		"DerbyReplicationTaskCommand": {[]string{"masterMemberName", "slaveMemberName"}, (*member).replicate},
		"DerbyFailoverTaskCommand":    {[]string{"newMasterMemberName"}, (*member).failover},
		"RestartServersTaskCommand":   {[]string{"memberName"}, (*member).restart},
		"UpdateXMSettingTaskCommand":  {nil, (*member).updateSettings},
	}
}

const peerTimeout = 10 * time.Second

// onlyMaster refuses what the primary alone may do.
func (m *member) onlyMaster() error {
	if m.database().Primary != m.name {
		return errNotMaster
	}
	return nil
}

// remove moves a member's partitions away and then drops it. It need not be alive.
func (m *member) remove(o order) (int, error) {
	name := o.Parameters["memberName"]
	if err := m.onlyMaster(); err != nil {
		return 0, err
	}
	switch db := m.database(); {
	case name == m.name:
		return 0, bad(name + " is the primary, which can't be removed")
	case db.member(name) == nil:
		return 0, &refusal{http.StatusNotFound, name + " is not a member"}
	}
	phase := func(value string) error {
		return m.commit(func(db *database) error {
			if leaver := db.member(name); leaver != nil {
				leaver.Phase = value
			}
			return nil
		})
	}
	return m.submit(o.Command, o.Description, o.Parameters, plan{
		length: m.scaled(m.task),
		steps: []step{
			{5, func() error { return phase(leaving) }},
			{85, func() error { return m.waitUntilEmpty(name) }},
			{90, func() error { return m.drop(name) }},
		},
		undo: func() { _ = phase("") },
	})
}

// drop ends a membership and tells the member, if it is there; one that is not finds out when it returns.
func (m *member) drop(name string) error {
	var leaver record
	err := m.commit(func(db *database) error {
		listed := db.member(name)
		if listed == nil {
			return nil
		}
		leaver = *listed
		db.dropMember(name)
		if leaver.Derby != none {
			db.pair("", "")
		}
		return nil
	})
	if err == nil && leaver.Name != "" {
		_ = m.call(leaver.target(), time.Second, "adopt", m.database(), &struct{}{})
	}
	return err
}

// restart restarts the grid servers of a member: what it held is gone, if no other holds it.
func (m *member) restart(o order) (int, error) {
	if err := m.onlyMaster(); err != nil {
		return 0, err
	}
	listed := m.database().member(o.Parameters["memberName"])
	if listed == nil {
		return 0, bad("there is no such member")
	}
	return m.submit(o.Command, o.Description, o.Parameters, plan{
		length: m.scaled(m.task),
		steps: []step{{50, func() error {
			if o.Parameters["restartGridServers"] != "true" {
				return nil
			}
			return m.call(listed.target(), peerTimeout, "restart", struct{}{}, &struct{}{})
		}}},
	})
}

func (m *member) onRestart(struct{}) (struct{}, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forgetData()
	return struct{}{}, nil
}

func (m *member) updateSettings(o order) (int, error) {
	if err := m.onlyMaster(); err != nil {
		return 0, err
	}
	return m.submit(o.Command, o.Description, o.Parameters, plan{
		length: m.scaled(m.task) / 4,
		steps: []step{{90, func() error {
			return m.commit(func(db *database) error {
				db.Settings = o.Parameters
				return nil
			})
		}}},
	})
}

// memberShown is a member in the answer of GET /cacheMemberGroup.
type memberShown struct {
	MemberName    string `json:"memberName"`
	HostName      string `json:"hostName"`
	IPAddress     string `json:"ipAddress"`
	Status        string `json:"status"`
	Capacity      int    `json:"capacity"`
	CatalogServer bool   `json:"catalogServer"`
	Primary       bool   `json:"primary"`
	DerbyRole     string `json:"derbyRole"`
}

type groupShown struct {
	Name       string        `json:"cacheMemberGroupName"`
	Containers int           `json:"numContainers"`
	Capacity   int           `json:"maxCapacityPerMember"`
	Members    []memberShown `json:"members"`
}

func (m *member) getGroup(*http.Request) (any, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	group := groupShown{m.db.Group, len(m.db.Members), m.db.Capacity, []memberShown{}}
	for _, r := range m.db.Members {
		group.Members = append(group.Members, memberShown{r.Name, r.Host, r.Address, m.statusLocked(r), r.Capacity,
			r.Catalog, r.Name == m.db.Primary, r.Derby})
	}
	return group, nil
}
