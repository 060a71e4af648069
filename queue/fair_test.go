package queue_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/headgate-go/headgate/internal/entry"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/shed"
)

// party is a caller in front of a load: how long its work takes, and how many of its
// requests are out at a time.
type party struct {
	ticket queue.Ticket
	takes  func() time.Duration
	out    int
	served int
	had    time.Duration // slot time, up to now
}

// load drives a Core in virtual time: each party sends its next request as soon as
// one is answered.
type load struct {
	t       testing.TB
	core    *queue.Core
	now     time.Time
	parties []*party
	running []run
	owner   map[*queue.Waiter]*party
	each    func() // after each event; nil: nothing
}

type run struct {
	from, to time.Time
	w        *queue.Waiter
}

func newLoad(t testing.TB, c queue.Config, parties ...*party) *load {
	t.Helper()
	c.MaxWait, c.MaxWaiting = 1000*time.Hour, 1<<20
	core, err := queue.NewCore(c)
	if err != nil {
		t.Fatal(err)
	}
	l := &load{t: t, core: core, now: time.Unix(1e9, 0), parties: parties, owner: map[*queue.Waiter]*party{}}
	for _, p := range parties {
		for range p.out {
			w := new(queue.Waiter)
			l.owner[w] = p
			l.offer(w)
		}
	}
	return l
}

func (l *load) offer(w *queue.Waiter) {
	w.Ticket = l.owner[w].ticket
	switch v, evicted := l.core.Offer(l.now, w); {
	case v == entry.In:
		l.start(w)
	case v == entry.Out || evicted != nil:
		l.t.Fatalf("%v for %+v: %v", v, w.Ticket, w.Reason)
	}
}

func (l *load) start(w *queue.Waiter) {
	r := run{l.now, l.now.Add(l.owner[w].takes()), w}
	i, _ := slices.BinarySearchFunc(l.running, r, func(a, b run) int { return a.to.Compare(b.to) })
	l.running = slices.Insert(l.running, i, r)
}

