package main

import (
	"cmp"
	"maps"
	"slices"
)

// world is what a placement must fit: the grids that are wanted and the members that are there.
type world struct {
	grids   []grid
	members []present // in the order of the group's list
	// away are those that can't be seen, and may live and hold what they held: true once they are silent for so long
	// that another may take their place. Who is neither here nor away is gone with all that it held.
	away map[string]bool
}

type present struct {
	name  string
	run   string
	stays bool // a leaving one holds what it has until it is moved
}

// swap is a change of a partition's primary while the old one lives, which must be told first.
type swap struct {
	at       spot
	from, to string
}

// arrange changes a placement towards what the world wants, by one step for each partition. The swaps are what it would
// like to do with the primaries that live; they are carried out by the caller.
func (p *placement) arrange(w world) []swap {
	a := &arrangement{placement: p, world: w, here: map[string]present{}}
	for _, each := range w.members {
		a.here[each.name] = each
		if each.stays {
			a.stayers = append(a.stayers, each.name)
		}
	}
	a.fitGrids()
	a.dropGone()
	var swaps []swap
	a.each(func(g grid, at spot, part *partition) {
		a.fill(part)
		if a.here[part.Primary].run == "" {
			return // nothing can be copied before it is back
		}
		a.replicate(part, min(number(g.NumSyncReplicas), len(a.stayers)-1), number(g.NumAsyncReplicas))
		swaps = append(swaps, a.aim(at, part)...)
	})
	a.balance()
	return swaps
}

type arrangement struct {
	*placement
	world   world
	here    map[string]present
	stayers []string
}

func (a *arrangement) each(do func(grid, spot, *partition)) {
	for _, g := range a.world.grids {
		for i := range a.Grids[g.Name].Partitions {
			do(g, spot{g.ID, i}, &a.Grids[g.Name].Partitions[i])
		}
	}
}

// fitGrids lays new grids out, yet without holders, and forgets those that are no more.
func (a *arrangement) fitGrids() {
	if a.Grids == nil {
		a.Grids = map[string]*laidOut{}
	}
	wanted := map[string]string{}
	for _, g := range a.world.grids {
		wanted[g.Name] = g.ID
		if laid := a.Grids[g.Name]; laid == nil || laid.ID != g.ID {
			a.Grids[g.Name] = &laidOut{g.ID, make([]partition, number(g.NumPartition))}
		}
	}
	maps.DeleteFunc(a.Grids, func(name string, _ *laidOut) bool { return wanted[name] == "" })
}

// dropGone takes out who is dead or was restarted, and finds heirs for what they were the primaries of.
func (a *arrangement) dropGone() {
	gone := func(name string) bool {
		_, away := a.world.away[name]
		return !away && (a.here[name].run == "" || a.here[name].run != a.Runs[name])
	}
	a.each(func(_ grid, _ spot, part *partition) {
		held := part.Primary != "" || len(part.Replicas) > 0
		part.Replicas = slices.DeleteFunc(part.Replicas, func(r replica) bool { return gone(r.Member) })
		if part.Primary != "" && gone(part.Primary) {
			part.Primary = ""
		}
		a.succeed(part)
		if part.Target != "" && part.replica(part.Target) == nil {
			part.Target = ""
		}
		if held && part.Primary == "" && len(part.Replicas) == 0 {
			part.Lost++
		}
	})
	runs := map[string]string{}
	for name := range a.world.away {
		if run := a.Runs[name]; run != "" {
			runs[name] = run
		}
	}
	for _, each := range a.world.members {
		runs[each.name] = each.run
	}
	a.Runs = runs
}

// succeed gives a partition a primary that is here, if one may take the place of the last: of one that is silent only who
// has everything that was acknowledged. Of one that is gone the best copy that is left; but as long as one that may have
// everything is away, it is waited for.
func (a *arrangement) succeed(part *partition) {
	silent := a.world.away[part.Primary]
	if a.here[part.Primary].run != "" {
		part.Replicas = slices.DeleteFunc(part.Replicas, func(r replica) bool { return a.world.away[r.Member] })
		return
	}
	if part.Primary != "" && !silent {
		return
	}
	var here []replica
	waits := false
	for _, r := range part.Replicas {
		if a.here[r.Member].run != "" {
			here = append(here, r)
		} else {
			waits = waits || rank(r) == 0
		}
	}
	if len(here) == 0 {
		return
	}
	best := slices.MinFunc(here, func(x, y replica) int { return cmp.Compare(rank(x), rank(y)) })
	if rank(best) == 0 || part.Primary == "" && !waits {
		part.promote(best.Member, a.since())
	}
}

func rank(r replica) int {
	switch {
	case r.Current && !r.Async:
		return 0
	case !r.Async:
		return 2
	case r.Current:
		return 1
	}
	return 3
}

func (p *partition) promote(name, tenure string) {
	p.Primary, p.Tenure, p.Target = name, tenure, ""
	p.Replicas = slices.DeleteFunc(p.Replicas, func(r replica) bool { return r.Member == name })
}

// fill gives a partition that nobody holds to the one who has the fewest.
func (a *arrangement) fill(part *partition) {
	if part.Primary == "" && len(part.Replicas) == 0 && len(a.stayers) > 0 {
		part.Primary, part.Tenure = a.least(a.stayers, part), a.since()
	}
}

