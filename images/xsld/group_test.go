package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func remove(name string) order {
	return order{"RemoveMemberTaskCommand", "", map[string]string{"memberName": name}}
}

func pairing(of, to string) order {
	return order{"DerbyReplicationTaskCommand", "", map[string]string{"masterMemberName": of, "slaveMemberName": to}}
}

func takeover(name string) order {
	return order{"DerbyFailoverTaskCommand", "", map[string]string{"newMasterMemberName": name}}
}

// The membership appears while the task still runs, and the task's end comes later.
func TestJoinShowsBeforeItEnds(t *testing.T) {
	s := newSite(t)
	first, second := s.start("m0"), s.start("m1")
	path := ""
	for _, each := range []struct {
		percent int
		wanted  []string
	}{{40, []string{online}}, {55, []string{online, joining}}, {80, []string{online, online}}} {
		s.control(second, "PUT", "/faults", fmt.Sprintf(`{"stuckAt":%d}`, each.percent))
		if path == "" {
			path = fmt.Sprintf("/task/%d/status", s.submit(second, joinOrder(second, first)))
		}
		s.eventually(fmt.Sprintf("at %d %%: %v", each.percent, each.wanted), func() bool {
			var now task
			s.admin(second, "GET", path, nil, &now)
			got := []string{}
			for _, m := range s.groupOf(first).Members {
				got = append(got, m.Status)
			}
			return now.Status == runs && now.Progress == each.percent && slices.Equal(got, each.wanted)
		})
	}
	s.control(second, "DELETE", "/faults", nil)
	s.eventually("it succeeds", func() bool {
		var now task
		s.admin(second, "GET", path, nil, &now)
		return now.Status == success
	})
}

func TestJoinIsRefused(t *testing.T) {
	s := newSite(t)
	first := s.start("m0", "XSLD_TASK_SECONDS=1")
	second := s.start("m1", "XSLD_TASK_SECONDS=1")
	wrong := joinOrder(second, first)
	wrong.Parameters["secretKey"] = "Another-key-1"
	s.fails(second, wrong, "secret key")
	s.fails(s.start("stranger", "SECRET_KEY=Another-key-1"), func() order {
		o := joinOrder(s.members["stranger"], first)
		o.Parameters["secretKey"] = "Another-key-1"
		return o
	}(), "secret keys of the two members differ")
	s.fails(s.start("elsewhere", "CACHE_GROUP=other"), joinOrder(s.members["elsewhere"], first), "called cg1, not other")
	s.fails(second, joinOrder(second, &member{settings: settings{address: "127.77.0.1"}}), "cannot reach the group")
	s.succeeds(second, joinOrder(second, first))
	s.fails(second, joinOrder(second, first), "already a member")

	namesake := s.start("elsewhere", "MEMBER_NAME=m1", "XSLD_VOL="+s.folder+"/namesake", "XSLD_ADDRESS="+s.newAddress())
	s.fails(namesake, joinOrder(namesake, first), "m1 is already a member")
	if code := s.admin(first, "POST", "/task", `{"command":"NewMemberJoinTaskCommand","parameters":{"isCatalog":true}}`, nil); code != 400 {
		t.Errorf("a boolean parameter: %d", code)
	}
}

// Whoever has its task first is alone with it.
func TestOneTaskAtATime(t *testing.T) {
	s := newSite(t)
	all := s.group(2)
	third, fourth := s.start("m2"), s.start("m3")
	s.control(third, "PUT", "/faults", `{"stuckAt":40}`)
	id := s.submit(third, joinOrder(third, all[0]))

	for m, o := range map[*member]order{fourth: joinOrder(fourth, all[0]), all[0]: remove("m1")} {
		if code := s.admin(m, "POST", "/task", o, nil); code != 409 {
			t.Errorf("%s beside a join: %d", o.Command, code)
		}
	}
	s.control(third, "DELETE", "/faults", nil)
	s.await(third, id)
	s.succeeds(fourth, joinOrder(fourth, all[0]))
}

// The lock of a member that died with its join is not held for ever.
func TestJoiningMemberDies(t *testing.T) {
	s := newSite(t)
	all := s.group(2)
	third := s.start("m2", `XSLD_FAULTS={"dieAt":{"percent":30}}`)
	s.submit(third, joinOrder(third, all[0]))
	s.eventually("it died", func() bool { return s.admin(third, "GET", "/task", nil, nil) == 0 })

	third = s.start("m2")
	var past []task
	s.admin(third, "GET", "/task", nil, &past)
	if len(past) != 1 || past[0].Status != failed {
		t.Errorf("the interrupted task: %+v", past)
	}
	s.eventually("the lock is free", func() bool { return s.admin(third, "POST", "/task", joinOrder(third, all[0]), nil) == 200 })
	s.online(all[0], 3)
}

