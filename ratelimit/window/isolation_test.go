package window

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/go-chi/httprate"
	"pgregory.net/rapid"

	"github.com/headgate-go/headgate/ratelimit"
)

// A charge after the fact is the debt of its key alone, in a table with room and in a
// full one, and it is still owed in the next window.
//
// Case LI-01: tried on the product
func TestADebtIsItsOwners(t *testing.T) {
	for name, maxKeys := range map[string]int{"room": 1000, "full": 2} {
		l := MustNew(Options{Quota: 10, Length: day, MaxKeys: maxKeys})
		take(l, midnight, "known-1", 1)
		take(l, midnight, "known-2", 1)
		d := take(l, midnight, "debtor", 1)
		d.Adjust(midnight, 100_000)
		for i := range 9 {
			if d := take(l, midnight, "new-"+strconv.Itoa(i), 1); !d.OK {
				t.Errorf("%s: newcomer %d got %+v", name, i, d)
			}
		}
		if d := take(l, midnight, "debtor", 1); d.OK || d.Wait < day {
			t.Errorf("%s: the debtor got %+v", name, d)
		}
		noon := midnight.Add(day + day/2)
		take(l, noon, "known-1", 1)
		take(l, noon, "known-2", 1)
		if d := l.Peek(noon, ratelimit.Key{Space: "key", ID: "debtor"}, 1, 0); d.OK {
			t.Errorf("%s: the debt was forgotten: %+v", name, d)
		}
		if d := take(l, noon, "debtor", 1); d.OK {
			t.Errorf("%s: the debt was forgotten: %+v", name, d)
		}
		if d := take(l, noon, "newcomer", 1); !d.OK {
			t.Errorf("%s: a newcomer on the next day got %+v", name, d)
		}
		if s := l.Stats(); s.Keys > s.MaxKeys {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// What a foreign counter admits to keys without a count here uses up no count that
// others would share while that counter is away.
func TestForeignCountsDoNotFillTheSharedOne(t *testing.T) {
	away := false
	b := broken{httprate.NewLocalLimitCounter(day), func() error {
		if away {
			panic("away")
		}
		return nil
	}}
	l := MustNew(Options{Quota: 3, Length: day, Counter: b, MaxKeys: 1, Timeout: time.Minute})
	for i := range 10 {
		take(l, midnight, strconv.Itoa(i), 3)
	}
	away = true
	if d := take(l, midnight, "newcomer", 1); !d.OK || d.Source != ratelimit.SourceOverflow {
		t.Errorf("got %+v, want a share of the count for all at the bound", d)
	}
}

func TestDebtsBeyondTheBoundAreBounded(t *testing.T) {
	l := MustNew(Options{Quota: 100_000, Length: day, MaxKeys: 1})
	take(l, midnight, "known", 1)
	for i := range 5000 {
		take(l, midnight, strconv.Itoa(i), 1).Adjust(midnight, 1)
	}
	s := l.Stats()
	if most := localShards * 8; s.Keys != 1 || s.Extra > most+1 || s.Uncharged < uint64(5000-most) {
		t.Errorf("%+v, want at most %d counts for debts, and the rest counted", s, most)
	}
	if d := take(l, midnight, "newcomer", 1); !d.OK || d.Remaining != 100_000-5001 {
		t.Errorf("a newcomer got %+v, want what the others took to be missing, no more", d)
	}
	take(l, midnight.Add(2*day), "light", 1)
	if s := l.Stats(); s.Extra != 0 {
		t.Errorf("%+v two days later", s)
	}
}

// neighbours drive a limiter that all keys share beside one for each key alone.
type neighbours struct {
	together *Limiter
	alone    map[string]*Limiter
	plan     map[string]string
	excused  map[string]bool // was counted where keys share a count
	grants   []pairOfGrants
	now      time.Time
	right    int // requests with a clock that was right, since the last with a wrong one
}

type pairOfGrants struct {
	together, alone ratelimit.Decision
	cost            int
}

const length = time.Minute

func drawQuota(t *rapid.T, maxKeys int) *Limiter {
	return MustNew(Options{
		Quota: rapid.IntRange(1, 9).Draw(t, "quota"), Length: length, MaxKeys: maxKeys,
		Plans: map[string]int{"pro": rapid.IntRange(1, 20).Draw(t, "pro")},
	})
}

func newNeighbours(t *rapid.T, maxKeys int) *neighbours {
	n := &neighbours{
		together: drawQuota(t, maxKeys), alone: map[string]*Limiter{},
		plan: map[string]string{}, excused: map[string]bool{}, now: midnight,
	}
	for i := range 5 {
		n.alone[strconv.Itoa(i)] = n.together.Own(nil).(*Limiter)
	}
	n.advance(t)
	return n
}

func (n *neighbours) key(t *rapid.T) ratelimit.Key {
	id := strconv.Itoa(rapid.IntRange(0, 4).Draw(t, "key"))
	return ratelimit.Key{ID: id, Plan: n.plan[id]}
}

// advance also turns the windows: that is for all, whichever key comes first. The
// longest step is under the time after which a clock may be wrong.
func (n *neighbours) advance(t *rapid.T) {
	n.now = n.now.Add(time.Duration(rapid.Int64Range(0, int64(2*length)).Draw(t, "by")))
	n.turn()
}

// clocks are how far the clock of a request may be off.
var clocks = []time.Duration{
	0, 0, 0, 0, 0, -time.Microsecond, -24 * time.Hour, -length - 5*time.Minute,
	length + 5*time.Minute, 24 * time.Hour, 10 * 365 * 24 * time.Hour,
}

func (n *neighbours) turn() {
	n.together.counts.local.at(n.now, &period{length: length})
	for _, l := range n.alone {
		l.counts.local.at(n.now, &period{length: length})
	}
}

func (n *neighbours) take(t *rapid.T) {
	key := n.key(t)
	cost := rapid.IntRange(1, 9).Draw(t, "cost")
	off := rapid.SampledFrom(clocks).Draw(t, "off")
	if off != 0 && n.right < 5 {
		off = 0 // no more wrong clocks than right ones, or none could be told from the other
	}
	at := n.now.Add(off)
	together := n.together.Take(t.Context(), at, key, cost, 0)
	alone := n.alone[key.ID].Take(t.Context(), at, key, cost, 0)
	wrong := off > time.Minute || off < -time.Minute
	n.excused[key.ID] = n.excused[key.ID] || wrong || together.Source == ratelimit.SourceOverflow
	n.turn() // other clocks are right
	if n.right++; wrong {
		n.right = 0
	}
	if together.OK && alone.OK {
		n.grants = append(n.grants, pairOfGrants{together, alone, cost})
	}
	together.Grant, alone.Grant = ratelimit.Grant{}, ratelimit.Grant{}
	if together != alone && !n.excused[key.ID] {
		t.Fatalf("key %v: among others %+v, alone %+v", key, together, alone)
	}
}

func (n *neighbours) settle(t *rapid.T, change func(cost int) int) {
	if len(n.grants) == 0 {
		return
	}
	i := rapid.IntRange(0, len(n.grants)-1).Draw(t, "grant")
	g := n.grants[i]
	n.grants = slices.Delete(n.grants, i, i+1)
	by, before := change(g.cost), n.shared()
	g.together.Adjust(n.now, by)
	g.alone.Adjust(n.now, by)
	if after := n.shared(); by > 0 && after != before {
		t.Fatalf("a charge of %d changed the shared count from %d to %d", by, before, after)
	}
}

func (n *neighbours) shared() int64 {
	c := n.together.counts.local
	count, _, _ := c.lookAt(hash{})
	return count
}

func (n *neighbours) undo(t *rapid.T) {
	n.settle(t, func(cost int) int { return -rapid.IntRange(1, cost).Draw(t, "back") })
}

func (n *neighbours) charge(t *rapid.T) {
	n.settle(t, func(int) int { return rapid.SampledFrom([]int{1, 5, 100_000}).Draw(t, "more") })
}

func (n *neighbours) changePlan(t *rapid.T) {
	n.plan[n.key(t).ID] = rapid.SampledFrom([]string{"", "pro"}).Draw(t, "plan")
}

func (n *neighbours) reload(t *rapid.T) {
	next := drawQuota(t, n.together.opts.MaxKeys)
	n.together = next.Own(n.together).(*Limiter)
	for id, l := range n.alone {
		n.alone[id] = next.Own(l).(*Limiter)
	}
}

func (n *neighbours) flood(t *rapid.T) {
	for i := range rapid.IntRange(1, 20).Draw(t, "flood") {
		take(n.together, n.now, "throw-away-"+strconv.Itoa(i), 1)
	}
}

// Whatever other keys do, a key gets the answers that it would get alone, but for the
// one count that keys share at the bound; no charge after the fact reaches that.
func TestACountDependsOnNoOtherKey(t *testing.T) {
	for name, maxKeys := range map[string]int{"room": 1000, "three keys": 3} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				n := newNeighbours(t, maxKeys)
				t.Repeat(map[string]func(*rapid.T){
					"take": n.take, "take again": n.take, "take more": n.take, "advance": n.advance,
					"undo": n.undo, "charge": n.charge, "plan": n.changePlan, "reload": n.reload, "flood": n.flood,
				})
			})
		})
	}
}
