package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const (
	secret   = "Secret-key-1"
	password = "Admin-pass-1"
)

// The tests wait far more than they compute.
func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", "8")
	m.Run()
}

var networks atomic.Int32 // each test has a network of its own

// site is where the members of one test are.
type site struct {
	t       *testing.T
	network int32
	folder  string
	members map[string]*member
	last    int
}

func newSite(t *testing.T) *site {
	t.Parallel()
	s := &site{t: t, network: 10 + networks.Add(1), folder: t.TempDir(), members: map[string]*member{}}
	t.Cleanup(func() {
		for _, m := range s.members {
			m.kill()
		}
	})
	return s
}

// start runs a member on its volume, at a new address unless it has one already; more are further settings.
func (s *site) start(name string, more ...string) *member {
	s.t.Helper()
	env := map[string]string{"LICENSE": "accept", "SECRET_KEY": secret, "XSADMIN_PWD": password, "MEMBER_NAME": name,
		"XSLD_SPEED": "100", "XSLD_START_SECONDS": "1", "XSLD_VOL": s.folder + "/" + name}
	if before := s.members[name]; before != nil {
		before.kill() // or wait until it is dead, if it dies by itself
		env["XSLD_ADDRESS"] = before.address
	} else {
		env["XSLD_ADDRESS"] = s.newAddress()
	}
	for _, pair := range more {
		key, value, _ := strings.Cut(pair, "=")
		env[key] = value
	}
	settings, err := settingsFrom(func(key string) string { return env[key] })
	if err != nil {
		s.t.Fatal(err)
	}
	settings.quiet = os.Getenv("LOUD") == ""
	m, err := newMember(settings)
	if err != nil {
		s.t.Fatal(err)
	}
	m.exit = func(int) { go m.kill() }
	if err := m.start(); err != nil {
		s.t.Fatal(err)
	}
	s.members[name] = m
	s.eventually(name+" is online", func() bool { return m.stateShown().State == online })
	return m
}

func (s *site) newAddress() string {
	s.last++
	return fmt.Sprintf("127.77.%d.%d", s.network, s.last)
}

// group is m0, m1, ... of which all are catalog servers.
func (s *site) group(size int, more ...string) []*member {
	s.t.Helper()
	var all []*member
	for i := range size {
		all = append(all, s.start(fmt.Sprintf("m%d", i), more...))
		if i > 0 {
			s.succeeds(all[i], joinOrder(all[i], all[0]))
		}
	}
	for _, m := range all {
		s.online(m, size)
	}
	return all
}

func joinOrder(m, to *member) order {
	return order{"NewMemberJoinTaskCommand", "a join", map[string]string{"secretKey": secret, "memberName": m.name,
		"cacheMemberGroupHost": to.address, "isCatalog": "true"}}
}

// hangs is after how long what was waited for counts as never coming; a busy machine is slow.
const hangs = time.Minute

func (s *site) eventually(what string, done func() bool) {
	s.t.Helper()
	for end := time.Now().Add(hangs); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if done() {
			return
		}
	}
	s.t.Fatalf("it never came to it: %s", what)
}

// online waits until a member sees so many others and itself online.
func (s *site) online(m *member, count int) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("%d online as %s sees it", count, m.name), func() bool {
		seen := 0
		for _, each := range s.groupOf(m).Members {
			if each.Status == online {
				seen++
			}
		}
		return seen == count
	})
}

func (s *site) groupOf(m *member) groupShown {
	s.t.Helper()
	var group groupShown
	s.admin(m, "GET", "/cacheMemberGroup", nil, &group)
	return group
}

