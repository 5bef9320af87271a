package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestForm: one order makes a cluster of all, which know it and each other; a second one is refused.
func TestForm(t *testing.T) {
	c := newCrew(t, 5).form()
	for i := range c.agents {
		if states := c.states(i); len(states) != 5 || states[c.name(i)] != [2]string{"UP", active} {
			t.Fatal(states)
		}
	}
	c.refused(1, "already", "cluster", "create", "ips", "--host-ips", c.agents[0].endpoint())
	var identity struct {
		Value struct {
			GUID string `json:"cluster_guid"`
			Host string `json:"host_id"`
		}
	}
	c.read(3, &identity, "local", "run", "wapi", "container-get-identity", "--container-name", c.name(3), "--json")
	if identity.Value.Host != "HostId<3>" || len(identity.Value.GUID) != 32 {
		t.Fatal(identity)
	}
}

// TestLogin: orders to the cluster need the administrator's password, and what only concerns the container does not.
func TestLogin(t *testing.T) {
	c := newCrew(t, 3).form3()
	got, err := hand(c.agents[0].settings.socket, order{Words: []string{"status", "--json"}, Secret: map[string]string{"WEKA_USERNAME": "admin"}})
	ok(t, err)
	if got.Code == 0 || !strings.Contains(got.Err, "login") {
		t.Fatal(got)
	}
	c.must(0, "local", "ps", "--json")
}

// form3 forms without starting IO, for which three drives are too few.
func (c *crew) form3() *crew {
	c.t.Helper()
	var at []string
	for _, a := range c.agents {
		at = append(at, a.endpoint())
	}
	c.must(0, "cluster", "create", "ips", "--host-ips", strings.Join(at, ","))
	for i := range c.agents {
		c.joins(i)
	}
	return c
}

// TestBlocksSurviveWhatRedundancyCovers: with two members lost all is read; what was on three lost drives alone is not.
func TestBlocksSurviveWhatRedundancyCovers(t *testing.T) {
	c := newCrew(t, 7).form()
	for i := range 6 {
		c.put(0, fmt.Sprint("k", i), fmt.Sprint("text ", i))
	}
	c.agents[5].stop()
	c.agents[6].stop()
	for i := range 6 {
		if got := c.get(0, fmt.Sprint("k", i)); got != fmt.Sprint("text ", i) {
			t.Fatalf("k%d: %q", i, got)
		}
	}
	value, _ := c.agents[0].own.last()
	for _, uuid := range value.Blocks["k0"] {
		ok(t, os.RemoveAll(value.Drives[uuid].Path+".blocks"))
	}
	if got := c.tell(0, "", "standin", "get", "k0"); got.Code == 0 {
		t.Fatal("a block that is on no drive was read")
	}
}

// TestLostMemberIsMadeUpFor: what it held gets another copy, and the cluster says meanwhile that it is not whole.
func TestLostMemberIsMadeUpFor(t *testing.T) {
	c := newCrew(t, 7).form()
	c.put(0, "k", "text")
	value, _ := c.agents[0].own.last()
	lost := value.Drives[value.Blocks["k"][2]].Host
	c.agents[lost].stop()
	at := (lost + 1) % 7
	c.until(func() bool { return c.protected(at) })
	value, _ = c.agents[at].own.last()
	if slices.ContainsFunc(value.Blocks["k"], func(uuid string) bool { return value.Drives[uuid].Host == lost }) {
		t.Fatal(value.Blocks)
	}
}

// TestLeave: a member that is deactivated hands over, its drive goes, and then it is forgotten. In no other order.
func TestLeave(t *testing.T) {
	c := newCrew(t, 7).form()
	for i := range 8 {
		c.put(0, fmt.Sprint("k", i), "text")
	}
	c.refused(0, "must be INACTIVE", "cluster", "container", "remove", "6", "--no-unimprint")
	c.must(0, "cluster", "container", "deactivate", "6")
	c.until(func() bool { return c.states(0)[c.name(6)][1] == inactive })
	c.refused(0, "has drives", "cluster", "container", "remove", "6", "--no-unimprint")
	var drives []map[string]string
	c.read(0, &drives, "cluster", "drive", "--container", "6", "--json")
	uuid := drives[0]["uuid"]
	c.refused(0, "must be INACTIVE", "cluster", "drive", "remove", uuid, "-f")
	c.must(0, "cluster", "drive", "deactivate", uuid, "-f")
	c.until(func() bool { return c.tell(0, "", "cluster", "drive", "remove", uuid, "-f").Code == 0 })
	c.agents[6].stop()
	c.must(0, "cluster", "container", "remove", "6", "--no-unimprint")
	if states := c.states(0); len(states) != 6 {
		t.Fatal(states)
	}
	for i := range 8 {
		if c.get(0, fmt.Sprint("k", i)) != "text" {
			t.Fatal("a block was lost with a member that left")
		}
	}
	c.refused(0, "not found", "cluster", "container", "deactivate", "6")
}