// least is who of the names has the least to do and does not hold the partition; empty if there is none.
func (a *arrangement) least(names []string, part *partition) string {
	primaries, all := a.loads()
	free := slices.DeleteFunc(slices.Clone(names), part.holds)
	if len(free) == 0 {
		return ""
	}
	return slices.MinFunc(free, func(x, y string) int {
		return cmp.Or(cmp.Compare(all[x], all[y]), cmp.Compare(primaries[x], primaries[y]))
	})
}

func (a *arrangement) loads() (primaries, all map[string]int) {
	primaries, all = map[string]int{}, map[string]int{}
	for _, laid := range a.Grids {
		for _, part := range laid.Partitions {
			primaries[part.Primary]++
			all[part.Primary]++
			for _, r := range part.Replicas {
				all[r.Member]++
			}
		}
	}
	return primaries, all
}

// replicate gives a partition as many replicas of each sort as there can be on members that stay. A replica on one that
// leaves goes when the others are complete.
func (a *arrangement) replicate(part *partition, syncs, asyncs int) {
	syncs = max(syncs, 0)
	asyncs = max(min(asyncs, len(a.stayers)-1-syncs), 0)
	_, load := a.loads()
	slices.SortStableFunc(part.Replicas, func(x, y replica) int {
		return cmp.Or(cmp.Compare(rank(x), rank(y)), cmp.Compare(load[x.Member], load[y.Member]))
	})
	kept, left := []replica{}, []replica{}
	complete := true
	take := func(r replica, async bool) {
		if r.Async && !async {
			r.Current = false // what came late must be copied anew before it counts as in step
		}
		r.Async = async
		complete = complete && r.Current
		kept = append(kept, r)
	}
	for _, r := range part.Replicas {
		switch {
		case r.Member == part.Target:
			if a.here[part.Primary].stays && syncs > 0 {
				syncs-- // the old primary takes its place
			}
			take(r, false)
		case !a.here[r.Member].stays:
			left = append(left, r)
		case syncs > 0:
			syncs--
			take(r, false)
		case asyncs > 0:
			asyncs--
			take(r, true)
		default:
			left = append(left, r)
		}
	}
	add := func(count int, async bool) {
		for range count {
			part.Replicas = append(slices.Clone(kept), left...)
			if name := a.least(a.stayers, part); name != "" {
				take(replica{Member: name, Since: a.since()}, async)
			}
		}
	}
	add(syncs, false)
	add(asyncs, true)
	if part.Replicas = kept; !complete || len(a.stayers) == 0 {
		part.Replicas = append(kept, left...)
	}
}

// aim moves a primary off a member that leaves: first a complete copy at the target, then the swap.
func (a *arrangement) aim(at spot, part *partition) []swap {
	if part.Primary == "" {
		return nil
	}
	if target := part.Target; target != "" {
		if !a.here[target].stays {
			part.Target = ""
			return nil
		}
		if part.replica(target).Current {
			return []swap{{at, part.Primary, target}}
		}
		return nil
	}
	if a.here[part.Primary].stays {
		return nil
	}
	for _, r := range part.Replicas {
		if a.here[r.Member].stays && r.Current && !r.Async {
			return []swap{{at, part.Primary, r.Member}}
		}
	}
	for _, r := range part.Replicas {
		if a.here[r.Member].stays {
			a.setTarget(part, r.Member)
			return nil
		}
	}
	if name := a.least(a.stayers, part); name != "" {
		a.setTarget(part, name)
	}
	return nil
}

func (a *arrangement) setTarget(part *partition, name string) {
	part.Target = name
	r := part.replica(name)
	if r == nil {
		part.Replicas = append(part.Replicas, replica{Member: name, Since: a.since()})
		return
	}
	r.Current = r.Current && !r.Async
	r.Async = false
}

// balance moves a primary from who has the most to who has the fewest, a few at a time and only when all else is done.
func (a *arrangement) balance() {
	quiet := len(a.stayers) > 1
	a.each(func(_ grid, _ spot, part *partition) {
		quiet = quiet && part.Target == "" && a.here[part.Primary].stays
		for _, r := range part.Replicas {
			quiet = quiet && r.Current
		}
	})
	for range 3 {
		if !quiet {
			return
		}
		quiet = a.moveOne()
	}
}

// moveOne aims one partition; false when the members have about the same already.
func (a *arrangement) moveOne() bool {
	primaries := map[string]int{}
	a.each(func(_ grid, _ spot, part *partition) {
		primaries[cmp.Or(part.Target, part.Primary)]++
	})
	byLoad := func(x, y string) int { return cmp.Compare(primaries[x], primaries[y]) }
	few, many := slices.MinFunc(a.stayers, byLoad), slices.MaxFunc(a.stayers, byLoad)
	if primaries[many]-primaries[few] < 2 {
		return false
	}
	moved := false
	a.each(func(_ grid, _ spot, part *partition) {
		if !moved && part.Target == "" && part.Primary == many {
			a.setTarget(part, few)
			moved = true
		}
	})
	return moved
}

// swapped lets the old primary of a partition, which stepped down, stay as a replica, in step, until that is one too many.
func (p *placement) swapped(s swap) {
	part := p.partition(s.at)
	part.promote(s.to, p.since())
	part.Replicas = append(part.Replicas, replica{Member: s.from, Current: true, Since: p.since()})
}