var client = &http.Client{Timeout: hangs, Transport: &http.Transport{
	TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}

// request gives the status and the body; status 0 is a connection that was cut.
func request(method, url string, body any) (int, []byte) {
	var text []byte
	switch value := body.(type) {
	case nil:
	case string:
		text = []byte(value)
	default:
		text, _ = json.Marshal(value)
	}
	r, err := http.NewRequest(method, url, bytes.NewReader(text))
	if err != nil {
		panic(err)
	}
	r.SetBasicAuth(adminUser, password)
	response, err := client.Do(r)
	if err != nil {
		return 0, []byte(err.Error())
	}
	defer response.Body.Close()
	got, _ := io.ReadAll(response.Body)
	return response.StatusCode, got
}

// admin puts a request to the admin port.
func (s *site) admin(m *member, method, path string, body, into any) int {
	s.t.Helper()
	code, text := request(method, fmt.Sprintf("https://%s:9445%s%s", m.address, base, path), body)
	if into != nil && code == 200 {
		if err := json.Unmarshal(text, into); err != nil {
			s.t.Fatalf("%s %s: %v in %s", method, path, err, text)
		}
	}
	return code
}

func (s *site) control(m *member, method, path string, body any) {
	s.t.Helper()
	code, text := request(method, fmt.Sprintf("http://%s:9446%s", m.address, path), body)
	if code != 200 {
		s.t.Fatalf("%s %s: %d %s", method, path, code, text)
	}
}

// submit posts an order and gives the task's id.
func (s *site) submit(m *member, o order) int {
	s.t.Helper()
	var reply map[string]int
	if code := s.admin(m, "POST", "/task", o, &reply); code != 200 {
		s.t.Fatalf("%s: %d", o.Command, code)
	}
	return reply["taskId"]
}

func (s *site) await(m *member, id int) task {
	s.t.Helper()
	var t task
	s.eventually("the task is over", func() bool {
		s.admin(m, "GET", fmt.Sprintf("/task/%d/status", id), nil, &t)
		return t.Status != "" && t.over()
	})
	return t
}

func (s *site) succeeds(m *member, o order) {
	s.t.Helper()
	if t := s.await(m, s.submit(m, o)); t.Status != success {
		s.t.Fatalf("%s: %s %s", o.Command, t.Status, t.Message)
	}
}

func (s *site) fails(m *member, o order, because string) {
	s.t.Helper()
	t := s.await(m, s.submit(m, o))
	if t.Status != failed || !strings.Contains(t.Message, because) {
		s.t.Fatalf("%s: %s %s, but should fail as %q", o.Command, t.Status, t.Message, because)
	}
}

// grid makes one at the primary and waits until it is online everywhere.
func (s *site) grid(m *member, name, body string) {
	s.t.Helper()
	var reply map[string]int
	if code := s.admin(m, "POST", "/grid/"+name, body, &reply); code != 200 {
		s.t.Fatalf("grid %s: %d", name, code)
	}
	if t := s.await(m, reply["taskId"]); t.Status != success {
		s.t.Fatalf("grid %s: %s", name, t.Message)
	}
	for _, each := range s.members {
		s.eventually("the grid is known", func() bool {
			return each.ended() || each.database().ID != m.database().ID || each.database().grid(name) != nil
		})
	}
}

func put(m *member, grid, key, value string) bool {
	code, _ := request("POST", entryURL(m, grid, key), value)
	return code == 200
}

func get(m *member, grid, key string) (int, string) {
	code, text := request("GET", entryURL(m, grid, key), nil)
	return code, string(text)
}

func entryURL(m *member, grid, key string) string {
	return fmt.Sprintf("https://%s:9444%s/grids/%s/%s/%s", m.address, dataBase, grid, grid, key)
}

// current waits until each partition has so many holders, all in step.
func (s *site) current(m *member, holders int) {
	s.t.Helper()
	s.eventually("every replica has everything", func() bool {
		for _, laid := range m.placed().Grids {
			for _, p := range laid.Partitions {
				ready := p.Primary != "" && p.Target == "" && len(p.Replicas) == holders-1
				for _, r := range p.Replicas {
					ready = ready && r.Current
				}
				if !ready {
					return false
				}
			}
		}
		return true
	})
}
