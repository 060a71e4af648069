package ratelimit

import (
	"context"
	"hash/maphash"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/time/rate"
	"pgregory.net/rapid"
)

func takeN(l Limiter, now time.Time, id string, cost int) Decision {
	return l.Take(context.Background(), now, Key{ID: id}, cost, 0)
}

// A charge after the fact is the debt of its key alone: keys that come later start
// from a full bucket, whether the table has room or not.
//
// Case LI-01: tried on the product
func TestADebtIsItsOwners(t *testing.T) {
	for _, known := range []int{2, 50} {
		for name, maxKeys := range map[string]int{"room": 1000, "full": known} {
			l := PerKey(10, 10, MaxKeys(maxKeys))
			for i := range known {
				takeN(l, epoch, "known-"+strconv.Itoa(i), 10)
			}
			d := takeN(l, epoch, "debtor", 1)
			d.Adjust(epoch, 100_000)
			served := 0
			for i := range 9 {
				if takeN(l, epoch, "new-"+strconv.Itoa(i), 1).OK {
					served++
				}
			}
			if served != 9 {
				t.Errorf("%d known, %s: %d of 9 newcomers served", known, name, served)
			}
			if d := takeN(l, epoch, "debtor", 1); d.OK || d.Wait < 9999*time.Second {
				t.Errorf("%d known, %s: the debtor got %+v, want its debt waited off", known, name, d)
			}
			later := epoch.Add(9 * time.Second)
			for i := range known {
				if d := takeN(l, later, "known-"+strconv.Itoa(i), 10); !d.OK {
					t.Errorf("%d known, %s: a known key got %+v", known, name, d)
				}
			}
			if s := l.Stats(); s.Keys > s.MaxKeys || s.Peak > s.MaxKeys || s.Uncharged != 0 {
				t.Errorf("%d known, %s: %+v", known, name, s)
			}
		}
	}
}

// The same where the key had a bucket once, and it is full again and forgotten.
func TestADebtAfterItsBucketIsForgottenIsItsOwners(t *testing.T) {
	l := PerKey(10, 10, MaxKeys(2))
	d := takeN(l, epoch, "debtor", 1)
	now := epoch
	for l.Stats().Keys > 1 || now.Equal(epoch) { // until only "other" is there
		now = now.Add(time.Minute)
		takeN(l, now, "other", 10)
	}
	takeN(l, now, "another", 10)
	d.Adjust(now, 100_000)
	if d := takeN(l, now, "newcomer", 10); !d.OK {
		t.Errorf("a newcomer got %+v", d)
	}
	if d := takeN(l, now, "debtor", 1); d.OK {
		t.Errorf("the debtor got %+v", d)
	}
}

// Buckets for debts are bounded as well: what is beyond the bound is lost, counted,
// and is still nobody else's.
func TestDebtsAreBounded(t *testing.T) {
	l := PerKey(1000, 1000, MaxKeys(1))
	takeN(l, epoch, "known", 1)
	for i := range 500 {
		takeN(l, epoch, strconv.Itoa(i), 1).Adjust(epoch, 1_000_000)
	}
	s := l.Stats()
	if s.Keys != 1 || s.Extra != 64 || s.Uncharged != 500-64 {
		t.Errorf("%+v, want 64 extra buckets and the other charges counted", s)
	}
	if d := takeN(l, epoch, "newcomer", 1); !d.OK || d.Remaining != 499 {
		t.Errorf("a newcomer got %+v, want what the others took to be missing, no more", d)
	}
	for now := epoch; l.Stats().Extra > 0; now = now.Add(time.Hour) {
		takeN(l, now, "light", 1)
	}
}

// A charge for work under an old plan takes tokens, and leaves the key on its plan.
func TestAChargeDoesNotChangeThePlan(t *testing.T) {
	l := Tiers(Plan{Rate: 1, Burst: 5}, map[string]Plan{"pro": {Rate: 1, Burst: 50}})
	pro := Key{ID: "a", Plan: "pro"}
	l.Take(context.Background(), epoch, pro, 10, 0)
	d := takeN(l, epoch, "a", 1)
	l.Take(context.Background(), epoch, pro, 1, 0)
	now := epoch.Add(time.Minute)
	l.Take(context.Background(), now, pro, 1, 0)
	d.Adjust(now, 10)
	if d := l.Take(context.Background(), now, pro, 1, 0); d.Remaining != 38 {
		t.Errorf("got %+v, want 50 less 12 left", d)
	}
}

// An undone grant of a spare bucket goes back to that one only: with a function for
// plans the same key may ask for other numbers by then.
func TestARefundOfASharedBucketIsItsOwn(t *testing.T) {
	burst := 5
	l := TiersFunc(Plan{Rate: 1, Burst: 1}, func(Key) Plan { return Plan{Rate: 1, Burst: burst} }, MaxKeys(1))
	takeN(l, epoch, "known", 1)
	d := takeN(l, epoch, "a", 5)
	burst = 6
	takeN(l, epoch, "b", 6)
	d.Undo(epoch)
	if d := takeN(l, epoch, "c", 1); d.OK {
		t.Errorf("tokens of one bucket came back to another: %+v", d)
	}
	burst = 5
	if d := takeN(l, epoch, "c", 1); d.OK {
		t.Errorf("got %+v, want that refund lost", d)
	}
}

// neighbours drive a limiter that all keys share beside one for each key alone,
// which hears of that key only.
type neighbours struct {
	together Limiter
	alone    map[string]Limiter
	plan     map[string]string
	excused  map[string]bool // was served by the spare bucket, or its own clock went back far
	grants   []pairOfGrants
	now      time.Time
}

type pairOfGrants struct {
	id              string
	together, alone Decision
	cost            int
}

