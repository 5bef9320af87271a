package main

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

func (a *agent) handleRun(w http.ResponseWriter, r *http.Request) {
	var it order
	if !decoded(w, r, &it) {
		return
	}
	a.mu.Lock()
	set := a.faults
	a.mu.Unlock()
	words := strings.Join(it.Words, " ")
	out, err := []byte(nil), error(nil)
	if len(it.Words) == 0 || it.Words[0] != "standin" {
		err = set.before(words, r.Context().Done())
	}
	if err == nil {
		out, err = a.run(it)
	}
	if strikes(set.Lost, words) {
		<-r.Context().Done()
	}
	if strikes(set.BadJSON, words) {
		out = out[:len(out)/2]
	}
	if err != nil {
		answer(w, said{Out: out, Err: err.Error(), Code: 1})
		return
	}
	answer(w, said{Out: out})
}

// words are a command without its options, and those.
type words struct {
	plain   []string
	options map[string]string
	order   order
}

var valued = []string{
	"--name", "--cores", "--base-port", "--failure-domain", "--join-ips", "--container", "--container-name", "--host-ips",
	"--leadership-size", "--cluster-name", "--parity-drives", "--data-drives", "--bucket-raft-size", "--pool", "--filter",
	"--thin-provision-max-ssd", "--thin-provision-min-ssd", "--access-token-timeout", "--join-secret", "--admin-password",
	"--password",
}

func parsed(it order) words {
	w := words{options: map[string]string{}, order: it}
	for i := 0; i < len(it.Words); i++ {
		word := it.Words[i]
		if name, value, found := strings.Cut(word, "="); found && strings.HasPrefix(word, "--") {
			w.options[name] = value
		} else if slices.Contains(valued, word) && i+1 < len(it.Words) {
			w.options[word] = it.Words[i+1]
			i++
		} else if strings.HasPrefix(word, "-") {
			w.options[word] = ""
		} else {
			w.plain = append(w.plain, word)
		}
	}
	return w
}

func (w words) begins(these ...string) bool {
	return len(w.plain) >= len(these) && slices.Equal(w.plain[:len(these)], these)
}

func (w words) at(i int) string {
	if i < len(w.plain) {
		return w.plain[i]
	}
	return ""
}

// secret is what came by the environment, else by an argument.
func (w words) secret(variable, option string) string {
	if text := w.order.Secret[variable]; text != "" {
		return text
	}
	return w.options[option]
}

func (a *agent) run(it order) ([]byte, error) {
	w := parsed(it)
	switch {
	case w.begins("standin"):
		return a.runStandin(w)
	case w.begins("local"):
		return a.runLocal(w)
	case w.begins("cluster", "create"):
		return nil, a.form(w)
	}
	value, err := a.known()
	if value == nil {
		return nil, errors.New("this container belongs to no cluster")
	}
	if !value.admits(it.Secret["WEKA_USERNAME"], it.Secret["WEKA_PASSWORD"]) {
		return nil, errors.New("the login is not right")
	}
	if err != nil {
		return nil, err
	}
	if read, found := a.read1(w, value); found {
		return json.Marshal(read)
	}
	edit, err := a.edited(w, value)
	if err != nil {
		return nil, err
	}
	_, err = a.change(edit)
	return nil, err
}

// --- this container ----------------------------------------------------------------------------------------------

func (a *agent) runLocal(w words) ([]byte, error) {
	at := a.container()
	switch {
	case w.begins("local", "ps"):
		return json.Marshal(a.ps())
	case w.begins("local", "setup", "container"):
		if at.Name != "" && at.Name != w.options["--name"] {
			return nil, fmt.Errorf("container %s is set up here", at.Name)
		}
		return nil, a.edit(func(c *container) {
			c.Name, c.Domain = w.options["--name"], w.options["--failure-domain"]
			c.Cores, _ = strconv.Atoi(w.options["--cores"])
			c.Port, _ = strconv.Atoi(w.options["--base-port"])
			c.Join = commas(w.options["--join-ips"])
			for option := range w.options {
				if mode, found := strings.CutSuffix(option, "-only"); found {
					c.Mode = strings.TrimPrefix(mode, "--")
				}
			}
		})
	case w.begins("local", "start"), w.begins("local", "restart"):
		if w.begins("local", "restart") {
			a.stop()
		}
		return nil, a.start()
	case w.begins("local", "stop"):
		a.mu.Lock()
		stuck := a.faults.StuckStop
		a.mu.Unlock()
		if _, force := w.options["--force"]; stuck && !force {
			return nil, errors.New("it does not stop")
		}
		a.stop()
		return nil, nil
	case w.begins("local", "rm"):
		a.stop()
		return nil, a.edit(func(c *container) { *c = container{} })
	case w.begins("local", "resources", "join-ips"):
		return nil, a.edit(func(c *container) { c.Join = commas(strings.Join(w.plain[3:], ",")) })
	case w.begins("local", "resources", "apply"):
		return nil, nil
	case w.begins("local", "run", "wapi", "container-get-identity"):
		if at.GUID == "" {
			return json.Marshal(map[string]any{"has_value": false})
		}
		value := map[string]any{"cluster_guid": at.GUID, "host_id": fmt.Sprintf("HostId<%d>", at.Host)}
		return json.Marshal(map[string]any{"has_value": true, "value": value})
	}
	return nil, fmt.Errorf("no such command: %s", strings.Join(w.plain, " "))
}

