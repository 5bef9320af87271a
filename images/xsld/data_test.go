package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// writer puts numbered keys until it is stopped, and remembers which were acknowledged.
type writer struct {
	stop  chan struct{}
	done  sync.WaitGroup
	acked []string
	count atomic.Int64 // of acked, for others to look at
	gap   time.Duration
}

func startWriter(m *member, grid string) *writer {
	w := &writer{stop: make(chan struct{})}
	w.done.Go(func() {
		last := time.Now()
		for i := 0; ; i++ {
			select {
			case <-w.stop:
				return
			default:
			}
			key := fmt.Sprintf("k%d", i)
			if put(m, grid, key, "value of "+key) {
				w.acked = append(w.acked, key)
				w.count.Add(1)
				w.gap = max(w.gap, time.Since(last))
				last = time.Now()
			}
		}
	})
	return w
}

func (w *writer) end() []string {
	close(w.stop)
	w.done.Wait()
	return w.acked
}

// lost is which of the keys are not there any more. A partition that is on its way to another member is waited for.
func lost(m *member, grid string, keys []string) (gone []string) {
	end := time.Now().Add(hangs)
	for _, key := range keys {
		code, text := get(m, grid, key)
		for code != 200 && code != 404 && time.Now().Before(end) {
			code, text = get(m, grid, key)
		}
		if code != 200 || text != "value of "+key {
			gone = append(gone, fmt.Sprintf("%s: %d %s", key, code, text))
		}
	}
	return gone
}

func (s *site) whole(m *member, grid string, w *writer) {
	s.t.Helper()
	s.eventually("it can be written", func() bool { return w.count.Load() >= 5 })
	acked := w.end()
	if gone := lost(m, grid, acked); len(gone) > 0 {
		s.t.Errorf("of %d acknowledged writes %d are lost: %v", len(acked), len(gone), gone[:min(len(gone), 5)])
	}
	s.t.Logf("%d writes, longest gap %v", len(acked), w.gap)
}

// leads tells whether a member is the primary of any partition of the grid g.
func leads(p *placement, name string) bool {
	return slices.ContainsFunc(p.Grids["g"].Partitions, func(part partition) bool { return part.Primary == name })
}

func TestDataAPI(t *testing.T) {
	s := newSite(t)
	all := s.group(2)
	s.grid(all[0], "g", `{"numPartition":"5"}`)
	for i := range 20 {
		if !put(all[i%2], "g", fmt.Sprintf("key%02d", i), "v") {
			t.Fatal("not written")
		}
	}
	for _, m := range all {
		if code, text := get(m, "g", "key07"); code != 200 || text != "v" {
			t.Errorf("%s: %d %s", m.name, code, text)
		}
	}
	var keys []string
	_, text := request("GET", fmt.Sprintf("https://%s:9444%s/query/g/g?query=key1*", all[1].address, dataBase), nil)
	if err := json.Unmarshal(text, &keys); err != nil || len(keys) != 10 || keys[0] != "key10" {
		t.Errorf("%s", text)
	}
	request("DELETE", entryURL(all[0], "g", "key07"), nil)
	if code, text := get(all[1], "g", "key07"); code != 404 || text != "{\"error\":\"CWOBJ9752E: there is no key \\\"key07\\\"\"}\n" {
		t.Errorf("%d %s", code, text)
	}
	asked := time.Now()
	request("POST", entryURL(all[0], "g", "brief")+"?ttl=200", "v") // 2 s at this speed
	if code, _ := get(all[0], "g", "brief"); code != 200 && time.Since(asked) < 2*time.Second {
		t.Errorf("before its time: %d", code)
	}
	s.eventually("it ends", func() bool { code, _ := get(all[1], "g", "brief"); return code == 404 })
	if code, _ := get(all[0], "nothing", "key"); code != 404 {
		t.Errorf("a grid that is not there: %d", code)
	}
}