func drawTiers(t *rapid.T, maxKeys int) *Buckets {
	draw := func() Plan {
		return Plan{
			Rate:  rate.Limit(rapid.SampledFrom([]float64{0.1, 1, 10, 1000}).Draw(t, "rate")),
			Burst: rapid.IntRange(1, 8).Draw(t, "burst"),
		}
	}
	return Tiers(draw(), map[string]Plan{"a": draw(), "b": draw()}, MaxKeys(maxKeys))
}

func newNeighbours(t *rapid.T, maxKeys int) *neighbours {
	n := &neighbours{
		alone: map[string]Limiter{}, plan: map[string]string{}, excused: map[string]bool{}, now: epoch,
	}
	config := drawTiers(t, maxKeys)
	n.together = Own(config, nil)
	for i := range 5 {
		n.alone[strconv.Itoa(i)] = Own(config, nil)
	}
	n.all(func(l Limiter) { start(l, n.now) })
	n.together.(*Buckets).state.Load().seeds = someSeeds
	return n
}

// someSeeds let a failure be seen again: when a bucket is swept depends on them.
var someSeeds = [...]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed(), maphash.MakeSeed()}

// start lets a limiter know the time without a trace in its table.
func start(l Limiter, now time.Time) { takeN(l, now, "", 1000) }

func (n *neighbours) all(f func(Limiter)) {
	f(n.together)
	for _, l := range n.alone {
		f(l)
	}
}

func (n *neighbours) key(t *rapid.T) Key {
	id := strconv.Itoa(rapid.IntRange(0, 4).Draw(t, "key"))
	return Key{ID: id, Plan: n.plan[id]}
}

// excuse notes keys that are about to start, on a plan or at all, while a spare bucket
// is not full: the one thing that keys share.
func (n *neighbours) excuse(key Key) {
	b := n.together.(*Buckets)
	s := b.state.Load()
	hash := b.hash(s, key)
	in := s.shard(hash).findLocked(hash)
	if in != nil && s.book.at(in.terms).latest() == b.inForce(s, key, n.now).terms.latest() {
		return
	}
	for _, t := range *s.book.all.Load() {
		if !t.atRest.Load() {
			n.excused[key.ID] = true
		}
	}
}

func (n *neighbours) take(t *rapid.T) {
	key := n.key(t)
	cost := rapid.IntRange(1, 9).Draw(t, "cost")
	back := rapid.SampledFrom([]time.Duration{0, 0, 0, 0, time.Minute, 24 * time.Hour}).Draw(t, "back")
	now := n.now.Add(-back)
	n.excuse(key)
	if time.Duration(grace) < back {
		n.excused[key.ID] = true
	}
	together := n.together.Take(context.Background(), now, key, cost, 0)
	alone := n.alone[key.ID].Take(context.Background(), now, key, cost, 0)
	n.excused[key.ID] = n.excused[key.ID] || together.Source == SourceOverflow
	n.compare(t, key, together, alone)
	if together.OK && alone.OK {
		n.grants = append(n.grants, pairOfGrants{key.ID, together, alone, cost})
	}
}

func (n *neighbours) compare(t *rapid.T, key Key, together, alone Decision) {
	together.Grant, alone.Grant = Grant{}, Grant{}
	if together != alone && !n.excused[key.ID] {
		t.Fatalf("key %+v: among others %+v, alone %+v", key, together, alone)
	}
}

func (n *neighbours) settle(t *rapid.T, by func(cost int) int) {
	if len(n.grants) == 0 {
		return
	}
	i := rapid.IntRange(0, len(n.grants)-1).Draw(t, "grant")
	g := n.grants[i]
	n.grants = slices.Delete(n.grants, i, i+1)
	n.excuse(g.together.Grant.Key)
	change := by(g.cost)
	before := n.spares()
	g.together.Adjust(n.now, change)
	g.alone.Adjust(n.now, change)
	if after := n.spares(); change > 0 && !slices.Equal(before, after) {
		t.Fatalf("a charge changed what newcomers start from: %v, then %v", before, after)
	}
}

// spares are the balances that newcomers start from.
func (n *neighbours) spares() (tokens []int64) {
	for _, t := range *n.together.(*Buckets).state.Load().book.all.Load() {
		tokens = append(tokens, t.spare.tokens)
	}
	return tokens
}

func (n *neighbours) undo(t *rapid.T) {
	n.settle(t, func(cost int) int { return -rapid.IntRange(1, cost).Draw(t, "back") })
}

func (n *neighbours) charge(t *rapid.T) {
	n.settle(t, func(int) int { return rapid.SampledFrom([]int{1, 5, 100, 100_000}).Draw(t, "more") })
}

func (n *neighbours) changePlan(t *rapid.T) {
	n.plan[n.key(t).ID] = rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "plan")
}

func (n *neighbours) advance(t *rapid.T) {
	unit := rapid.SampledFrom([]time.Duration{1, time.Microsecond, time.Millisecond, time.Second, time.Minute}).Draw(t, "unit")
	n.now = n.now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "units")) * unit)
}

func (n *neighbours) reload(maxKeys int) func(*rapid.T) {
	return func(t *rapid.T) {
		config := drawTiers(t, maxKeys)
		n.together = Own(config, n.together)
		for id := range n.alone {
			n.alone[id] = Own(config, n.alone[id])
		}
		n.all(func(l Limiter) { start(l, n.now) })
	}
}

func (n *neighbours) flood(t *rapid.T) {
	for i := range rapid.IntRange(1, 40).Draw(t, "flood") {
		takeN(n.together, n.now, "throw-away-"+strconv.Itoa(i), 1)
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
					"reload": n.reload(maxKeys), "flood": n.flood,
				})
			})
		})
	}
}
