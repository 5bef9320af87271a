package main

import (
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"
)

// spot is one partition of one grid.
type spot struct {
	Grid  string `json:"grid"` // the grid's id, so that a new grid of an old name begins empty
	Index int    `json:"index"`
}

// entry is one value, with the time at which it ends in milliseconds since the epoch, or 0.
type entry struct {
	Value   []byte `json:"value"`
	Type    string `json:"type"`
	Expires int64  `json:"expires,omitempty"`
}

func (e *entry) alive() bool {
	return e != nil && (e.Expires == 0 || time.Now().UnixMilli() < e.Expires)
}

// change is one write; a nil entry removes.
type change struct {
	Map   string `json:"map"`
	Key   string `json:"key"`
	Entry *entry `json:"entry"`
}

type name struct{ of, key string }

// holdings are the parts of grids that this member has, in memory alone.
type holdings struct {
	m     *member
	mu    sync.Mutex
	parts map[spot]*part
}

// part is one partition here. Its order lets one write through at a time, replicas included, and is held while they are
// written; its mutex guards the rest.
type part struct {
	order sync.Mutex

	mu      sync.Mutex
	entries map[name]*entry
	synced  map[string]string // at the primary: which run of which member has everything, and in which way
	vouched map[string]string // at the primary: the same of those that it told the leader of, who may count on them
	sent    int               // at the primary: shipments so far
	got     stamp             // at a replica: of the last shipment
	late    []lateChange      // at the primary: what asynchronous replicas have yet to get
	frozen  time.Time         // it stepped down and waits to be replaced, until then
	epoch   int               // of the placement in which it stepped down
	version int
}

type lateChange struct {
	due time.Time
	change
}

func newHoldings(m *member) *holdings { return &holdings{m: m, parts: map[spot]*part{}} }

func (h *holdings) part(at spot) *part {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.parts[at]
	if p == nil {
		p = &part{entries: map[name]*entry{}, synced: map[string]string{}, vouched: map[string]string{}}
		h.parts[at] = p
	}
	return p
}

func (h *holdings) clear() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.parts = map[spot]*part{}
}

// trim drops what this member no longer holds. What it holds as a replica it copies to nobody.
func (h *holdings) trim(next *placement) {
	var replicas []*part
	h.mu.Lock()
	maps.DeleteFunc(h.parts, func(at spot, p *part) bool {
		held := next.partition(at)
		if held == nil || !held.holds(h.m.name) {
			return true
		}
		if held.Primary != h.m.name {
			replicas = append(replicas, p)
		}
		return false
	})
	h.mu.Unlock()
	for _, p := range replicas {
		p.mu.Lock()
		p.synced, p.vouched, p.late = map[string]string{}, map[string]string{}, nil
		p.mu.Unlock()
	}
}

var errElsewhere = &refusal{http.StatusServiceUnavailable, "CWOBJ1632E: the partition has no primary here"}

// view is the placement as one operation sees it.
type view struct {
	*placement
	part *partition
	db   *database
	run  string // of this member
}

// mine is the partition if this member is its primary by all that it knows.
func (h *holdings) mine(at spot, p *part) (view, error) {
	h.m.mu.Lock()
	v := view{h.m.placement, h.m.placement.partition(at), h.m.db, h.m.incarnation}
	holds := h.m.holdsLocked()
	h.m.mu.Unlock()
	if !holds || v.part == nil || v.part.Primary != h.m.name || v.Runs[h.m.name] != v.run {
		return v, errElsewhere
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Now().Before(p.frozen) && !v.newerThan(p.epoch, p.version) {
		return v, errElsewhere
	}
	return v, nil
}

// write carries one change out at the primary: it is acknowledged when all replicas in step have it. That are those of
// the placement, and those that the leader may have put into a later one, as this member told it that they are in step.
func (h *holdings) write(op operation) error {
	at, c := op.Spot, op.Change
	p := h.part(at)
	p.order.Lock()
	defer p.order.Unlock()
	if time.Now().UnixMilli() > op.Until {
		return errElsewhere
	}
	v, err := h.mine(at, p)
	if err != nil {
		return err
	}
	before, late := p.last(), false
	for _, r := range v.part.Replicas {
		if late = late || r.Async; r.Async {
			continue
		}
		synced := p.has(r.Member, v.mark(r))
		if !synced && (r.Current || p.vouches(r.Member, v.mark(r))) {
			if err := h.copyTo(at, p, r, v); err != nil {
				return err
			}
			synced = true
		}
		if synced {
			if err := h.send(at, p, r, v, []change{c}); err != nil {
				p.forget(r.Member)
				return err
			}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.got != before {
		return errElsewhere // this member slept, and follows another primary since, whose entries are newer
	}
	p.put(c)
	if late {
		p.late = append(p.late, lateChange{time.Now().Add(h.m.scaled(100 * time.Millisecond)), c})
	}
	return nil
}

// mark says in which way a replica is followed, in which run of its member, and at which time of being one, by which
// primary.
func (v view) mark(r replica) string {
	return fmt.Sprintf("%s %s by %s async=%t", v.Runs[r.Member], r.Since, v.part.Tenure, r.Async)
}

func (p *part) has(member, mark string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.synced[member] == mark
}

func (p *part) vouches(member, mark string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.vouched[member] == mark
}

func (p *part) forget(member string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.synced, member)
}

func (p *part) last() stamp {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.got
}

// put takes changes; the lock is held.
func (p *part) put(changes ...change) {
	for _, c := range changes {
		if c.Entry == nil {
			delete(p.entries, name{c.Map, c.Key})
		} else {
			p.entries[name{c.Map, c.Key}] = c.Entry
		}
	}
}

// freeze asks a primary to step down for a replica that then has everything.
type freeze struct {
	Spot    spot   `json:"spot"`
	To      string `json:"to"`
	Epoch   int    `json:"epoch"`
	Version int    `json:"version"`
}

func (h *holdings) onFreeze(f freeze) (struct{}, error) {
	p := h.part(f.Spot)
	p.order.Lock()
	defer p.order.Unlock()
	v, err := h.mine(f.Spot, p)
	if err != nil {
		return struct{}{}, err
	}
	r := v.part.replica(f.To)
	if r == nil || r.Async || v.newerThan(f.Epoch, f.Version) {
		return struct{}{}, errElsewhere
	}
	if !p.has(r.Member, v.mark(*r)) {
		if err := h.copyTo(f.Spot, p, *r, v); err != nil {
			return struct{}{}, err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen, p.epoch, p.version = time.Now().Add(5*time.Second), f.Epoch, f.Version
	return struct{}{}, nil
}

// handOver waits, at a stop, until others hold what this member held; not when there are no others.
func (h *holdings) handOver() {
	for end := time.Now().Add(max(h.m.scaled(20*time.Second), 2*h.m.patience())); time.Now().Before(end); {
		h.m.mu.Lock()
		others := 0
		for _, r := range h.m.db.Members {
			if r.Name != h.m.name && h.m.liveLocked(r.Name) && h.m.stateLocked(r.Name) == online {
				others++
			}
		}
		holder := h.m.placement.holder(h.m.name)
		h.m.mu.Unlock()
		if others == 0 || !holder {
			return
		}
		h.m.nudge()
		time.Sleep(10 * time.Millisecond)
	}
	h.m.say("stops with partitions that nobody took")
}