// Whoever kills a member that is being killed waits until it is dead; and the dead one writes nothing for the next run.
func TestDeadIsDead(t *testing.T) {
	s := newSite(t)
	m := s.start("m0")
	m.mu.Lock()
	go m.kill()
	s.eventually("it is being killed", m.ended)
	again := make(chan struct{})
	go func() {
		m.kill()
		close(again)
	}()
	select {
	case <-again:
		t.Error("it still listens")
	case <-time.After(100 * time.Millisecond):
	}
	m.mu.Unlock()
	<-again
	if _, err := m.onVote(ballot{m.database().ID, 7, "m0"}); err == nil {
		t.Error("it still votes")
	}
}

// A member that dies right after it was listed is one when it returns.
func TestListedMemberDies(t *testing.T) {
	s := newSite(t)
	first := s.start("m0")
	second := s.start("m1", `XSLD_FAULTS={"dieAt":{"percent":55}}`)
	s.submit(second, joinOrder(second, first))
	s.eventually("it died", func() bool { return s.admin(second, "GET", "/task", nil, nil) == 0 })
	s.start("m1")
	s.online(first, 2)
}

func TestRemove(t *testing.T) {
	s := newSite(t)
	all := s.group(3)
	if code := s.admin(all[0], "POST", "/task", remove("m0"), nil); code != 400 {
		t.Errorf("removal of the primary: %d", code)
	}
	if code := s.admin(all[1], "POST", "/task", remove("m2"), nil); code != 503 {
		t.Errorf("removal at a member that is not the primary: %d", code)
	}
	s.succeeds(all[0], remove("m2"))
	s.eventually("m2 is alone again", func() bool { return len(s.groupOf(all[2]).Members) == 1 })
	s.fails(all[2], joinOrder(all[2], all[0]), "stale volume")

	// One that is dead can be removed too, and finds out when it returns.
	all[1].kill()
	s.succeeds(all[0], remove("m1"))
	back := s.start("m1")
	s.eventually("m1 is alone again", func() bool { return len(s.groupOf(back).Members) == 1 })
	s.fails(back, joinOrder(back, all[0]), "stale volume")
}

func TestReplicationAndFailover(t *testing.T) {
	s := newSite(t)
	all := s.group(3)
	if code := s.admin(all[1], "POST", "/task", takeover("m1"), nil); code != 400 {
		t.Errorf("failover without replication: %d", code)
	}
	s.succeeds(all[0], pairing("m0", "m1"))
	s.succeeds(all[0], pairing("m0", "m2"))
	s.grid(all[0], "kept", `{"numPartition":"3"}`)
	s.eventually("m2 is the slave", func() bool { return s.groupOf(all[2]).Members[2].DerbyRole == slave })
	if roles := s.groupOf(all[2]).Members; roles[0].DerbyRole != master || roles[1].DerbyRole != none {
		t.Errorf("roles: %+v", roles)
	}

	all[0].kill()
	s.eventually("its death is seen", func() bool { return s.groupOf(all[2]).Members[0].Status == offline })
	if code := s.admin(all[2], "POST", "/grid/refused", `{}`, nil); code != 503 {
		t.Errorf("a write without master: %d", code)
	}
	s.succeeds(all[2], takeover("m2"))
	s.grid(all[2], "later", `{"numPartition":"3"}`)

	old := s.start("m0")
	s.online(old, 3)
	group := s.groupOf(old)
	if group.Members[0].Primary || !group.Members[2].Primary || group.Members[0].DerbyRole != none {
		t.Errorf("after its return: %+v", group)
	}
	if code := s.admin(old, "POST", "/grid/refused", `{}`, nil); code != 503 {
		t.Errorf("a write at the old master: %d", code)
	}
	for _, name := range []string{"kept", "later"} {
		s.eventually(name+" is known to all", func() bool { return s.admin(old, "GET", "/grid/"+name, nil, nil) == 200 })
	}
}

// A living master agrees to yield.
func TestPlannedFailover(t *testing.T) {
	s := newSite(t)
	all := s.group(2)
	s.succeeds(all[0], pairing("m0", "m1"))
	s.eventually("m1 is the slave", func() bool { return s.groupOf(all[1]).Members[1].DerbyRole == slave })
	s.succeeds(all[1], takeover("m1"))
	s.eventually("m0 knows", func() bool { return s.groupOf(all[0]).Members[1].Primary })
	s.succeeds(all[1], remove("m0"))
}

func TestFullOutage(t *testing.T) {
	s := newSite(t)
	all := s.group(3)
	s.grid(all[0], "g", `{"numPartition":"3"}`)
	for _, m := range all {
		m.kill()
	}
	for _, name := range []string{"m2", "m1", "m0"} {
		s.start(name)
	}
	for _, m := range s.members {
		s.online(m, 3)
	}
	group := s.groupOf(s.members["m1"])
	if !group.Members[0].Primary {
		t.Errorf("the primary: %+v", group)
	}
	s.succeeds(s.members["m0"], remove("m2"))
}