// With a synchronous replica no acknowledged write is lost when a member dies, whichever it is.
func TestSyncReplicaSurvives(t *testing.T) {
	for _, victim := range []string{"m0", "m1"} {
		t.Run(victim, func(t *testing.T) {
			s := newSite(t)
			all := s.group(3)
			s.grid(all[0], "g", `{"numPartition":"7","numSyncReplicas":"1","numAsyncReplicas":"0"}`)
			s.current(all[2], 2)
			w := startWriter(all[2], "g")
			time.Sleep(300 * time.Millisecond)
			s.members[victim].kill()
			time.Sleep(1200 * time.Millisecond)
			s.whole(all[2], "g", w)
			s.current(all[2], 2)
		})
	}
}

// One member after another is killed or stopped and returns, with the group whole in between: nothing is lost.
func TestRollingDeaths(t *testing.T) {
	s := newSite(t)
	s.group(3)
	s.grid(s.members["m0"], "g", `{"numPartition":"5","numSyncReplicas":"1","numAsyncReplicas":"0"}`)
	var w *writer
	for i, victim := range []string{"m0", "m1", "m2", "m1", "m0"} {
		other := s.members[fmt.Sprint("m", (i+1)%3)]
		if other.name == victim {
			other = s.members[fmt.Sprint("m", (i+2)%3)]
		}
		s.online(other, 3)
		s.current(other, 2)
		w = startWriter(other, "g")
		time.Sleep(100 * time.Millisecond)
		if i%2 == 0 {
			s.members[victim].kill()
		} else {
			s.members[victim].stop()
		}
		time.Sleep(50 * time.Millisecond)
		s.start(victim)
		s.online(other, 3)
		s.current(other, 2)
		s.whole(other, "g", w)
	}
}

// A member that was out of sight gets all anew that it is to hold once more: it has missed what was written meanwhile.
func TestReturnedReplicaIsCopiedAnew(t *testing.T) {
	s := newSite(t)
	all := s.group(3, "XSLD_SILENCE_SECONDS=1")
	s.grid(all[0], "g", `{"numPartition":"7","numSyncReplicas":"1","numAsyncReplicas":"0"}`)
	s.current(all[0], 2)
	w := startWriter(all[0], "g")
	s.eventually("it holds some", func() bool { return all[0].placed().holder("m2") })
	s.control(all[2], "PUT", "/faults", `{"cutPeers":true}`)
	s.eventually("others hold it", func() bool { return !all[0].placed().holder("m2") })
	time.Sleep(200 * time.Millisecond)
	s.control(all[2], "PUT", "/faults", `{}`)
	s.online(all[0], 3)
	s.eventually("it leads some again", func() bool { return leads(all[0].placed(), "m2") })
	s.current(all[0], 2)
	s.whole(all[0], "g", w)
}

// A member that returns before its death was noticed holds nothing, and is not taken for one that does.
func TestQuickRestart(t *testing.T) {
	s := newSite(t)
	all := s.group(2)
	s.grid(all[0], "g", `{"numPartition":"3","numSyncReplicas":"1","numAsyncReplicas":"0"}`)
	s.current(all[0], 2)
	w := startWriter(all[0], "g")
	time.Sleep(200 * time.Millisecond)
	all[1].kill()
	s.start("m1")
	time.Sleep(500 * time.Millisecond)
	s.whole(all[0], "g", w)
}

// Without any replica a death loses data, and the partition comes back empty.
func TestNoReplicaLoses(t *testing.T) {
	s := newSite(t)
	all := s.group(2)
	s.grid(all[0], "g", `{"numPartition":"7","numAsyncReplicas":"0"}`)
	s.eventually("both lead some", func() bool { return leads(all[0].placed(), "m0") && leads(all[0].placed(), "m1") })
	s.current(all[0], 1) // who led some before them keeps a copy for a moment
	w := startWriter(all[0], "g")
	s.eventually("some are written", func() bool { return w.count.Load() >= 30 })
	acked := w.end()
	all[1].kill()
	s.eventually("the loss is counted", func() bool {
		count := 0
		for _, p := range all[0].placed().Grids["g"].Partitions {
			count += p.Lost
		}
		return count > 0
	})
	if gone := lost(all[0], "g", acked); len(gone) == 0 || len(gone) == len(acked) {
		t.Errorf("%d of %d are lost", len(gone), len(acked))
	}
}

