package queue_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate-go/headgate/internal/entry"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/shed"
)

// drill drives a core in virtual time with a backend whose work takes exactly as long
// as it says, so that slots come free in bursts.
type drill struct {
	core   *queue.Core
	now    time.Time
	work   time.Duration
	slots  [priority.Count]int
	flying []flown // by the time they end
	held   time.Duration
	served [priority.Count]int
	told   map[shed.Reason]int
	late   int // refused after more than 100 ms
	out    int
	joined map[*queue.Waiter]time.Time
}

type flown struct {
	w   *queue.Waiter
	end time.Time
}

func (d *drill) takes(w *queue.Waiter) {
	d.flying = append(d.flying, flown{w, d.now.Add(d.work)})
	d.held += d.work * time.Duration(max(w.Slots, 1))
	d.served[w.Level.Index()]++
}

func (d *drill) refused(w *queue.Waiter, waited time.Duration) {
	d.out++
	d.told[w.Reason]++
	if waited > 100*time.Millisecond {
		d.late++
	}
}

func (d *drill) settle() {
	for w := d.core.Expire(d.now); w != nil; w = d.core.Expire(d.now) {
		d.refused(w, d.now.Sub(d.joined[w]))
	}
	for w := d.core.Next(d.now); w != nil; w = d.core.Next(d.now) {
		d.takes(w)
	}
}

// until plays everything that happens up to t.
func (d *drill) until(t time.Time) {
	for {
		next := t
		if at, ok := d.core.NextExpiry(); ok && at.Before(next) {
			next = at
		}
		if len(d.flying) > 0 && d.flying[0].end.Before(next) {
			next = d.flying[0].end
		}
		if next.After(d.now) {
			d.now = next
		}
		if !next.Before(t) {
			return
		}
		for len(d.flying) > 0 && !d.flying[0].end.After(d.now) {
			d.core.Release(d.now, d.flying[0].w.Grant, shed.Served)
			d.flying = d.flying[1:]
			d.settle()
		}
		d.settle()
	}
}

func (d *drill) offer(l priority.Level) {
	w := &queue.Waiter{Ticket: queue.Ticket{Level: l, Slots: d.slots[l.Index()]}}
	v, evicted := d.core.Offer(d.now, w)
	switch v {
	case entry.In:
		d.takes(w)
	case entry.Waits:
		d.joined[w] = d.now
	default:
		d.refused(w, 0)
	}
	if evicted != nil {
		d.refused(evicted, d.now.Sub(d.joined[evicted]))
	}
	d.settle()
}

// run offers Poisson traffic of the given rates per level for so long.
func (d *drill) run(seed uint64, rates [priority.Count]float64, length time.Duration) {
	rng := rand.New(rand.NewPCG(seed, 1))
	total := 0.0
	for _, r := range rates {
		total += r
	}
	end := d.now.Add(length)
	for next := d.now; ; {
		next = next.Add(time.Duration(rng.ExpFloat64() / total * float64(time.Second)))
		if next.After(end) {
			break
		}
		d.until(next)
		u, l := rng.Float64()*total, 0
		for ; l < priority.Count-1 && u >= rates[l]; l++ {
			u -= rates[l]
		}
		d.offer(priority.All()[l])
	}
	d.until(end)
}

func newDrill(t *testing.T, c queue.Config, work time.Duration) *drill {
	t.Helper()
	core, err := queue.NewCore(c)
	if err != nil {
		t.Fatal(err)
	}
	return &drill{core: core, now: time.Unix(1e9, 0), work: work, told: map[shed.Reason]int{}, joined: map[*queue.Waiter]time.Time{}}
}

// With a longest stay shorter than the work, waiters of the top level run out of time
// between two releases. What they waited for goes to that level all the same, and next
// to nothing stays idle for it.
func TestAStayShorterThanTheWorkKeepsTheOrderOfLevels(t *testing.T) {
	const length = 30 * time.Second
	capacity := 16 / 0.3 * length.Seconds()
	for seed := range uint64(3) {
		d := newDrill(t, queue.Config{Limit: shed.Fixed(16), MaxWait: 250 * time.Millisecond}, 300*time.Millisecond)
		d.run(seed, [priority.Count]float64{900, 450, 0, 150}, length)
		if got := float64(d.served[3]) / capacity; got < 0.90 {
			t.Errorf("seed %d: critical got %.0f%% of the capacity", seed, 100*got)
		}
		if idle := 1 - d.held.Seconds()/(16*length.Seconds()); idle > 0.03 {
			t.Errorf("seed %d: %.1f%% of the slot time was idle", seed, 100*idle)
		}
		if d.served[0] == 0 {
			t.Errorf("seed %d: the lowest level was shut out", seed)
		}
	}
}

// Work of lower levels that higher ones will keep from a slot is told so at once; the
// lowest level is slowed down and not shut out.
func TestARefusalThatCanBeForeseenIsNotWaitedFor(t *testing.T) {
	d := newDrill(t, queue.Config{Limit: shed.Fixed(16)}, 90*time.Millisecond)
	d.run(1, [priority.Count]float64{900, 450, 0, 150}, 10*time.Second)
	if share := float64(d.late) / float64(d.out); share > 0.05 {
		t.Errorf("%.1f%% of the refused had waited 100 ms", 100*share)
	}
	if d.served[0] < 60 || d.served[3] < 1400 {
		t.Errorf("served %v by level", d.served)
	}
}

// Wide work of a higher level takes as many slots as it is wide before lower levels have
// their turn: refusals that follow from that are foreseen as well.
func TestSlotsThatWideWorkAboveWillTakeAreForeseen(t *testing.T) {
	d := newDrill(t, queue.Config{Limit: shed.Fixed(16)}, 90*time.Millisecond)
	d.slots[3] = 4
	d.run(1, [priority.Count]float64{100, 200, 0, 35}, 20*time.Second)
	if share := float64(d.late) / float64(d.out); share > 0.08 {
		t.Errorf("%.1f%% of the refused had waited 100 ms", 100*share)
	}
	if d.served[3] < 600 || d.served[1] < 300 || d.served[0] < 60 {
		t.Errorf("served %v by level", d.served)
	}
}
