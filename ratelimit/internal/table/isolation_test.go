package table

import (
	"hash/maphash"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/time/rate"
	"pgregory.net/rapid"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// world is a table and the terms of its plans.
type world struct {
	*Table
	plans map[string]*Terms
}

// neighbours drive a table that all keys share beside one for each key alone.
type neighbours struct {
	together world
	alone    map[string]world
	plan     map[string]string
	excused  map[string]bool // was served by the spare bucket, or its own clock was off
	grants   []pairOfGrants
	now      int64
}

type pairOfGrants struct {
	id, plan        string
	together, alone Grant
}

// someSeeds let a failure be seen again: when a bucket is swept depends on them.
var someSeeds = [...]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed(), maphash.MakeSeed()}

func newWorld(maxKeys int) world {
	w := world{New(epoch, maxKeys), map[string]*Terms{}}
	w.seeds = someSeeds
	return w
}

func newNeighbours(t *rapid.T, maxKeys int) *neighbours {
	n := &neighbours{
		together: newWorld(maxKeys),
		alone:    map[string]world{}, plan: map[string]string{}, excused: map[string]bool{},
	}
	for i := range 5 {
		n.alone[strconv.Itoa(i)] = newWorld(1000)
	}
	n.reload(t)
	return n
}

// reload gives all plans new numbers, at the same instant everywhere.
func (n *neighbours) reload(t *rapid.T) {
	for _, plan := range []string{"", "a", "b"} {
		p, err := NewLimit(rate.Limit(rapid.SampledFrom([]float64{0.1, 1, 10, 1000}).Draw(t, "rate")), rapid.IntRange(1, 8).Draw(t, "burst"))
		if err != nil {
			t.Fatal(err)
		}
		change := func(w world) {
			w.Change(n.now, func(replace func(*Terms, Limit) *Terms) { w.plans[plan] = replace(w.plans[plan], p) })
		}
		change(n.together)
		for _, w := range n.alone {
			change(w)
		}
	}
}

// clocks are how far the clock of a request may be off.
var clocks = []time.Duration{
	0, 0, 0, 0, 0, 0, -time.Minute, -time.Hour, -24 * time.Hour, 24 * time.Hour, 10 * 365 * 24 * time.Hour,
}

func (n *neighbours) id(t *rapid.T) string { return strconv.Itoa(rapid.IntRange(0, 4).Draw(t, "key")) }

// excuse notes keys that are about to start, on a plan or at all, while a spare bucket
// is not full: the one thing that keys share.
func (n *neighbours) excuse(id, plan string) {
	w := n.together
	key := w.Hash("", id)
	in := w.shard(key).findLocked(key)
	if in != nil && w.book.at(in.terms).Latest() == w.plans[plan] {
		return
	}
	if n.sharing() {
		n.excused[id] = true
	}
}

// sharing reports whether any spare bucket is not full.
func (n *neighbours) sharing() bool {
	return slices.ContainsFunc(*n.together.book.all.Load(), func(t *Terms) bool { return !t.atRest.Load() })
}

func (w world) ask(id, plan string, now, cost int64) (a Answer) {
	w.Take(w.Hash("", id), w.plans[plan], Ask{now, cost, 0}, &a)
	w.Sweep(now)
	return a
}

func (n *neighbours) take(t *rapid.T) {
	id := n.id(t)
	plan := n.plan[id]
	cost := rapid.Int64Range(1, 9).Draw(t, "cost")
	off := rapid.SampledFrom(clocks).Draw(t, "off")
	now := n.now + int64(off)
	n.excuse(id, plan)
	if off != 0 {
		n.excused[id] = true
		for other := range n.alone {
			n.excused[other] = n.excused[other] || n.sharing() // what they share goes by all their clocks
		}
		defer n.together.Sweep(n.now) // another clock is right: two wrong ones in a row are believed
	}
	together, alone := n.together.ask(id, plan, now, cost), n.alone[id].ask(id, plan, now, cost)
	n.excused[id] = n.excused[id] || together.Overflow
	if together.OK && alone.OK {
		n.grants = append(n.grants, pairOfGrants{
			id, plan, Grant{now, cost, together.Mark}, Grant{now, cost, alone.Mark},
		})
	}
	together.Mark, alone.Mark = 0, 0
	if together != alone && !n.excused[id] {
		t.Fatalf("key %s on plan %q: among others %+v, alone %+v", id, plan, together, alone)
	}
}

// settle charges more for a grant, or gives some of it back.
func (n *neighbours) update(t *rapid.T, change func(w world, key Hash, want *Terms, g Grant)) {
	if len(n.grants) == 0 {
		return
	}
	i := rapid.IntRange(0, len(n.grants)-1).Draw(t, "grant")
	g := n.grants[i]
	n.grants = slices.Delete(n.grants, i, i+1)
	n.excuse(g.id, g.plan)
	for w, g2 := range map[*world]Grant{&n.together: g.together, ptr(n.alone[g.id]): g.alone} {
		change(*w, w.Hash("", g.id), w.plans[g.plan], g2)
	}
}

func ptr(w world) *world { return &w }

func (n *neighbours) undo(t *rapid.T) {
	part := rapid.Int64Range(1, 9).Draw(t, "part")
	n.update(t, func(w world, key Hash, want *Terms, g Grant) {
		w.Refund(key, want, n.now, g, min(part, g.Cost))
	})
}

func (n *neighbours) charge(t *rapid.T) {
	more := rapid.SampledFrom([]int64{1, 5, 100, 100_000}).Draw(t, "more")
	before := n.spares()
	n.update(t, func(w world, key Hash, want *Terms, _ Grant) { w.Charge(key, want, n.now, more) })
	if after := n.spares(); !slices.Equal(before, after) {
		t.Fatalf("a charge changed what newcomers start from: %v, then %v", before, after)
	}
}

// spares are the balances that newcomers start from.
func (n *neighbours) spares() (tokens []int64) {
	for _, t := range *n.together.book.all.Load() {
		tokens = append(tokens, t.spare.tokens)
	}
	return tokens
}

func (n *neighbours) changePlan(t *rapid.T) {
	n.plan[n.id(t)] = rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "plan")
}

func (n *neighbours) advance(t *rapid.T) {
	unit := rapid.SampledFrom([]time.Duration{1, time.Microsecond, time.Millisecond, time.Second, time.Minute}).Draw(t, "unit")
	n.now += int64(time.Duration(rapid.IntRange(0, 20).Draw(t, "units")) * unit)
}

func (n *neighbours) flood(t *rapid.T) {
	for i := range rapid.IntRange(1, 40).Draw(t, "flood") {
		n.together.ask("throw-away-"+strconv.Itoa(i), "", n.now, 1)
	}
}

// Whatever other keys do, and whatever happens to the table, a key gets the answers
// that it would get alone. The one exception is the spare bucket of a full table,
// and no charge after the fact reaches that.
func TestABalanceDependsOnNoOtherKey(t *testing.T) {
	for name, maxKeys := range map[string]int{"room": 1000, "three keys": 3} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				n := newNeighbours(t, maxKeys)
				t.Repeat(map[string]func(*rapid.T){
					"take": n.take, "take again": n.take, "take more": n.take, "advance": n.advance,
					"undo": n.undo, "charge": n.charge, "plan": n.changePlan,
					"reload": n.reload, "flood": n.flood,
				})
			})
		})
	}
}