// A member at another address is offline for the others until its record is mended.
func TestNewAddress(t *testing.T) {
	for how, mend := range map[string]func(*site, *member, []*member) error{
		"sql": func(s *site, moved *member, _ []*member) error {
			statement := fmt.Sprintf("connect 'x'; UPDATE XSADMIN.MEMBER SET IP_ADDRESS = '%s' WHERE MEMBER_NAME = '%s';", moved.address, moved.name)
			var out strings.Builder
			err := runIJ(strings.NewReader(statement), &out, moved.volume)
			if !strings.Contains(out.String(), "1 row inserted/updated/deleted") {
				s.t.Error(out.String())
			}
			return err
		},
		"recover": func(s *site, moved *member, all []*member) error {
			var out strings.Builder
			return runRecover([]string{moved.alias, moved.address, moved.host}, &out, all[0].volume)
		},
	} {
		t.Run(how, func(t *testing.T) {
			s := newSite(t)
			all := s.group(2)
			all[1].kill()
			before := all[1].address
			moved := s.start("m1", "XSLD_ADDRESS="+s.newAddress())
			s.eventually("it is offline for the primary", func() bool { return s.groupOf(all[0]).Members[1].Status == offline })
			var out strings.Builder
			_ = runIJ(strings.NewReader("SELECT IP_ADDRESS FROM XSADMIN.MEMBER WHERE MEMBER_NAME = 'm1';"), &out, moved.volume)
			if !strings.Contains(out.String(), before+"  ") || !strings.Contains(out.String(), "1 row selected") {
				t.Errorf("the stored address: %s", out.String())
			}
			out.Reset()
			_ = runIJ(strings.NewReader("SELECT COUNT(*) FROM XSADMIN.MEMBER;"), &out, moved.volume)
			if !strings.Contains(out.String(), "-----------\n2          \n\n1 row selected") {
				t.Errorf("the members: %s", out.String())
			}
			if err := mend(s, moved, all); err != nil {
				t.Fatal(err)
			}
			s.online(all[0], 2)
			s.online(moved, 2)
			if got := s.groupOf(all[0]).Members[1].IPAddress; got != moved.address {
				t.Errorf("registered at %s", got)
			}
		})
	}
}

// The others are told where the primary is.
func TestPrimaryIsRecovered(t *testing.T) {
	s := newSite(t)
	all := s.group(2)
	all[0].kill()
	moved := s.start("m0", "XSLD_ADDRESS="+s.newAddress())
	s.eventually("it is offline", func() bool { return s.groupOf(all[1]).Members[0].Status == offline })
	var out strings.Builder
	if err := runRecover([]string{moved.alias, moved.address, moved.host}, &out, all[1].volume); err != nil {
		t.Fatal(err)
	}
	s.online(all[1], 2)
	s.online(moved, 2)
	s.grid(moved, "g", `{}`)
	s.online(all[1], 2)
}

// After an outage all have new addresses: each knows its own, and tells the others by their names.
func TestAllMove(t *testing.T) {
	s := newSite(t)
	hosts := s.folder + "/hosts"
	start := func(name string) *member {
		address := s.newAddress()
		file, err := os.OpenFile(hosts, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(file, address, name+".test") // the last one counts
		file.Close()
		return s.start(name, "XSLD_HOST="+name+".test", "XSLD_HOSTS="+hosts, "XSLD_ADDRESS="+address, "XSLD_SELF_HEAL=true")
	}
	first, second := start("m0"), start("m1")
	o := joinOrder(second, first)
	o.Parameters["cacheMemberGroupHost"] = "m0.test"
	s.succeeds(second, o)
	s.online(first, 2)
	first.kill()
	second.kill()
	first, second = start("m0"), start("m1")
	s.eventually("m0 knows", func() bool { return s.groupOf(first).Members[1].IPAddress == second.address })
	s.eventually("m1 knows", func() bool { return s.groupOf(second).Members[0].IPAddress == first.address })
	s.online(first, 2)
	s.online(second, 2)
	s.grid(first, "g", `{}`)
}

func TestPrimaryMoves(t *testing.T) {
	s := newSite(t)
	all := s.group(2)
	all[0].kill()
	moved := s.start("m0", "XSLD_ADDRESS="+s.newAddress(), "XSLD_SELF_HEAL=true")
	s.eventually("m1 knows", func() bool { return s.groupOf(all[1]).Members[0].IPAddress == moved.address })
	s.online(all[1], 2)
	s.grid(moved, "g", `{"numPartition":"3"}`)
}

func TestTraceHidesSecrets(t *testing.T) {
	s := newSite(t)
	all := s.group(2)
	all[1].mu.Lock()
	text, _ := json.Marshal(all[1].trace)
	all[1].mu.Unlock()
	if !strings.Contains(string(text), "NewMemberJoinTaskCommand") || strings.Contains(string(text), secret) {
		t.Errorf("%s", text)
	}
	var tasks []task
	s.admin(all[1], "GET", "/task", nil, &tasks)
	if tasks[0].Parameters["secretKey"] != mask || tasks[0].Description != "a join" {
		t.Errorf("%+v", tasks[0])
	}
}
