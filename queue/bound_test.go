package queue

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate-go/headgate/internal/entry"
	"github.com/headgate-go/headgate/shed"
)

// gauge is one caller as an outsider sees it: how long its work has held slots.
type gauge struct {
	name    string
	weight  int
	width   int // slots that each piece takes
	route   int
	mean    float64 // of its work, ns
	waiting []*Waiter
	had     time.Duration // slot time of ended work
	largest time.Duration // piece or estimate so far
	away    bool
}

// inFlight is work that holds a slot.
type inFlight struct {
	of       *gauge
	w        *Waiter
	from, to time.Duration
}

// contestants drives a Core with callers whose work takes what it takes, and who come
// and go, and holds each pair to the bound in every stretch in which both wait.
type contestants struct {
	t       *testing.T
	r       *rand.Rand
	core    *Core
	slots   int
	epoch   time.Time
	now     time.Duration
	callers []*gauge
	running []inFlight
	of      map[*Waiter]*gauge
	least   map[[2]int]float64 // of the difference, in the present stretch
	worst   float64            // part of the bound that was reached
	checked int
}

func newContestants(t *testing.T, seed uint64, wide bool) *contestants {
	r := rand.New(rand.NewPCG(seed, 9))
	slots := 1 + r.IntN(8)
	core, err := NewCore(Config{Limit: shed.Fixed(slots), MaxWait: 1000 * time.Hour, MaxWaiting: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	c := &contestants{t: t, r: r, core: core, slots: slots, epoch: time.Unix(1e9, 0), of: map[*Waiter]*gauge{}, least: map[[2]int]float64{}}
	for i := range 2 + r.IntN(4) {
		g := &gauge{
			name: string(rune('a' + i)), weight: 1 + r.IntN(4), width: 1, route: r.IntN(3),
			mean: math.Exp(r.Float64()*7) * float64(time.Millisecond),
		}
		if wide {
			g.width = 1 + r.IntN(slots)
		}
		c.callers = append(c.callers, g)
	}
	return c
}

// takes draws what a piece of g's work takes: as much as its mean, with luck.
func (c *contestants) takes(g *gauge) time.Duration {
	switch c.r.IntN(3) {
	case 0:
		return time.Duration(g.mean)
	case 1:
		return time.Duration(g.mean * c.r.Float64() / 10)
	default:
		return time.Duration(g.mean * 3 * c.r.Float64())
	}
}

// finish ends the work that ends next.
func (c *contestants) finish() {
	next := -1
	for i, f := range c.running {
		if next < 0 || f.to < c.running[next].to {
			next = i
		}
	}
	if next < 0 {
		return
	}
	f := c.running[next]
	c.now = f.to
	c.check()
	c.running = append(c.running[:next], c.running[next+1:]...)
	f.of.had += (f.to - f.from) * time.Duration(f.of.width)
	c.core.Release(c.epoch.Add(c.now), f.w.Grant, shed.Served)
	c.dispatch()
}

func (c *contestants) step() {
	c.finish()
	g := c.callers[c.r.IntN(len(c.callers))]
	if c.r.IntN(100) == 0 {
		g.away = !g.away
	}
	for _, g := range c.callers {
		for !g.away && len(g.waiting) < 2 {
			c.offer(g)
		}
	}
	c.check()
}

func (c *contestants) offer(g *gauge) {
	w := &Waiter{Ticket: Ticket{Caller: g.name, Weight: g.weight, Route: g.route, Slots: g.width}}
	switch v, _ := c.core.Offer(c.epoch.Add(c.now), w); v {
	case entry.In:
		c.start(g, w)
	case entry.Waits:
		c.of[w] = g
		g.waiting = append(g.waiting, w)
		g.largest = max(g.largest, w.work())
	default:
		c.t.Fatal(w.Reason)
	}
}

func (c *contestants) dispatch() {
	for w := c.core.Next(c.epoch.Add(c.now)); w != nil; w = c.core.Next(c.epoch.Add(c.now)) {
		g := c.of[w]
		for i, x := range g.waiting {
			if x == w {
				g.waiting = append(g.waiting[:i], g.waiting[i+1:]...)
				break
			}
		}
		c.start(g, w)
	}
}

func (c *contestants) start(g *gauge, w *Waiter) {
	f := inFlight{g, w, c.now, c.now + c.takes(g)}
	g.largest = max(g.largest, (f.to-f.from)*time.Duration(g.width))
	if p := c.core.flight.piece(w.Grant); p != nil {
		g.largest = max(g.largest, p.work())
	}
	c.running = append(c.running, f)
	if n := c.core.flight.n; n > c.slots {
		c.t.Fatalf("%d slots taken of %d", n, c.slots)
	}
}

// check holds every pair to the bound, as things stand.
func (c *contestants) check() {
	had := map[*gauge]float64{}
	for _, g := range c.callers {
		had[g] = float64(g.had)
	}
	for _, f := range c.running {
		had[f.of] += float64(c.now-f.from) * float64(f.of.width)
	}
	for i, f := range c.callers {
		for j, g := range c.callers {
			pair := [2]int{i, j}
			if i == j || len(f.waiting) == 0 || len(g.waiting) == 0 {
				delete(c.least, pair)
				continue
			}
			d := had[f]/float64(f.weight) - had[g]/float64(g.weight)
			least, ok := c.least[pair]
			if !ok || d < least {
				c.least[pair], least = d, d
			}
			bound := float64(c.slots+1) * (float64(f.largest)/float64(f.weight) + float64(g.largest)/float64(g.weight))
			c.checked++
			if bound > 0 {
				c.worst = max(c.worst, (d-least)/bound)
			}
		}
	}
}

func TestCallersThatBothWaitStayWithinTheBound(t *testing.T) {
	worst, checked := 0.0, 0
	for seed := range uint64(150) {
		c := newContestants(t, seed, false)
		for range 2000 {
			c.step()
		}
		worst, checked = max(worst, c.worst), checked+c.checked
		if c.worst > 1 {
			t.Errorf("seed %d: %.2f of the bound", seed, c.worst)
		}
	}
	t.Logf("%d differences, at most %.2f of the bound", checked, worst)
	if checked < 1e6 {
		t.Errorf("only %d differences were looked at", checked)
	}
}

// Whatever comes in whatever width is served in the end, within the limit.
func TestNoWidthIsStuckOrAboveTheLimit(t *testing.T) {
	for seed := range uint64(100) {
		c := newContestants(t, seed, true)
		for range 1000 {
			c.step()
		}
		for _, g := range c.callers {
			g.away = true
		}
		for range 1000 {
			if len(c.running) > 0 {
				c.finish()
			}
		}
		if c.core.line.n > 0 || c.core.flight.n > 0 {
			t.Fatalf("seed %d: %d wait and %d slots are taken after all", seed, c.core.line.n, c.core.flight.n)
		}
		for _, class := range c.core.line.classes {
			if len(class.callers) > 0 || class.parts != 0 || class.present != 0 || class.spans != (spans{}) {
				t.Fatalf("seed %d: left behind: %+v", seed, class)
			}
		}
	}
}

// The sum that predictions rest on is exact but for callers within one step of the
// newcomer's span.
func TestSpansAddUp(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var s spans
		type entry struct {
			parts  int64
			weight int
		}
		var all []entry
		for range r.IntN(50) {
			e := entry{int64(1 + r.ExpFloat64()*1e9), 1 + r.IntN(5)}
			s.move(0, e.parts/2, e.weight)
			s.move(e.parts/2, e.parts, e.weight)
			if r.IntN(4) == 0 {
				s.move(e.parts, 0, e.weight)
				continue
			}
			all = append(all, e)
		}
		span := int64(r.ExpFloat64() * 3e8)
		var want, close int64
		for _, e := range all {
			want += min(e.parts, span*int64(e.weight))
			if spanStep(e.parts/int64(e.weight)) == spanStep(span) {
				close += min(e.parts, span*int64(e.weight))
			}
		}
		if got := s.sum(span); got < want-int64(len(all)) || got > want+close/4+int64(len(all)) {
			t.Fatalf("sum(%d) = %d, want %d and at most a quarter of %d more", span, got, want, close)
		}
	}
}