func (a *agent) ps() []map[string]any {
	at := a.container()
	if at.Name == "" {
		return []map[string]any{}
	}
	status, inside := "Stopped", "DOWN"
	if a.isRunning() {
		status, inside = "Running", "READY"
		if at.GUID == "" {
			inside = "STEM"
		}
	}
	return []map[string]any{{
		"name": at.Name, "type": at.Mode, "runStatus": status, "isRunning": status == "Running", "lastFailure": at.Failed,
		"internalStatus": map[string]any{"state": inside, "display_status": inside, "message": ""},
	}}
}

func commas(text string) []string {
	return slices.DeleteFunc(strings.Split(text, ","), func(it string) bool { return it == "" })
}

// --- the cluster -------------------------------------------------------------------------------------------------

// form makes a cluster of containers that belong to none. It has happened once this one has taken it: the others are
// told by it again and again.
func (a *agent) form(w words) error {
	at := a.container()
	if at.GUID != "" {
		return errors.New("this container belongs to a cluster already")
	}
	password, join := w.secret("WEKA_ADMIN_PASSWORD", "--admin-password"), w.secret("WEKA_JOIN_SECRET", "--join-secret")
	if password == "" || join == "" {
		return errors.New("a password and a join secret are needed")
	}
	s := newState(token(16))
	for _, address := range commas(w.options["--host-ips"]) {
		var who struct{ Name, GUID, Version string }
		if err := a.send(http.MethodGet, address, "/who", nil, &who); err != nil {
			return fmt.Errorf("%s does not answer: %w", address, err)
		}
		if who.GUID != "" {
			return fmt.Errorf("%s belongs to a cluster already", address)
		}
		s.add(who.Name, address, who.Version)
	}
	mine := slices.IndexFunc(s.hosts(), func(host int) bool { return s.Members[host].Name == at.Name })
	if mine < 0 {
		return errors.New("this container is none of those that are named")
	}
	size, _ := strconv.Atoi(w.options["--leadership-size"])
	s.elect(max(size, 5))
	s.setPassword("admin", "clusteradmin", password, token(8))
	first := ballot{1, mine}
	for _, host := range s.Leaders { // most of those who decide, before anybody believes it
		if host != mine {
			a.learn(s.Members[host], first, s)
		}
	}
	return a.take(settled{Ballot: first, Value: s, Host: mine})
}

func token(bytes int) string {
	text := make([]byte, bytes)
	_, _ = rand.Read(text)
	return hex.EncodeToString(text)
}

// read1 is what is told of the cluster.
func (a *agent) read1(w words, s *state) (any, bool) {
	switch {
	case w.begins("status"):
		return a.status(s), true
	case w.begins("cluster", "container") && (len(w.plain) == 2 || w.at(2) != "deactivate" && w.at(2) != "remove"):
		return a.members(s, w.at(2)), true
	case w.begins("cluster", "drive") && len(w.plain) == 2:
		return a.drives(s, w.options["--container"]), true
	case w.begins("user") && len(w.plain) == 1:
		found := []map[string]any{}
		for name, u := range s.Users {
			found = append(found, map[string]any{"username": name, "role": u.Role})
		}
		return found, true
	case w.begins("fs", "group") && len(w.plain) == 2:
		found := []map[string]any{}
		for _, name := range s.Groups {
			found = append(found, map[string]any{"name": name})
		}
		return found, true
	case w.begins("fs") && len(w.plain) == 1:
		found := []map[string]any{}
		for name, fs := range s.Systems {
			found = append(found, map[string]any{
				"name": name, "fs_id": fs.ID, "group": fs.Group, "total_budget": fs.Total, "is_ready": true, "status": "READY",
			})
		}
		return found, true
	}
	return nil, false
}

