package main

import (
	"errors"
	"hash/fnv"
	"io"
	"net/http"
	"path"
	"slices"
	"strconv"
	"time"
)

const (
	dataBase  = "/wxsdata/v1"
	queryMost = 500
	// dataWait is how long a request waits for a partition that is on its way to another member.
	dataWait = 4 * time.Second
	// hopWait is how long one member waits for another with it.
	hopWait = 2 * time.Second
)

func (m *member) serveData() error {
	calls := http.NewServeMux()
	calls.HandleFunc(dataBase+"/grids/{grid}/{map}/{key}", m.entryRequest)
	calls.HandleFunc(dataBase+"/query/{grid}/{map}", m.queryRequest)
	return m.serveTLS(m.ports.data, m.authorized(calls), m.tls())
}

// operation is one access to one entry, as one member passes it on to another.
type operation struct {
	Spot   spot   `json:"spot"`
	Method string `json:"method"`
	Change change `json:"change"`
	// Until, in milliseconds since the epoch: later, whoever asked has tried again, and this must not overtake that.
	Until int64 `json:"until"`
}

func (m *member) entryRequest(w http.ResponseWriter, r *http.Request) {
	g, err := m.usableGrid(r.PathValue("grid"))
	if err != nil {
		answer(w, nil, err)
		return
	}
	op := operation{Method: r.Method, Change: change{Map: r.PathValue("map"), Key: r.PathValue("key")}}
	op.Spot = spot{g.ID, partitionOf(op.Change, number(g.NumPartition))}
	switch r.Method {
	case http.MethodPost:
		op.Change.Entry, err = m.sentEntry(w, r, g)
	case http.MethodGet, http.MethodDelete:
	default:
		err = &refusal{http.StatusMethodNotAllowed, "CWOBJ9750E: POST, GET and DELETE are understood"}
	}
	var found *entry
	if err == nil {
		found, err = m.route(op)
	}
	if err != nil || r.Method != http.MethodGet {
		answer(w, struct{}{}, err)
		return
	}
	w.Header().Set("Content-Type", found.Type)
	_, _ = w.Write(found.Value)
}

func (m *member) usableGrid(name string) (grid, error) {
	g := m.database().grid(name)
	switch {
	case g == nil:
		return grid{}, &refusal{http.StatusNotFound, "CWOBJ9751E: there is no grid " + name}
	case g.Status != online:
		return grid{}, &refusal{http.StatusServiceUnavailable, "CWOBJ9754E: the grid " + name + " is " + g.Status}
	}
	return *g, nil
}

func (m *member) sentEntry(w http.ResponseWriter, r *http.Request, g grid) (*entry, error) {
	value, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 8<<20))
	if err != nil {
		return nil, bad("CWOBJ9750E: " + err.Error())
	}
	ttl := number(g.TimeToLive)
	if text := r.URL.Query().Get("ttl"); text != "" {
		if ttl, err = strconv.Atoi(text); err != nil || ttl < 0 {
			return nil, bad("CWOBJ9750E: ttl must be a number of seconds")
		}
	}
	sent := &entry{Value: value, Type: r.Header.Get("Content-Type")}
	if ttl > 0 {
		sent.Expires = time.Now().Add(m.scaled(time.Duration(ttl) * time.Second)).UnixMilli()
	}
	return sent, nil
}

func partitionOf(c change, partitions int) int {
	hash := fnv.New32a()
	_, _ = io.WriteString(hash, c.Map+"\x00"+c.Key)
	return int(hash.Sum32() % uint32(partitions))
}

