package main

import (
	"fmt"
	"io"
	"log"
	"testing"
	"time"
)

// Most of the group, or the half that knows of the other half's end.
func TestEnough(t *testing.T) {
	for _, each := range []struct {
		size, yes, over int
		stirs           bool
		want            bool
	}{
		{size: 1, yes: 1, want: true},
		{size: 2, yes: 2, want: true},
		{size: 2, yes: 1, want: false},
		{size: 2, yes: 1, over: 1, want: true},
		{size: 2, yes: 1, over: 1, stirs: true, want: false},
		{size: 3, yes: 2, want: true},
		{size: 3, yes: 1, over: 2, want: false},
		{size: 4, yes: 2, over: 1, want: false},
		{size: 4, yes: 2, over: 2, want: true},
	} {
		m := &member{db: &database{}, peers: map[string]*peer{}}
		for i := range each.size {
			name := fmt.Sprint("m", i)
			m.db.Members = append(m.db.Members, record{Name: name})
			m.peers[name] = &peer{answered: true, last: beat{Incarnation: "run"}}
			if i >= each.size-each.over {
				m.peers[name].end()
				m.peers[name].stirs = each.stirs
			}
		}
		m.db.Members = append(m.db.Members, record{Name: "new", Phase: joining})
		if got := m.enoughLocked(func(name string) bool { return name < fmt.Sprint("m", each.yes) }); got != each.want {
			t.Errorf("%+v: %t", each, got)
		}
	}
}

// A member that did not run judges nobody by that time, and acts on nothing that it heard before.
func TestSleeperJudgesNobody(t *testing.T) {
	m := &member{db: &database{Primary: "m0", Members: []record{{Name: "m0"}, {Name: "m1"}}}, peers: map[string]*peer{}, ticked: time.Now(),
		settings: settings{name: "m0", speed: 1, silence: 2 * time.Second}, logger: log.New(io.Discard, "", 0)}
	m.peers["m1"] = &peer{answered: true, heard: time.Now(), last: beat{Incarnation: "run", State: online}}
	asleep := time.Now().Add(-time.Hour)
	m.ticked, m.peers["m1"].heard = asleep, asleep

	if !m.tickLocked() {
		t.Error("it did not notice")
	}
	if !m.liveLocked("m1") || m.silentLocked("m1") {
		t.Error("it takes the other for dead")
	}
	if m.holdsLocked() {
		t.Error("it still acts for the group")
	}
	if _, err := m.write(func(*database) error { return nil }); err == nil {
		t.Error("it takes changes before it has asked")
	}
}

// Each member gives one vote in an epoch, and takes no offer of an earlier one afterwards.
func TestVotes(t *testing.T) {
	s := newSite(t)
	m := s.start("m0")
	ask := func(epoch int, who string) vote {
		t.Helper()
		said, err := m.onVote(ballot{m.database().ID, epoch, who})
		if err != nil {
			t.Fatal(err)
		}
		return said
	}
	if !ask(7, "a").Granted || ask(7, "b").Granted || ask(6, "a").Granted {
		t.Error("two votes in one epoch, or one in an earlier one")
	}
	if _, err := m.onOffer(placement{Epoch: 6, Version: 100}); err == nil {
		t.Error("an offer of an earlier leader")
	}
	if _, err := m.onOffer(placement{Epoch: 7, Version: 1, Leader: "a"}); err != nil {
		t.Error(err)
	}
	if m.placed().Leader == "a" {
		t.Error("an offer is acted on before most have it")
	}
	m.kill()
	delete(s.members, "m0")
	m = s.start("m0", "XSLD_ADDRESS="+m.address)
	if said := ask(8, "b"); !said.Granted || said.Newest.Leader != "a" {
		t.Errorf("after a restart the offer is forgotten: %+v", said)
	}
	if ask(8, "a").Granted {
		t.Error("after a restart")
	}
}

// A change whose answer nobody waited for, and which comes late, undoes nothing.
func TestLateShipment(t *testing.T) {
	s := newSite(t)
	m := s.start("m0")
	send := func(epoch, version, serial int, value string) error {
		_, err := m.data.onWrite(shipment{spot{"g", 0}, "m1", m.incarnation, epoch, version, serial,
			[]change{{"g", "key", &entry{Value: []byte(value)}}}})
		return err
	}
	if send(9, 1, 2, "new") != nil || send(9, 1, 1, "old") == nil || send(9, 1, 2, "again") == nil {
		t.Error("an earlier shipment is taken after a later one")
	}
	if got := string(m.data.part(spot{"g", 0}).entries[name{"g", "key"}].Value); got != "new" {
		t.Error(got)
	}
	if send(9, 2, 1, "newest") != nil {
		t.Error("one of a later placement is refused")
	}
}

// With half of the group out of sight nobody serves what the other half may have changed; when it is back all is there.
func TestTornGroupTakesNoWrites(t *testing.T) {
	s := newSite(t)
	all := s.group(2, "XSLD_SILENCE_SECONDS=1")
	s.grid(all[0], "g", `{"numPartition":"3","numSyncReplicas":"1","numAsyncReplicas":"0"}`)
	s.current(all[0], 2)
	s.eventually("it is written", func() bool { return put(all[0], "g", "key", "value of key") })
	s.control(all[1], "PUT", "/faults", `{"cutPeers":true}`)
	for _, m := range all {
		s.eventually(m.name+" has lost its majority", func() bool {
			m.mu.Lock()
			defer m.mu.Unlock()
			return !m.holdsLocked()
		})
		if put(m, "g", "key", "another") {
			t.Errorf("%s takes a write", m.name)
		}
	}
	s.control(all[1], "PUT", "/faults", `{}`)
	s.online(all[0], 2)
	s.eventually("it is served again", func() bool { return put(all[1], "g", "more", "value of more") })
	if gone := lost(all[0], "g", []string{"more"}); len(gone) > 0 {
		t.Error(gone)
	}
}

// Elections that come to nothing leave traces, none of which may keep the group from a leader for ever.
func TestElectionsThatCameToNothing(t *testing.T) {
	for what, left := range map[string]func(m *member, i int){
		// Each that was elected refuses all votes as long as it believes that it leads, though another should.
		"elected, and does not lead": func(m *member, i int) {
			if m.reign = (reign{}); i > 0 {
				m.reign = reign{epoch: 100 + i, base: m.placement, since: time.Now()}
			}
		},
		// All but the leader promised to follow a later one, of which nothing was heard any more.
		"promised, and nobody came": func(m *member, i int) {
			if i > 0 {
				m.oath.Epoch = 100 + i
			}
		},
	} {
		for _, size := range []int{2, 3} {
			t.Run(fmt.Sprint(what, " of ", size), func(t *testing.T) {
				s := newSite(t)
				all := s.group(size)
				s.grid(all[0], "g", `{"numPartition":"3","numSyncReplicas":"1","numAsyncReplicas":"0"}`)
				s.current(all[0], 2)
				for i, m := range all {
					m.mu.Lock()
					left(m, i)
					m.mu.Unlock()
				}
				s.grid(all[0], "later", `{"numPartition":"3","numSyncReplicas":"1","numAsyncReplicas":"0"}`)
				s.eventually("it is served", func() bool { return put(all[0], "later", "key", "value of key") })
			})
		}
	}
}