// What an asynchronous replica had not got yet is lost; what it had is not.
func TestAsyncReplicaIsLate(t *testing.T) {
	s := newSite(t)
	all := s.group(2, "XSLD_SPEED=1", "XSLD_START_SECONDS=0", "XSLD_TASK_SECONDS=1")
	s.grid(all[0], "g", `{"numPartition":"3"}`)
	s.current(all[0], 2)
	if !put(all[0], "g", "early", "value of early") {
		t.Fatal("not written")
	}
	early := change{Map: "g", Key: "early"}
	at := spot{all[0].database().grid("g").ID, partitionOf(early, 3)}
	s.eventually("its replica has it", func() bool {
		held := all[0].placed().partition(at)
		if len(held.Replicas) == 0 {
			return false
		}
		copied := s.members[held.Replicas[0].Member].data.part(at)
		copied.mu.Lock()
		defer copied.mu.Unlock()
		return copied.entries[name{early.Map, early.Key}] != nil
	})
	for i := range 10 {
		put(all[0], "g", fmt.Sprint("late", i), "v")
	}
	victim := all[0].placed().Grids["g"].Partitions[at.Index].Primary
	s.members[victim].kill()
	delete(s.members, victim)
	for _, survivor := range s.members {
		s.eventually("the survivor is primary of all", func() bool {
			for _, p := range survivor.placed().Grids["g"].Partitions {
				if p.Primary != survivor.name {
					return false
				}
			}
			return true
		})
		if gone := lost(survivor, "g", []string{"early"}); len(gone) > 0 {
			t.Error(gone)
		}
	}
}

// A removal and a graceful stop move data first, even what has no replica.
func TestLeavingMovesData(t *testing.T) {
	for how, leave := range map[string]func(*site, []*member){
		"remove": func(s *site, all []*member) { s.succeeds(all[0], remove("m2")) },
		"stop":   func(_ *site, all []*member) { all[2].stop() },
	} {
		t.Run(how, func(t *testing.T) {
			s := newSite(t)
			all := s.group(3)
			s.grid(all[0], "g", `{"numPartition":"7","numAsyncReplicas":"0"}`)
			s.current(all[1], 1)
			s.eventually("m2 holds some", func() bool { return all[1].placed().holder("m2") })
			w := startWriter(all[1], "g")
			time.Sleep(200 * time.Millisecond)
			leave(s, all)
			time.Sleep(100 * time.Millisecond)
			s.whole(all[1], "g", w)
		})
	}
}

// A new member gets its share while clients write.
func TestJoinRebalances(t *testing.T) {
	s := newSite(t)
	all := s.group(2)
	s.grid(all[0], "g", `{"numPartition":"7","numSyncReplicas":"1","numAsyncReplicas":"0"}`)
	s.current(all[0], 2)
	w := startWriter(all[0], "g")
	third := s.start("m2")
	s.succeeds(third, joinOrder(third, all[0]))
	s.eventually("m2 is primary of two", func() bool {
		count := 0
		for _, p := range all[0].placed().Grids["g"].Partitions {
			if p.Primary == "m2" {
				count++
			}
		}
		return count >= 2
	})
	s.current(all[0], 2)
	s.whole(all[0], "g", w)
}

// The next catalog server takes over; without any, nothing is moved.
func TestCatalogServerDies(t *testing.T) {
	s := newSite(t)
	first, second := s.start("m0"), s.start("m1")
	o := joinOrder(second, first)
	o.Parameters["isCatalog"] = "false"
	s.succeeds(second, o)
	s.online(first, 2)
	s.grid(first, "g", `{"numPartition":"3","numSyncReplicas":"1","numAsyncReplicas":"0"}`)
	s.current(second, 2)
	first.kill()
	s.eventually("its death is seen", func() bool { return s.groupOf(second).Members[0].Status == offline })
	time.Sleep(300 * time.Millisecond)
	if !second.placed().holder("m0") {
		t.Error("partitions were moved without a catalog server")
	}
}