// run lets d pass and fills in what each party had in it.
func (l *load) run(d time.Duration) {
	from, until := l.now, l.now.Add(d)
	for _, p := range l.parties {
		p.had, p.served = 0, 0
	}
	for len(l.running) > 0 && !l.running[0].to.After(until) {
		r := l.running[0]
		l.running = slices.Delete(l.running, 0, 1)
		l.now = r.to
		p := l.owner[r.w]
		p.served++
		p.had += l.now.Sub(later(r.from, from)) * time.Duration(max(p.ticket.Slots, 1))
		l.core.Release(l.now, r.w.Grant, shed.Served)
		for w := l.core.Next(l.now); w != nil; w = l.core.Next(l.now) {
			l.start(w)
		}
		l.offer(r.w)
		for w := l.core.Next(l.now); w != nil; w = l.core.Next(l.now) { // into a gap, it may be
			l.start(w)
		}
		if l.each != nil {
			l.each()
		}
	}
	l.now = until
	for _, r := range l.running {
		p := l.owner[r.w]
		p.had += until.Sub(later(r.from, from)) * time.Duration(max(p.ticket.Slots, 1))
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func constant(d time.Duration) func() time.Duration { return func() time.Duration { return d } }

func lognormal(median time.Duration, sigma float64, seed uint64) func() time.Duration {
	r := rand.New(rand.NewPCG(seed, 5))
	return func() time.Duration { return time.Duration(float64(median) * math.Exp(sigma*r.NormFloat64())) }
}

func of(caller string, weight int) queue.Ticket {
	return queue.Ticket{Level: priority.Normal, Caller: caller, Weight: weight}
}

// portion is the first party's part of the slot time of all, in percent.
func (l *load) portion() float64 {
	all := time.Duration(0)
	for _, p := range l.parties {
		all += p.had
	}
	return 100 * float64(l.parties[0].had) / float64(all)
}

func TestLongAndShortWorkShareTheSlotTime(t *testing.T) {
	short, long := 10*time.Millisecond, time.Second
	for _, c := range []struct {
		name       string
		weight     int
		a, b       func() time.Duration
		want, away float64
		route      int
	}{
		{"equal weights", 1, constant(short), constant(long), 50, 2, 0},
		{"three to one", 3, constant(short), constant(long), 75, 2, 0},
		{"equal weights, times vary", 1, lognormal(short, 0.3, 1), lognormal(long, 0.3, 2), 50, 4, 0},
		{"three to one, times vary", 3, lognormal(short, 0.3, 3), lognormal(long, 0.3, 4), 75, 4, 0},
		{"on the same route", 1, constant(short), constant(long), 50, 2, 1},
		{"three to one on the same route", 3, constant(short), constant(long), 75, 2, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := &party{ticket: of("a", c.weight), takes: c.a, out: 100}
			b := &party{ticket: of("b", 1), takes: c.b, out: 100}
			a.ticket.Route, b.ticket.Route = c.route, c.route
			l := newLoad(t, queue.Config{Limit: shed.Fixed(8)}, a, b)
			l.run(time.Duration(3+7*c.route) * time.Second) // on one route, its mean has to be found wanting first
			total := 0
			for i := range 4 {
				l.run(5 * time.Second)
				total += a.served
				if p := l.portion(); math.Abs(p-c.want) > c.away {
					t.Errorf("window %d: a had %.1f %% of the slot time, want %v ± %v", i, p, c.want, c.away)
				}
			}
			t.Logf("%d served a second", total/20)
			if total < 20*370 {
				t.Errorf("%d served a second, want about 390", total/20)
			}
		})
	}
}

func TestAHundredCallersShareAlike(t *testing.T) {
	for seed := range uint64(3) {
		var all []*party
		for i := range 100 {
			all = append(all, &party{ticket: of(string(rune('A'+i)), 1), takes: lognormal(30*time.Millisecond, 1.15, seed*1000+uint64(i)), out: 5})
		}
		l := newLoad(t, queue.Config{Limit: shed.Fixed(32)}, all...)
		l.run(3 * time.Second)
		l.run(30 * time.Second)
		sum, squares := 0.0, 0.0
		for _, p := range all {
			sum += p.had.Seconds()
			squares += p.had.Seconds() * p.had.Seconds()
		}
		jain := sum * sum / (100 * squares)
		if jain < 0.98 {
			t.Errorf("seed %d: Jain's index of slot time %.4f, want at least 0.98", seed, jain)
		}
	}
}

// The route says 10 ms, and the work of one caller on it takes a second.
func TestShortEstimatesForLongWorkGainOnePiecePerSlot(t *testing.T) {
	const slots = 8
	honest := &party{ticket: of("honest", 1), takes: constant(10 * time.Millisecond), out: 100}
	liar := &party{ticket: of("liar", 1), takes: constant(10 * time.Millisecond), out: 100}
	honest.ticket.Route, liar.ticket.Route = 1, 1
	l := newLoad(t, queue.Config{Limit: shed.Fixed(slots)}, honest, liar)
	l.run(3 * time.Second)
	liar.takes = constant(time.Second)
	l.run(10 * time.Second)
	share, piece := 10*slots*time.Second/2, time.Second
	if liar.had > share+slots*piece {
		t.Errorf("%v of slot time, more than %v and a piece per slot", liar.had, share)
	}
}

// A caller whose next request comes only when the one before is answered is in debt
// while it is away.
func TestALeavingCallerKeepsItsDebt(t *testing.T) {
	many := &party{ticket: of("many", 1), takes: constant(10 * time.Millisecond), out: 50}
	one := &party{ticket: of("one", 1), takes: constant(time.Second), out: 1}
	l := newLoad(t, queue.Config{Limit: shed.Fixed(1)}, many, one)
	l.run(3 * time.Second)
	l.run(20 * time.Second)
	if p := l.portion(); p < 45 {
		t.Errorf("the caller with work always waiting had %.1f %% of the slot", p)
	}
}

// Callers that come once and never again must not keep a known one waiting for good.
func TestAFloodOfNewCallersLetsAKnownOneThrough(t *testing.T) {
	core, err := queue.NewCore(queue.Config{Limit: shed.Fixed(1), MaxWait: time.Hour, MaxWaiting: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	now, n := time.Unix(1e9, 0), 0
	known := &queue.Waiter{}
	offer := func(w *queue.Waiter, caller string) {
		w.Ticket = queue.Ticket{Caller: caller}
		if v, _ := core.Offer(now, w); v == entry.Out {
			t.Fatal(w.Reason)
		}
	}
	first := new(queue.Waiter)
	offer(first, "first") // has the slot
	for i := range 20 {
		offer(new(queue.Waiter), string(rune('A'+i)))
	}
	offer(known, "known")
	served, holder := 0, first.Grant
	for n = range 2000 {
		now = now.Add(10 * time.Millisecond)
		core.Release(now, holder, shed.Served)
		w := core.Next(now)
		holder = w.Grant
		if w == known {
			served++
			offer(known, "known")
		} else {
			offer(new(queue.Waiter), string(rune(1000+n))) // as many come as are served
		}
	}
	if served < 2000/21-1 {
		t.Errorf("served %d times among %d newcomers with twenty waiting at a time", served, n+1)
	}
}

func TestTheLowestLevelGetsAPartOfTheSlotTime(t *testing.T) {
	for name, c := range map[string]struct{ low, high func() time.Duration }{
		"alike":     {constant(10 * time.Millisecond), constant(10 * time.Millisecond)},
		"long low":  {constant(time.Second), constant(10 * time.Millisecond)},
		"long high": {constant(10 * time.Millisecond), constant(time.Second)},
		"varied":    {lognormal(200*time.Millisecond, 1, 1), lognormal(20*time.Millisecond, 1, 2)},
	} {
		low := &party{ticket: queue.Ticket{Level: priority.Batch, Caller: "x"}, takes: c.low, out: 50}
		high := &party{ticket: queue.Ticket{Level: priority.High, Caller: "x"}, takes: c.high, out: 50}
		l := newLoad(t, queue.Config{Limit: shed.Fixed(8)}, low, high)
		l.run(10 * time.Second)
		l.run(200 * time.Second)
		if p := l.portion(); p < 4.5 || p > 5.5 {
			t.Errorf("%s: the lowest level had %.2f %% of the slot time, want 5", name, p)
		}
	}
}
