package main

import (
	"cmp"
	"errors"
	"net/http"
	"time"
)

// shipment is what a primary sends to a replica: everything, or changes.
type shipment struct {
	Spot    spot     `json:"spot"`
	From    string   `json:"from"`
	Run     string   `json:"run"` // of the replica that is meant
	Epoch   int      `json:"epoch"`
	Version int      `json:"version"`
	Serial  int      `json:"serial"`
	Changes []change `json:"changes"`
}

// stamp orders shipments: one whose answer nobody waited for must not undo what came after it.
type stamp struct{ epoch, version, serial int }

func (s stamp) before(other stamp) bool {
	return cmp.Or(cmp.Compare(s.epoch, other.epoch), cmp.Compare(s.version, other.version),
		cmp.Compare(s.serial, other.serial)) < 0
}

// How long a primary waits for a replica. Whoever is silent for longer is in its way until the leader takes it out.
const (
	writeWait = 3 * time.Second
	copyWait  = 10 * time.Second
)

func (h *holdings) send(at spot, p *part, r replica, v view, changes []change) error {
	return h.ship("write", writeWait, at, p, r, v, changes)
}

func (h *holdings) ship(how string, wait time.Duration, at spot, p *part, r replica, v view, changes []change) error {
	p.mu.Lock()
	p.sent++
	serial := p.sent
	p.mu.Unlock()
	to := v.db.member(r.Member)
	if to == nil {
		return errors.New(r.Member + " is no longer a member")
	}
	return h.m.call(to.target(), wait, how,
		shipment{at, h.m.name, v.Runs[r.Member], v.Epoch, v.Version, serial, changes}, &struct{}{})
}

// copyTo sends everything; the order is held, so that no write slips between.
func (h *holdings) copyTo(at spot, p *part, r replica, v view) error {
	p.mu.Lock()
	changes := make([]change, 0, len(p.entries))
	for n, e := range p.entries {
		if e.alive() {
			changes = append(changes, change{n.of, n.key, e})
		}
	}
	p.mu.Unlock()
	if err := h.ship("copy", copyWait, at, p, r, v, changes); err != nil {
		return err
	}
	p.mu.Lock()
	p.synced[r.Member] = v.mark(r)
	p.mu.Unlock()
	return nil
}

// accepts refuses what comes from a primary that was replaced, or is meant for an earlier run of this member.
func (h *holdings) accepts(s shipment) error {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if s.Run != h.m.incarnation {
		return &refusal{http.StatusConflict, "this member was restarted"}
	}
	if h.m.placement.olderThan(s.Epoch, s.Version) {
		return nil
	}
	if p := h.m.placement.partition(s.Spot); p == nil || p.Primary != s.From {
		return &refusal{http.StatusConflict, s.From + " is no longer the primary"}
	}
	return nil
}

func (h *holdings) onWrite(s shipment) (struct{}, error) { return struct{}{}, h.take(s, false) }

func (h *holdings) onCopy(s shipment) (struct{}, error) { return struct{}{}, h.take(s, true) }

// take is one step for whoever asks this member as a primary at the same time.
func (h *holdings) take(s shipment, whole bool) error {
	p := h.part(s.Spot)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := h.accepts(s); err != nil {
		return err
	}
	is := stamp{s.Epoch, s.Version, s.Serial}
	if !p.got.before(is) {
		return &refusal{http.StatusConflict, "a later shipment came before this one"}
	}
	p.got = is
	if whole {
		p.entries = map[name]*entry{}
	}
	p.put(s.Changes...)
	return nil
}

// shipForever brings replicas up to date: new ones by a whole copy, asynchronous ones a little late.
func (h *holdings) shipForever() {
	for h.m.pause(max(h.m.scaled(50*time.Millisecond), 10*time.Millisecond)) {
		h.m.mu.Lock()
		placed := h.m.placement
		h.m.mu.Unlock()
		var reports []copied
		for _, laid := range placed.Grids {
			for i := range laid.Partitions {
				if part := &laid.Partitions[i]; part.Primary == h.m.name && len(part.Replicas) > 0 {
					reports = append(reports, h.shipPart(spot{laid.ID, i})...)
				}
			}
		}
		h.report(placed.Leader, reports)
	}
}

func (h *holdings) shipPart(at spot) []copied {
	p := h.part(at)
	p.order.Lock()
	defer p.order.Unlock()
	v, err := h.mine(at, p)
	if err != nil {
		return nil
	}
	due := p.takeDue()
	var reports []copied
	for _, r := range v.part.Replicas {
		switch synced := p.has(r.Member, v.mark(r)); {
		case !synced:
			err = h.copyTo(at, p, r, v)
		case r.Async && len(due) > 0:
			err = h.send(at, p, r, v, due)
		default:
			err = nil
		}
		if err != nil {
			p.forget(r.Member)
		} else if !r.Current {
			p.mu.Lock()
			p.vouched[r.Member] = v.mark(r)
			p.mu.Unlock()
			reports = append(reports, copied{at, h.m.name, r.Member, v.Runs[r.Member], r.Async, r.Since, v.part.Tenure})
		}
	}
	return reports
}

func (p *part) takeDue() []change {
	p.mu.Lock()
	defer p.mu.Unlock()
	var due []change
	for len(p.late) > 0 && time.Now().After(p.late[0].due) {
		due, p.late = append(due, p.late[0].change), p.late[1:]
	}
	return due
}

func (h *holdings) report(leader string, reports []copied) {
	to := h.m.database().member(leader)
	if to == nil || len(reports) == 0 {
		return
	}
	_ = h.m.call(to.target(), time.Second, "copied", reports, &struct{}{})
}
