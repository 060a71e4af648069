package ratelimit

import (
	"context"
	"strconv"
	"testing"
	"time"

	"golang.org/x/time/rate"
	"pgregory.net/rapid"
)

// pass is a request that went through and was not undone.
type pass struct {
	at    time.Duration // true time
	steps int           // forward steps of the clock before it
	cost  int
	era   int // reloads before it
}

// world drives one limiter through everything that could mint tokens, on a true
// clock and a wall clock that is stepped about, and keeps what passed.
type world struct {
	limit  Limiter
	old    []Limiter // from before reloads, still in use
	eras   []era
	true   time.Duration
	offset time.Duration // wall clock less true clock
	steps  int
	passed map[string][]*pass
	grants []open
}

type era struct {
	since  time.Duration
	period time.Duration
	burst  int
}

type open struct {
	d  Decision
	as *pass
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func (w *world) wall() time.Time { return epoch.Add(w.true + w.offset) }

func drawEra(t *rapid.T, since time.Duration) era {
	return era{
		since:  since,
		period: rapid.SampledFrom([]time.Duration{time.Millisecond, 3 * time.Millisecond, 10 * time.Millisecond, time.Second}).Draw(t, "period"),
		burst:  rapid.IntRange(1, 6).Draw(t, "burst"),
	}
}

func (e era) limiter() *Buckets { return PerKey(rate.Every(e.period), e.burst, MaxKeys(3)) }

func newWorld(t *rapid.T) *world {
	e := drawEra(t, 0)
	return &world{limit: e.limiter(), eras: []era{e}, passed: map[string][]*pass{}}
}

func (w *world) advance(t *rapid.T) {
	unit := rapid.SampledFrom([]time.Duration{1, time.Microsecond, time.Millisecond, time.Second, time.Minute}).Draw(t, "unit")
	w.true += time.Duration(rapid.IntRange(0, 20).Draw(t, "units")) * unit
}

func (w *world) step(t *rapid.T) {
	by := rapid.SampledFrom([]time.Duration{-time.Hour, -time.Second, -time.Microsecond, time.Millisecond, time.Second, time.Hour}).Draw(t, "step")
	w.offset += by
	if by > 0 {
		w.steps++
	}
}

func (w *world) take(t *rapid.T) {
	limit := w.limit
	if len(w.old) > 0 && rapid.IntRange(0, 9).Draw(t, "stale") == 0 {
		limit = rapid.SampledFrom(w.old).Draw(t, "old")
	}
	id := strconv.Itoa(rapid.IntRange(0, 4).Draw(t, "key"))
	cost := rapid.IntRange(1, 7).Draw(t, "cost")
	// Calls may overtake each other between reading the clock and the lock.
	now := w.wall().Add(-time.Duration(rapid.IntRange(0, 3).Draw(t, "late")) * time.Microsecond)
	d := limit.Take(context.Background(), now, Key{ID: id}, cost, 0)
	if !d.OK {
		w.checkAdvice(t, limit, now, id, cost, d)
		return
	}
	if d.Wait != 0 || d.Remaining < 0 || d.Reset < 0 {
		t.Fatalf("take: %+v", d)
	}
	p := &pass{at: w.true, steps: w.steps, cost: cost, era: len(w.eras) - 1}
	w.passed[id] = append(w.passed[id], p)
	w.grants = append(w.grants, open{d, p})
}

// checkAdvice holds the limiter to its advice: followed to the nanosecond it is
// admitted, and not a nanosecond before.
func (w *world) checkAdvice(t *rapid.T, l Limiter, now time.Time, id string, cost int, d Decision) {
	if d.Never {
		return
	}
	peek := func(at time.Duration) Decision {
		return l.(Peeker).Peek(now.Add(at), Key{ID: id}, cost, 0)
	}
	if then := peek(d.Wait); !then.OK {
		t.Fatalf("told to wait %v, then %+v", d.Wait, then)
	}
	if then := peek(d.Wait - 1); then.OK {
		t.Fatalf("told to wait %v, admitted before that", d.Wait)
	}
}

func (w *world) undo(t *rapid.T) {
	if len(w.grants) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.grants)-1).Draw(t, "grant")
	g := w.grants[i]
	w.grants = append(w.grants[:i:i], w.grants[i+1:]...)
	back := rapid.IntRange(1, g.as.cost).Draw(t, "back")
	g.d.Adjust(w.wall(), -back)
	g.as.cost -= back
}