// TestStuckLeave: told to fail so, nothing is moved until the fault is gone.
func TestStuckLeave(t *testing.T) {
	c := newCrew(t, 6).form()
	for i := range c.agents {
		c.must(i, "standin", "faults", `{"stuckLeave":true}`)
	}
	c.must(0, "cluster", "container", "deactivate", "5")
	c.put(0, "k", "text") // several ticks go by
	if got := c.states(0)[c.name(5)][1]; got != deactivating {
		t.Fatal(got)
	}
	for i := range c.agents {
		c.must(i, "standin", "faults", `{}`)
	}
	c.until(func() bool { return c.states(0)[c.name(5)][1] == inactive })
}

// TestJoin: a container that is told where the cluster is becomes a member, once, under the name that it has.
func TestJoin(t *testing.T) {
	c := newCrew(t, 5).form()
	i := len(c.agents)
	c.agents = append(c.agents, c.launch(c.folder(i), freePort(t)))
	c.must(i, "local", "setup", "container", "--name", c.name(i), "--base-port", fmt.Sprint(c.agents[i].portWanted()),
		"--drive-only", "--join-ips", c.agents[1].endpoint())
	c.must(i, "local", "start", c.name(i))
	c.joins(i)
	c.addDrive(i)
	c.again(i)
	c.until(func() bool { return c.states(0)[c.name(i)] == [2]string{"UP", active} })
	if states := c.states(i); len(states) != 6 {
		t.Fatal(states)
	}
}

// TestRestart: all ended and started again are the cluster that they were, with all that they held.
func TestRestart(t *testing.T) {
	c := newCrew(t, 5).form()
	c.put(0, "k", "text")
	for i := range c.agents {
		c.agents[i].stop()
	}
	for i := range c.agents {
		c.again(i)
	}
	c.until(func() bool { return c.get(2, "k") == "text" })
	if states := c.states(3); len(states) != 5 {
		t.Fatal(states)
	}
}

// TestHalfDecidesNothing: who is cut off from most changes nothing, and says so; what it would have done is not done later.
func TestHalfDecidesNothing(t *testing.T) {
	c := newCrew(t, 5).form()
	for _, i := range []int{3, 4} {
		c.must(i, "standin", "faults", `{"cutPeers":true}`)
	}
	c.refused(4, errNoLeader.Error(), "fs", "group", "create", "lonely")
	c.must(0, "fs", "group", "create", "most")
	for _, i := range []int{3, 4} {
		c.must(i, "standin", "faults", `{}`)
	}
	c.until(func() bool { return strings.Contains(string(c.tell(4, "", "fs", "group", "--json").Out), "most") })
	if out := c.must(0, "fs", "group", "--json"); strings.Contains(out, "lonely") {
		t.Fatal(out)
	}
}

// TestTwoAtOnce: of many orders at many members each is carried out once. Who was overtaken may not know that it was its own.
func TestTwoAtOnce(t *testing.T) {
	c := newCrew(t, 5).form()
	ended := make(chan said, 25)
	for i := range 25 {
		go func() { ended <- c.tell(i%5, "", "fs", "group", "create", fmt.Sprint("g", i/5)) }()
	}
	made := 0
	for range 25 {
		if got := <-ended; got.Code == 0 {
			made++
		} else if !strings.Contains(got.Err, "already exists") && !strings.Contains(got.Err, errNoLeader.Error()) {
			t.Error(got.Err)
		}
	}
	value, err := c.agents[0].known()
	ok(t, err)
	slices.Sort(value.Groups)
	if made > 5 || !slices.Equal(value.Groups, []string{"g0", "g1", "g2", "g3", "g4"}) {
		t.Fatalf("%d were said to be made, and %v are", made, value.Groups)
	}
}

