package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	within = 20 * time.Second
	admin  = "Pass-word-1"
)

// crew is a number of containers on this machine, each with a drive of its own.
type crew struct {
	t      *testing.T
	agents []*agent
}

func newCrew(t *testing.T, count int) *crew {
	t.Helper()
	c := &crew{t: t}
	for i := range count {
		c.agents = append(c.agents, c.launch(c.folder(i), freePort(t)))
	}
	for i := range c.agents {
		c.must(i, "local", "setup", "container", "--name", c.name(i), "--base-port", fmt.Sprint(c.agents[i].portWanted()), "--drive-only")
		c.must(i, "local", "start", c.name(i))
	}
	return c
}

func (c *crew) name(i int) string { return fmt.Sprintf("drivex%d", i) }

func (c *crew) folder(i int) string {
	c.t.Helper()
	folder := filepath.Join(c.t.TempDir(), fmt.Sprint(i))
	devices := filepath.Join(folder, "devices")
	ok(c.t, os.MkdirAll(devices, 0o700))
	ok(c.t, os.WriteFile(filepath.Join(devices, marker), nil, 0o600))
	d := device{Serial: fmt.Sprintf("s%d", i), Path: filepath.Join(devices, "a"), Signed: true}
	ok(c.t, d.write())
	return folder
}

var wanted = map[*agent]int{}

func (a *agent) portWanted() int { return wanted[a] }

func (c *crew) launch(folder string, port int) *agent {
	c.t.Helper()
	a, err := newAgent(settings{
		data: filepath.Join(folder, "data"), socket: filepath.Join(folder, "agent.sock"), address: "127.0.0.1",
		version: "4.4.1", devices: filepath.Join(folder, "devices"), tick: 20 * time.Millisecond,
	})
	ok(c.t, err)
	ok(c.t, a.serve())
	wanted[a] = port
	c.t.Cleanup(a.close)
	return a
}

// again ends the agent of a container as a kill of its pod does, and starts another on what it left.
func (c *crew) again(i int) {
	c.t.Helper()
	folder := filepath.Dir(c.agents[i].settings.data)
	c.agents[i].stop()
	ok(c.t, c.agents[i].local.Close())
	port := wanted[c.agents[i]]
	c.agents[i] = c.launch(folder, port)
	c.must(i, "local", "start", c.name(i))
}

func (c *crew) tell(i int, input string, words ...string) said {
	c.t.Helper()
	secret := map[string]string{
		"WEKA_USERNAME": "admin", "WEKA_PASSWORD": admin, "WEKA_ADMIN_PASSWORD": admin, "WEKA_JOIN_SECRET": "j", "WEKA_NEW_PASSWORD": "n",
	}
	got, err := hand(c.agents[i].settings.socket, order{Words: words, Secret: secret, Input: []byte(input)})
	ok(c.t, err)
	return got
}

func (c *crew) must(i int, words ...string) string {
	c.t.Helper()
	got := c.tell(i, "", words...)
	if got.Code != 0 {
		c.t.Fatalf("%s: %s", strings.Join(words, " "), got.Err)
	}
	return string(got.Out)
}

func (c *crew) refused(i int, why string, words ...string) {
	c.t.Helper()
	if got := c.tell(i, "", words...); got.Code == 0 || !strings.Contains(got.Err, why) {
		c.t.Fatalf("%s: %d %q, not %q", strings.Join(words, " "), got.Code, got.Err, why)
	}
}

func (c *crew) read(i int, into any, words ...string) {
	c.t.Helper()
	ok(c.t, json.Unmarshal([]byte(c.must(i, words...)), into))
}

// form makes a cluster of all, adds their drives and starts IO.
func (c *crew) form() *crew {
	c.t.Helper()
	var at []string
	for _, a := range c.agents {
		at = append(at, a.endpoint())
	}
	c.must(0, "cluster", "create", "ips", "--host-ips", strings.Join(at, ","))
	for i := range c.agents {
		c.joins(i)
		c.addDrive(i)
	}
	c.must(0, "cluster", "start-io")
	return c
}

func (c *crew) joins(i int) {
	c.t.Helper()
	c.until(func() bool { return c.agents[i].container().GUID != "" })
}

func (c *crew) addDrive(i int) {
	c.t.Helper()
	path := filepath.Join(c.agents[i].settings.devices, "a")
	c.must(i, "cluster", "drive", "add", fmt.Sprint(c.agents[i].container().Host), path)
}

func (c *crew) put(i int, key, text string) {
	c.t.Helper()
	if got := c.tell(i, text, "standin", "put", key); got.Code != 0 {
		c.t.Fatal(got.Err)
	}
}

func (c *crew) get(i int, key string) string {
	c.t.Helper()
	return string(c.tell(i, "", "standin", "get", key).Out)
}

func (c *crew) protected(i int) bool {
	var got struct {
		Status  string
		Rebuild struct{ MovingData bool }
	}
	answered := c.tell(i, "", "status", "--json")
	return answered.Code == 0 && json.Unmarshal(answered.Out, &got) == nil && got.Status == "OK" && !got.Rebuild.MovingData
}

func (c *crew) states(i int) map[string][2]string {
	c.t.Helper()
	var members []map[string]string
	c.read(i, &members, "cluster", "container", "--json")
	found := map[string][2]string{}
	for _, m := range members {
		found[m["container_name"]] = [2]string{m["status"], m["state"]}
	}
	return found
}

func (c *crew) until(condition func() bool) {
	c.t.Helper()
	for end := time.Now().Add(within); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			c.t.Fatal("it did not come to pass")
		}
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}