func (w *world) reload(t *rapid.T) {
	e := drawEra(t, w.true)
	next := Own(e.limiter(), w.limit)
	// A reload counts from the first take with the new numbers.
	next.Take(context.Background(), w.wall(), Key{ID: "no caller"}, e.burst+1, 0)
	w.old = append(w.old, w.limit)
	w.limit = next
	w.eras = append(w.eras, e)
}

func (w *world) flood(t *rapid.T) {
	for i := range rapid.IntRange(1, 40).Draw(t, "flood") {
		w.limit.Take(context.Background(), w.wall(), Key{ID: "throw-away-" + strconv.Itoa(i)}, 1, 0)
	}
}

// granted is the most that may pass after i up to and including j, besides what
// the bucket held at i.
func (w *world) earned(i, j *pass) (tokens float64) {
	for n := i.era; n <= j.era; n++ {
		from, to := max(i.at, w.eras[n].since), j.at
		if n+1 < len(w.eras) {
			to = min(to, w.eras[n+1].since)
		}
		tokens += float64(to-from) / float64(w.eras[n].period)
	}
	return tokens
}

func (w *world) check(t *rapid.T) {
	for id, passed := range w.passed {
		for i, first := range passed {
			sum := 0
			for _, last := range passed[i:] {
				sum += last.cost
				burst := w.eras[first.era].burst
				steps := 0
				for n := first.era; n <= last.era; n++ {
					steps = max(steps, w.eras[n].burst)
				}
				most := float64(burst) + w.earned(first, last) + float64(steps*(last.steps-first.steps))
				if float64(sum) > most+1e-6 {
					t.Fatalf("key %s: %d passed from %v to %v, at most %g may", id, sum, first.at, last.at, most)
				}
			}
		}
	}
}

// In any window T a key passes at most burst + rate·T, whatever happens to the
// clock, the numbers, the table and the grants; each forward step of the clock is
// worth a burst at most.
func TestNothingMintsTokens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		t.Repeat(map[string]func(*rapid.T){
			"take": w.take, "take again": w.take, "take more": w.take,
			"advance": w.advance, "step": w.step, "undo": w.undo,
			"reload": w.reload, "flood": w.flood,
		})
		w.check(t)
		s := w.limit.(*Buckets).Stats()
		if s.Keys > 3 || s.Peak > 3 {
			t.Fatalf("%+v: the bound is 3 keys", s)
		}
	})
}

// Reservations pass when they mature; undone ones leave no more behind than there
// would have been.
func TestReservationsMintNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		t.Repeat(map[string]func(*rapid.T){
			"reserve": func(t *rapid.T) {
				cost := rapid.IntRange(1, w.eras[0].burst).Draw(t, "cost")
				maxWait := time.Duration(rapid.IntRange(0, 5).Draw(t, "periods")) * w.eras[0].period
				d := w.limit.Take(context.Background(), w.wall(), Key{}, cost, maxWait)
				if d.Wait > maxWait && d.OK || d.Wait <= maxWait && !d.OK {
					t.Fatalf("with %v to wait: %+v", maxWait, d)
				}
				if d.OK {
					p := &pass{at: w.true + d.Wait, cost: cost}
					w.passed[""] = append(w.passed[""], p)
					w.grants = append(w.grants, open{d, p})
				}
			},
			"advance": w.advance,
			"undo":    w.undo,
		})
		sortPasses(w.passed[""])
		w.check(t)
	})
}