func (a *agent) status(s *state) map[string]any {
	alive, up := map[int]bool{}, 0
	for host, m := range s.Members {
		if alive[host] = a.alive(m); alive[host] {
			up++
		}
	}
	lacking := map[int]int{}
	for key := range s.Blocks {
		if short := s.copies() - len(a.safe(s, key, alive)); short > 0 {
			lacking[short]++
		}
	}
	states := []map[string]any{{"numFailures": 0, "MiB": len(s.Blocks), "percent": 100}}
	for short, count := range lacking {
		states = append(states, map[string]any{"numFailures": short, "MiB": count, "percent": 0})
	}
	moving := slices.ContainsFunc(s.hosts(), func(host int) bool { return s.Members[host].State == deactivating })
	word := "OK"
	if len(lacking) > 0 {
		word = "REBUILDING"
	}
	usable := 0
	for _, d := range s.Drives {
		if d.Status == active {
			usable++
		}
	}
	return map[string]any{
		"name": s.Name, "guid": s.GUID, "status": word, "io_status": s.IO, "release": a.version(), "upgrade_phase": s.Phase,
		"stripe_data_drives": s.Data, "stripe_protection_drives": s.Parity, "hot_spare": s.Spare,
		"containers": map[string]any{"total": len(s.Members), "active": up},
		"drives":     map[string]any{"total": len(s.Drives), "active": usable},
		"capacity":   map[string]any{"total_bytes": int64(usable) << 40},
		"rebuild":    map[string]any{"movingData": moving || len(lacking) > 0, "protectionState": states},
	}
}

func (a *agent) members(s *state, one string) []map[string]any {
	found := []map[string]any{}
	for _, host := range s.hosts() {
		m := s.Members[host]
		id := fmt.Sprintf("HostId<%d>", host)
		if one != "" && one != id && one != strconv.Itoa(host) {
			continue
		}
		status := "DOWN"
		if a.alive(m) {
			status = "UP"
		}
		ip, _, _ := strings.Cut(m.Address, ":")
		found = append(found, map[string]any{
			"host_id": id, "host_ip": ip, "container_name": m.Name, "status": status, "state": m.State, "sw_version": m.Version,
		})
	}
	return found
}

func (a *agent) drives(s *state, one string) []map[string]any {
	found := []map[string]any{}
	for _, uuid := range s.uuids() {
		d := s.Drives[uuid]
		if one == "" || one == strconv.Itoa(d.Host) {
			found = append(found, map[string]any{
				"uuid": uuid, "serial_number": d.Serial, "status": d.Status, "host_id": fmt.Sprintf("HostId<%d>", d.Host),
				"device_path": d.Path, "added_time": d.Added,
			})
		}
	}
	return found
}

// edited is what an order makes of the cluster's state.
func (a *agent) edited(w words, s *state) (func(*state) error, error) {
	number := func(option string, into func(*state, int)) func(*state) {
		value, err := strconv.Atoi(w.options[option])
		if w.options[option] == "" || err != nil {
			return func(*state) {}
		}
		return func(s *state) { into(s, value) }
	}
	switch {
	case w.begins("cluster", "update"):
		sets := []func(*state){
			number("--parity-drives", func(s *state, n int) { s.Parity = n }),
			number("--data-drives", func(s *state, n int) { s.Data = n }),
		}
		return func(s *state) error {
			if s.IO != "" && (w.options["--parity-drives"] != "" || w.options["--data-drives"] != "") {
				return errors.New("a stripe can't be changed once IO is started")
			}
			if name := w.options["--cluster-name"]; name != "" {
				s.Name = name
			}
			for _, set := range sets {
				set(s)
			}
			return nil
		}, nil
	case w.begins("cluster", "hot-spare"):
		count, err := strconv.Atoi(w.at(2))
		return func(s *state) error { s.Spare = count; return err }, nil
	case w.begins("cluster", "start-io"):
		return func(s *state) error {
			if len(s.Drives) < s.Data+s.Parity {
				return fmt.Errorf("%d drives are there, and a stripe needs %d", len(s.Drives), s.Data+s.Parity)
			}
			s.IO = "STARTED"
			return nil
		}, nil
	case w.begins("cluster", "container"):
		return memberEdit(w.at(2), w.at(3)), nil
	case w.begins("cluster", "drive", "add"):
		return a.addDrive(w.at(3), w.at(4), s)
	case w.begins("cluster", "drive"):
		return driveEdit(w.at(2), w.at(3)), nil
	case w.begins("user", "add"):
		password := w.secret("WEKA_NEW_PASSWORD", "--password")
		return func(s *state) error {
			if s.Users[w.at(2)] != nil || password == "" {
				return fmt.Errorf("user %s already exists, or has no password", w.at(2))
			}
			s.setPassword(w.at(2), w.at(3), password, token(8))
			return nil
		}, nil
	case w.begins("fs", "group", "create"):
		return func(s *state) error {
			if slices.Contains(s.Groups, w.at(3)) {
				return errors.New("the group already exists")
			}
			s.Groups = append(s.Groups, w.at(3))
			return nil
		}, nil
	case w.begins("fs", "create"):
		total, err := strconv.ParseInt(w.at(4), 10, 64)
		return func(s *state) error {
			if s.Systems[w.at(2)] != nil || !slices.Contains(s.Groups, w.at(3)) {
				return errors.New("the file system already exists, or there is no such group")
			}
			s.Systems[w.at(2)] = &system{ID: len(s.Systems), Group: w.at(3), Total: total}
			return err
		}, nil
	case w.begins("debug", "jrpc"):
		return phaseEdit(w), nil
	}
	return nil, fmt.Errorf("no such command: %s", strings.Join(w.plain, " "))
}