// route brings an operation to the partition's primary, wherever that is. Each may be repeated: it says what the entry
// is afterwards.
func (m *member) route(op operation) (*entry, error) {
	end := time.Now().Add(dataWait)
	for again := false; ; again = true {
		op.Until = time.Now().Add(hopWait).UnixMilli()
		found, err := m.tryRoute(op)
		refused := (*refusal)(nil)
		switch {
		case err == nil:
			return found, nil
		case errors.As(err, &refused) && refused.code == http.StatusNotFound:
			if again && op.Method == http.MethodDelete {
				return nil, nil // the first try did it, and only its answer was lost
			}
			return nil, err
		}
		if time.Now().After(end) {
			return nil, &refusal{http.StatusServiceUnavailable, "CWOBJ1632E: the partition has no live primary"}
		}
		if !m.pause(20 * time.Millisecond) {
			return nil, errElsewhere
		}
	}
}

func (m *member) tryRoute(op operation) (*entry, error) {
	m.mu.Lock()
	held, db := m.placement.partition(op.Spot), m.db
	m.mu.Unlock()
	if held == nil {
		return nil, errElsewhere
	}
	if held.Primary == m.name {
		return m.data.onEntry(op)
	}
	to := db.member(held.Primary)
	if to == nil {
		return nil, errElsewhere
	}
	found := &entry{}
	return found, m.call(to.target(), hopWait, "entry", op, found)
}

// onEntry carries an operation out at the primary.
func (h *holdings) onEntry(op operation) (*entry, error) {
	if op.Method == http.MethodPost {
		return op.Change.Entry, h.write(op)
	}
	p := h.part(op.Spot)
	if _, err := h.mine(op.Spot, p); err != nil {
		return nil, err
	}
	p.mu.Lock()
	found := p.entries[name{op.Change.Map, op.Change.Key}]
	p.mu.Unlock()
	if !found.alive() {
		return nil, &refusal{http.StatusNotFound, "CWOBJ9752E: there is no key " + strconv.Quote(op.Change.Key)}
	}
	if op.Method == http.MethodDelete {
		op.Change.Entry = nil
		return found, h.write(op)
	}
	return found, nil
}

// listing asks a primary for the keys of one map in one partition.
type listing struct {
	Spot spot   `json:"spot"`
	Map  string `json:"map"`
}

func (h *holdings) onKeys(l listing) ([]string, error) {
	p := h.part(l.Spot)
	if _, err := h.mine(l.Spot, p); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	keys := []string{}
	for n, e := range p.entries {
		if n.of == l.Map && e.alive() {
			keys = append(keys, n.key)
		}
	}
	return keys, nil
}

// queryRequest lists keys in order; the query is a shell pattern, and none means all.
func (m *member) queryRequest(w http.ResponseWriter, r *http.Request) {
	g, err := m.usableGrid(r.PathValue("grid"))
	if err != nil {
		answer(w, nil, err)
		return
	}
	pattern := r.FormValue("query")
	all := []string{}
	for i := range number(g.NumPartition) {
		keys, err := m.keysOf(listing{spot{g.ID, i}, r.PathValue("map")})
		if err != nil {
			answer(w, nil, &refusal{http.StatusServiceUnavailable, "CWOBJ1632E: a partition has no live primary"})
			return
		}
		all = append(all, keys...)
	}
	all = slices.DeleteFunc(all, func(key string) bool {
		matches, err := path.Match(pattern, key)
		return pattern != "" && (err != nil || !matches)
	})
	slices.Sort(all)
	answer(w, all[:min(len(all), queryMost)], nil)
}

func (m *member) keysOf(l listing) ([]string, error) {
	for end := time.Now().Add(dataWait); ; {
		var keys []string
		err := error(errElsewhere)
		m.mu.Lock()
		held, db := m.placement.partition(l.Spot), m.db
		m.mu.Unlock()
		if held != nil && held.Primary == m.name {
			keys, err = m.data.onKeys(l)
		} else if held != nil && db.member(held.Primary) != nil {
			err = m.call(db.member(held.Primary).target(), hopWait, "keys", l, &keys)
		}
		if err == nil || time.Now().After(end) || !m.pause(20*time.Millisecond) {
			return keys, err
		}
	}
}