// TestFaults: each makes its command fail in its way, and no other.
func TestFaults(t *testing.T) {
	c := newCrew(t, 3).form3()
	c.must(0, "standin", "faults", `{"refuse":"status","notFound":"cluster container","badJson":"user"}`)
	c.refused(0, "refused", "status", "--json")
	c.refused(0, "not found", "cluster", "container", "--json")
	if out := c.must(0, "user", "-J"); strings.HasSuffix(out, "]") {
		t.Fatal(out)
	}
	c.must(0, "fs", "--json")
	c.must(0, "standin", "faults", `{"version":"9.9"}`)
	if out := c.must(0, "status", "--json"); !strings.Contains(out, `"release":"9.9"`) {
		t.Fatal(out)
	}
}

// TestStuckStop: a graceful stop fails, and one by force does not.
func TestStuckStop(t *testing.T) {
	c := newCrew(t, 1)
	c.must(0, "standin", "faults", `{"stuckStop":true}`)
	c.refused(0, "does not stop", "local", "stop", "-g", c.name(0))
	c.must(0, "local", "stop", "--force", c.name(0))
	if out := c.must(0, "local", "ps", "--json"); !strings.Contains(out, `"runStatus":"Stopped"`) {
		t.Fatal(out)
	}
}

// TestOnlyMarkedDevices: nothing is touched in a folder that does not say that it may be, nor what is no plain file.
func TestOnlyMarkedDevices(t *testing.T) {
	folder := t.TempDir()
	bait := filepath.Join(folder, "sda")
	ok(t, os.WriteFile(bait, []byte(`{"serial_id":"bait"}`), 0o600))
	var out, errs bytes.Buffer
	if runSign([]string{"sign", bait}, &out, &errs, folder) == 0 {
		t.Fatal("a device was signed in a folder that is not marked")
	}
	if (device{Serial: "bait", Path: bait}).write() == nil {
		t.Fatal("a device was written in a folder that is not marked")
	}
	ok(t, os.WriteFile(filepath.Join(folder, marker), nil, 0o600))
	ok(t, os.Symlink("/dev/null", filepath.Join(folder, "sdb")))
	found, err := listDevices(folder)
	ok(t, err)
	if len(found) != 1 || found[0].Serial != "bait" || found[0].Signed {
		t.Fatal(found)
	}
	if runSign([]string{"sign", bait}, &out, &errs, folder) != 0 {
		t.Fatal(errs.String())
	}
	ok(t, (device{Serial: "used", Path: bait, Signed: true, GUID: "g"}).write())
	if runSign([]string{"--", bait}, &out, &errs, folder) == 0 {
		t.Fatal("a device that was signed for a cluster was signed anew")
	}
	if runSign([]string{"--allow-erase-weka-partitions", "--", bait}, &out, &errs, folder) != 0 {
		t.Fatal(errs.String())
	}
	if d, err := readDevice(bait); err != nil || d.GUID != "" || !d.Signed {
		t.Fatal(d, err)
	}
	ok(t, (device{Serial: "theirs", Path: bait, Node: "other"}).write())
	if found, err := listDevices(folder); err != nil || len(found) != 0 {
		t.Fatal("the device of another node is listed", found, err)
	}
	ok(t, (device{Serial: "bait", Path: bait}).write())
	elsewhere := t.TempDir()
	if runSign([]string{"sign", bait}, &out, &errs, elsewhere) == 0 {
		t.Fatal("a device of another folder was signed")
	}
}

// TestDrivesThatMayHoldData: one that is mounted, not signed, of another cluster, or known already is not added.
func TestDrivesThatMayHoldData(t *testing.T) {
	c := newCrew(t, 3).form3()
	path := filepath.Join(c.agents[0].settings.devices, "a")
	for _, d := range []device{{Signed: true, Mounted: true}, {Signed: false}, {Signed: true, GUID: "other"}} {
		d.Serial, d.Path = "s0", path
		ok(t, d.write())
		c.refused(0, "not signed, is mounted, or was signed", "cluster", "drive", "add", "0", path)
	}
	d := device{Serial: "s0", Path: path, Signed: true}
	ok(t, d.write())
	c.must(0, "cluster", "drive", "add", "0", path)
	c.refused(0, "already in use", "cluster", "drive", "add", "0", path)
	if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), c.agents[0].container().GUID) {
		t.Fatal(string(text), err)
	}
}
