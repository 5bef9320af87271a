package main

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
)

// Whatever comes and goes, a placement is sound, keeps what some member has, and comes to rest.
func TestArrangeAnyWorld(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		grids := []grid{defaultGrid("a"), defaultGrid("b")}
		for i := range grids {
			grids[i].ID = grids[i].Name
			grids[i].NumSyncReplicas = fmt.Sprint(random.IntN(3))
			grids[i].NumAsyncReplicas = fmt.Sprint(random.IntN(2))
		}
		p, w := &placement{}, world{grids: grids}
		for range 12 {
			w.members = nil
			for i := range 4 {
				if random.IntN(3) > 0 {
					w.members = append(w.members, present{fmt.Sprint("m", i), fmt.Sprint("run", random.IntN(2)), random.IntN(4) > 0})
				}
			}
			rounds := 0
			for before := (*placement)(nil); !reflect.DeepEqual(before, p); rounds++ {
				before = cloned(p)
				holders := kept(p, w)
				for _, s := range p.arrange(w) {
					p.swapped(s)
				}
				checkSound(t, seed, p, w, holders)
				finishCopies(p)
				if rounds > 100 {
					t.Fatalf("seed %d: it does not come to rest", seed)
				}
			}
			checkRest(t, seed, p, w)
		}
	}
}

// As long as a member is only out of sight, nothing is lost, and nobody takes over who has not everything.
func TestArrangeOutOfSight(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		g := defaultGrid("g")
		g.ID, g.NumSyncReplicas, g.NumAsyncReplicas = "g", fmt.Sprint(random.IntN(3)), fmt.Sprint(random.IntN(2))
		p := &placement{}
		for round := range 40 {
			w := world{grids: []grid{g}, away: map[string]bool{}}
			for i := range 4 {
				if name := fmt.Sprint("m", i); round == 0 || random.IntN(3) > 0 {
					w.members = append(w.members, present{name, "run", round == 0 || random.IntN(4) > 0})
				} else {
					w.away[name] = random.IntN(2) == 0
				}
			}
			before := cloned(p)
			for _, s := range p.arrange(w) {
				p.swapped(s)
			}
			checkKept(t, fmt.Sprintf("seed %d, round %d", seed, round), before, p)
			copyFrom(p, w)
		}
	}
}

// checkKept is about a step in which nobody was known to be gone.
func checkKept(t *testing.T, when string, before, p *placement) {
	t.Helper()
	for name, laid := range before.Grids {
		for i, old := range laid.Partitions {
			now := p.Grids[name].Partitions[i]
			heir := old.replica(now.Primary)
			if now.Primary != old.Primary && (heir == nil || heir.Async || !heir.Current) || now.Lost > 0 {
				t.Fatalf("%s: from %+v to %+v", when, old, now)
			}
		}
	}
}

// copyFrom completes the copies of who can be reached from their primaries.
func copyFrom(p *placement, w world) {
	here := map[string]bool{}
	for _, each := range w.members {
		here[each.name] = true
	}
	for _, laid := range p.Grids {
		for i := range laid.Partitions {
			part := &laid.Partitions[i]
			for j := range part.Replicas {
				r := &part.Replicas[j]
				r.Current = r.Current || here[part.Primary] && here[r.Member]
			}
		}
	}
}

// Who is gone is replaced by the best that is left, but only when nobody is away who may have more.
func TestArrangeWaitsForTheBest(t *testing.T) {
	g := defaultGrid("g")
	g.ID, g.NumPartition = "g", "1"
	p := &placement{Runs: map[string]string{"m0": "run", "m1": "run", "m2": "run"}, Grids: map[string]*laidOut{"g": {ID: "g",
		Partitions: []partition{{Primary: "m0", Replicas: []replica{{Member: "m1", Current: true}, {Member: "m2", Current: true, Async: true}}}}}}}
	part := &p.Grids["g"].Partitions[0]
	late := []present{{"m2", "run", true}}

	p.arrange(world{grids: []grid{g}, members: late, away: map[string]bool{"m0": true, "m1": true}})
	if part.Primary != "m0" {
		t.Errorf("all others are silent: %+v", part)
	}
	p.arrange(world{grids: []grid{g}, members: late, away: map[string]bool{"m1": true}})
	if part.Primary != "" || part.replica("m1") == nil {
		t.Errorf("the primary is gone, and its copy silent: %+v", part)
	}
	p.arrange(world{grids: []grid{g}, members: late})
	if part.Primary != "m2" || part.Lost != 0 {
		t.Errorf("both are gone: %+v", part)
	}
}

// kept is who of each partition's present holders has a whole copy.
func kept(p *placement, w world) map[spot]int {
	runs := map[string]string{}
	for _, each := range w.members {
		runs[each.name] = each.run
	}
	counts := map[spot]int{}
	for _, laid := range p.Grids {
		for i, part := range laid.Partitions {
			for _, name := range append([]string{part.Primary}, names(part.Replicas)...) {
				if runs[name] != "" && runs[name] == p.Runs[name] {
					counts[spot{laid.ID, i}]++
				}
			}
		}
	}
	return counts
}

func names(replicas []replica) (all []string) {
	for _, r := range replicas {
		if r.Current {
			all = append(all, r.Member)
		}
	}
	return all
}

func finishCopies(p *placement) {
	for _, laid := range p.Grids {
		for i := range laid.Partitions {
			for j := range laid.Partitions[i].Replicas {
				laid.Partitions[i].Replicas[j].Current = true
			}
		}
	}
}

func checkSound(t *testing.T, seed uint64, p *placement, w world, holders map[spot]int) {
	t.Helper()
	for _, laid := range p.Grids {
		for i, part := range laid.Partitions {
			seen := map[string]bool{part.Primary: true}
			for _, r := range part.Replicas {
				if seen[r.Member] {
					t.Fatalf("seed %d: %s holds a partition twice: %+v", seed, r.Member, part)
				}
				seen[r.Member] = true
			}
			if part.Target != "" && part.replica(part.Target) == nil {
				t.Fatalf("seed %d: the target has no copy: %+v", seed, part)
			}
			if holders[spot{laid.ID, i}] > 0 && part.Primary == "" {
				t.Fatalf("seed %d: a partition with holders has no primary: %+v", seed, part)
			}
		}
	}
}

// checkRest is about a placement that does not change any more.
func checkRest(t *testing.T, seed uint64, p *placement, w world) {
	t.Helper()
	stays := map[string]bool{}
	for _, each := range w.members {
		if each.stays {
			stays[each.name] = true
		}
	}
	if len(stays) == 0 {
		return
	}
	primaries := map[string]int{}
	for _, g := range w.grids {
		for _, part := range p.Grids[g.Name].Partitions {
			primaries[part.Primary]++
			wanted := min(number(g.NumSyncReplicas)+number(g.NumAsyncReplicas), len(stays)-1)
			if !stays[part.Primary] || len(part.Replicas) != wanted {
				t.Fatalf("seed %d: %d stay, %d replicas are wanted: %+v", seed, len(stays), wanted, part)
			}
		}
	}
	for name := range stays {
		for other := range stays {
			if primaries[name] > primaries[other]+1 {
				t.Fatalf("seed %d: not in balance: %v", seed, primaries)
			}
		}
	}
}