func phaseEdit(w words) func(*state) error {
	return func(s *state) error {
		switch w.at(2) {
		case "upgrade_phase_start":
			for _, word := range w.plain[3:] {
				if phase, found := strings.CutPrefix(word, "target_phase_type="); found {
					s.Phase = phase
				}
			}
		case "upgrade_phase_finish":
			s.Phase = ""
		}
		return nil
	}
}

func memberEdit(what, whom string) func(*state) error {
	return func(s *state) error {
		m, err := s.member(whom)
		if err != nil {
			return err
		}
		switch what {
		case "deactivate":
			if m.State == active {
				m.State = deactivating
			}
		case "remove":
			if m.State != inactive {
				return fmt.Errorf("container %s is %s, and must be %s", whom, m.State, inactive)
			}
			if len(s.drivesOf(m.Host)) > 0 {
				return fmt.Errorf("container %s has drives", whom)
			}
			delete(s.Members, m.Host)
		}
		s.elect(5)
		return nil
	}
}

func driveEdit(what, uuid string) func(*state) error {
	return func(s *state) error {
		d := s.Drives[uuid]
		if d == nil {
			return fmt.Errorf("given drive %s does not exist", uuid)
		}
		switch what {
		case "deactivate":
			if d.Status == active {
				d.Status = phasingOut
			}
		case "remove":
			if d.Status != inactive {
				return fmt.Errorf("drive %s is %s, and must be %s", uuid, d.Status, inactive)
			}
			delete(s.Drives, uuid)
			for key, on := range s.Blocks {
				s.Blocks[key] = slices.DeleteFunc(on, func(it string) bool { return it == uuid })
			}
		}
		return nil
	}
}

// addDrive takes a drive of this container's node, and writes onto it whose it is.
func (a *agent) addDrive(host, path string, s *state) (func(*state) error, error) {
	at := a.container()
	if host != strconv.Itoa(at.Host) {
		return nil, errors.New("a drive is added by the container that has it")
	}
	d, err := readDevice(path)
	if err != nil {
		return nil, err
	}
	if !d.Signed || d.Mounted || (d.GUID != "" && d.GUID != s.GUID) {
		return nil, fmt.Errorf("%s is not signed, is mounted, or was signed for another cluster", path)
	}
	for _, it := range s.Drives {
		if it.Serial == d.Serial {
			return nil, errors.New("Device is already in use")
		}
	}
	d.GUID = s.GUID
	if err := d.write(); err != nil {
		return nil, err
	}
	uuid := token(8)
	return func(s *state) error {
		now := time.Now().UTC().Format(time.RFC3339)
		s.Drives[uuid] = &drive{UUID: uuid, Serial: d.Serial, Path: path, Host: at.Host, Status: active, Added: now}
		return nil
	}, nil
}

// --- what only the stand-in has ----------------------------------------------------------------------------------

func (a *agent) runStandin(w words) ([]byte, error) {
	switch w.at(1) {
	case "put":
		return nil, a.putBlock(w.at(2), w.order.Input)
	case "get":
		return a.getBlock(w.at(2))
	case "faults":
		var set faults
		if text := strings.Join(w.plain[2:], " "); text != "" {
			if err := json.Unmarshal([]byte(text), &set); err != nil {
				return nil, err
			}
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		a.faults = set
		return nil, a.write("faults.json", set)
	}
	return nil, errors.New("usage: weka standin put KEY | get KEY | faults JSON")
}
