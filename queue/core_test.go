package queue_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/shed"
)

// desk drives a Core whose slots are all taken, by hand.
type desk struct {
	t     *testing.T
	core  *queue.Core
	now   time.Time
	held  []queue.Grant
	names map[*queue.Waiter]string
}

func newDesk(t *testing.T, c queue.Config) *desk {
	t.Helper()
	core, err := queue.NewCore(c)
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, core: core, now: time.Unix(1e9, 0), names: map[*queue.Waiter]string{}}
	for {
		w := &queue.Waiter{Ticket: queue.Ticket{Level: priority.Critical, MaxWait: queue.NoWait}}
		if v, _ := core.Offer(d.now, w); v != shed.In {
			return d
		}
		d.held = append(d.held, w.Grant)
	}
}

// offer asks for a slot for each of the names, "level:tenant"; a digit after it
// tells two of a tenant apart. It returns what happened: "+x" waits, "-x" is
// refused, "!x" was evicted for it.
func (d *desk) offer(names ...string) string {
	d.t.Helper()
	var log []string
	for _, name := range names {
		level, tenant, ok := strings.Cut(name, ":")
		l, known := priority.Parse(map[string]string{"b": "batch", "n": "normal", "h": "high", "c": "critical"}[level])
		if !ok || !known {
			d.t.Fatalf("bad name %q", name)
		}
		w := &queue.Waiter{Ticket: queue.Ticket{Level: l, Tenant: strings.TrimRight(tenant, "0123456789"), Bytes: 100}}
		d.names[w] = name
		v, evictee := d.core.Offer(d.now, w)
		log = append(log, map[shed.Verdict]string{shed.Waits: "+", shed.Out: "-", shed.In: "="}[v]+name)
		if evictee != nil {
			log = append(log, "!"+d.names[evictee])
		}
	}
	return strings.Join(log, " ")
}

// serve gives the slot to n waiters in turn and returns their names.
func (d *desk) serve(n int) string {
	d.t.Helper()
	var log []string
	for range n {
		d.core.Release(d.now, d.held[0], shed.Ignored)
		w := d.core.Next(d.now)
		if w == nil {
			break
		}
		d.held[0] = w.Grant
		log = append(log, d.names[w])
	}
	return strings.Join(log, " ")
}

func (d *desk) expect(got, want string) {
	d.t.Helper()
	if got != want {
		d.t.Fatalf("got  %s\nwant %s", got, want)
	}
}

func repeat(format string, n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf(format, i))
	}
	return names
}

func TestClassesGoStrictlyByRankAndTheTwentiethTurnIsTheLowest(t *testing.T) {
	d := newDesk(t, queue.Config{Limit: shed.Fixed(1), Bound: 100})
	d.offer("b:x", "n:x")
	d.offer(repeat("c:a%d", 40)...)
	got := strings.Fields(d.serve(42))
	for i, name := range got {
		want := "c"
		switch i {
		case 19:
			want = "b" // the twentieth
		case 39:
			want = "n" // the fortieth, when batch is gone
		}
		if !strings.HasPrefix(name, want) {
			t.Fatalf("dispatch %d went to %s: %v", i+1, name, got)
		}
	}
}

func TestTenantsTakeEqualTurns(t *testing.T) {
	d := newDesk(t, queue.Config{Limit: shed.Fixed(1), Bound: 100})
	d.offer("n:a1", "n:a2", "n:a3", "n:a4", "n:b1", "n:b2", "n:c1")
	d.expect(d.serve(3), "n:a1 n:b1 n:c1")
	d.offer("n:c2") // no credit for having been away, no debt either: the last turn
	d.expect(d.serve(9), "n:a2 n:b2 n:c2 n:a3 n:a4")
}

func TestAQuietTenantIsNotShutOutByALoudOne(t *testing.T) {
	d := newDesk(t, queue.Config{Limit: shed.Fixed(1), Bound: 10})
	d.offer(repeat("n:loud%d", 50)...)
	d.expect(d.offer("n:quiet1", "n:quiet2"), "+n:quiet1 !n:loud9 +n:quiet2 !n:loud8")
	d.expect(d.serve(4), "n:loud0 n:quiet1 n:loud1 n:quiet2")
}

func TestEvictionTakesWhoeverWouldBeServedLast(t *testing.T) {
	t.Run("the lowest class first, its largest tenant, its last", func(t *testing.T) {
		d := newDesk(t, queue.Config{Limit: shed.Fixed(1), Bound: 5, Share: [priority.Count]float64{1, 1, 1, 1}})
		d.offer("n:a", "b:x1", "b:y1", "b:y2", "h:a")
		d.expect(d.offer("c:a", "h:b", "n:c"), "+c:a !b:y2 +h:b !b:y1 +n:c !b:x1")
		d.expect(d.offer("b:z", "c:b"), "-b:z +c:b !n:c")
	})
	t.Run("nobody of a higher class", func(t *testing.T) {
		d := newDesk(t, queue.Config{Limit: shed.Fixed(1), Bound: 2})
		d.offer("h:a1", "h:a2")
		d.expect(d.offer("n:b"), "-n:b")
	})
	t.Run("two tenants never churn", func(t *testing.T) {
		d := newDesk(t, queue.Config{Limit: shed.Fixed(1), Bound: 5})
		d.offer("n:a1", "n:a2", "n:a3", "n:b1", "n:b2")
		d.expect(d.offer("n:b3", "n:a4", "n:b3", "n:a4"), "-n:b3 -n:a4 -n:b3 -n:a4")
	})
	t.Run("one more than two apart is enough", func(t *testing.T) {
		d := newDesk(t, queue.Config{Limit: shed.Fixed(1), Bound: 5})
		d.offer("n:a1", "n:a2", "n:a3", "n:a4", "n:b1")
		d.expect(d.offer("n:b2", "n:b3"), "+n:b2 !n:a4 -n:b3")
	})
	t.Run("newest first: the oldest of the newcomer's tenant", func(t *testing.T) {
		d := newDesk(t, queue.Config{Limit: shed.Fixed(1), Bound: 2, MaxWait: 100 * time.Millisecond})
		d.offer("n:a1", "n:a2")
		d.expect(d.offer("n:a3"), "-n:a3")
		d.now = d.now.Add(50 * time.Millisecond)
		d.expect(d.offer("n:a3", "n:a4"), "+n:a3 !n:a1 +n:a4 !n:a2")
		d.expect(d.offer("n:a5"), "-n:a5") // the head is young again
	})
}

func TestSharesBindOnlyWhileAHigherClassWaits(t *testing.T) {
	d := newDesk(t, queue.Config{Limit: shed.Fixed(1), Bound: 20})
	d.offer(repeat("b:a%d", 9)...)
	d.expect(d.offer("c:x", "b:a9"), "+c:x +b:a9")
	d.expect(d.offer("b:a10"), "-b:a10")           // half of twenty
	d.expect(d.offer("b:other"), "+b:other !b:a9") // and tenants stay equal within it
	d.expect(d.offer(repeat("n:a%d", 5)...), "+n:a0 +n:a1 +n:a2 +n:a3 +n:a4 !b:a8")
	d.serve(1) // the critical one; nobody above normal waits
	d.expect(d.offer("n:a5", "n:a6"), "+n:a5 +n:a6")
}

func TestBytesBoundWhoWaits(t *testing.T) {
	d := newDesk(t, queue.Config{Limit: shed.Fixed(1), Bound: 100, Bytes: 1000})
	d.offer(repeat("b:a%d", 5)...)
	d.offer(repeat("n:a%d", 5)...) // 1000 in all
	d.expect(d.offer("n:a9"), "+n:a9")
	d.left("b:a4 evicted")
	d.expect(d.offer("b:b1"), "+b:b1")
	d.left("b:a3 evicted")
	big := &queue.Waiter{Ticket: queue.Ticket{Level: priority.Critical, Bytes: 126}}
	if v, _ := d.core.Offer(d.now, big); v != shed.Out || big.Reason != shed.QueueBytes {
		t.Fatalf("more than an eighth: %v %v", v, big.Reason)
	}
	unknown := &queue.Waiter{Ticket: queue.Ticket{Level: priority.Critical, Bytes: -1}}
	if v, _ := d.core.Offer(d.now, unknown); v != shed.Out || unknown.Reason != shed.QueueBytes {
		t.Fatalf("unknown length: %v %v", v, unknown.Reason)
	}
	fits := &queue.Waiter{Ticket: queue.Ticket{Level: priority.Critical, Bytes: 125}}
	d.names[fits] = "fits"
	if v, _ := d.core.Offer(d.now, fits); v != shed.Waits {
		t.Fatalf("an eighth: %v %v", v, fits.Reason)
	}
	d.left("b:a2 evicted, b:a1 evicted")
	if n := d.core.Stats(d.now).WaitingBytes; n != [priority.Count]int64{200, 600, 0, 125} {
		t.Fatalf("%v bytes wait", n)
	}
}

func TestBytesThatCannotBeFreedEvictNobody(t *testing.T) {
	d := newDesk(t, queue.Config{Limit: shed.Fixed(1), Bound: 100, Bytes: 1000})
	d.offer(repeat("h:a%d", 10)...)
	d.expect(d.offer("n:a", "h:a10"), "-n:a -h:a10")
	d.left("")
	d.expect(d.offer("h:b"), "+h:b")
	d.left("h:a9 evicted")
}

// left checks who comes out through Expire.
func (d *desk) left(want string) {
	d.t.Helper()
	var log []string
	for w := d.core.Expire(d.now); w != nil; w = d.core.Expire(d.now) {
		log = append(log, d.names[w]+" "+w.Reason.String())
	}
	d.expect(strings.Join(log, ", "), want)
}

// steady serves one slot's work, each of it taking so long, n times.
func (d *desk) steady(level priority.Level, service time.Duration, n int) {
	for range n {
		d.core.Release(d.now, d.held[0], shed.Ignored)
		w := &queue.Waiter{Ticket: queue.Ticket{Level: level}}
		if v, _ := d.core.Offer(d.now, w); v != shed.In {
			d.t.Fatalf("%v %v", v, w.Reason)
		}
		d.now = d.now.Add(service)
		d.core.Release(d.now, w.Grant, shed.Served)
		hold := &queue.Waiter{Ticket: queue.Ticket{Level: priority.Critical}}
		d.core.Offer(d.now, hold)
		d.held[0] = hold.Grant
	}
}

func TestThePredictedWaitCountsFairly(t *testing.T) {
	d := newDesk(t, queue.Config{Limit: shed.Fixed(1), Bound: 1000, MaxWait: 100 * time.Millisecond})
	d.steady(priority.Normal, 10*time.Millisecond, 200) // one slot every 10 ms: ten waits fit
	d.offer(repeat("n:loud%d", 40)...)
	if n := d.core.Stats(d.now).Waiting[priority.Normal.Index()]; n != 10 {
		t.Fatalf("%d of one tenant wait, want the 10 that fit in MaxWait", n)
	}
	d.expect(d.offer("n:quiet1"), "+n:quiet1") // one of loud before it, ten of loud in all
	d.expect(d.offer("c:a"), "+c:a")
}

// As long as the service takes 90 ms and the deadline is 150 ms, nobody gets a slot
// with less than 90 ms left, however the waits fall.
func TestNobodyIsAdmittedWithLessThanTheMedianServiceTimeLeft(t *testing.T) {
	d := newDesk(t, queue.Config{Limit: shed.Fixed(2), Bound: 1000})
	d.core.Release(d.now, d.held[1], shed.Ignored) // one stays free: how fast a queue drains is not known
	d.steady(priority.Normal, 90*time.Millisecond, 20)
	d.core.Offer(d.now, new(queue.Waiter))
	for i := range 200 {
		w := &queue.Waiter{Ticket: queue.Ticket{Deadline: d.now.Add(150 * time.Millisecond)}}
		d.core.Offer(d.now, w)
		d.now = d.now.Add(7 * time.Millisecond)
		if i%3 == 0 {
			d.core.Release(d.now, d.held[0], shed.Ignored)
		}
		for w := d.core.Next(d.now); w != nil; w = d.core.Next(d.now) {
			if left := w.Deadline.Sub(d.now); left < 90*time.Millisecond {
				t.Fatalf("admitted with %v left", left)
			}
			d.held[0] = w.Grant
		}
		for w := d.core.Expire(d.now); w != nil; w = d.core.Expire(d.now) {
			if w.Reason != shed.Hopeless || w.Deadline.Sub(d.now) < 83*time.Millisecond {
				t.Fatalf("left with %v, %v before its deadline", w.Reason, w.Deadline.Sub(d.now))
			}
		}
	}
	if n := d.core.Stats(d.now).Waited; n < 20 {
		t.Fatalf("only %d were admitted from the queue", n)
	}
}

// A service that was too slow for every deadline and has healed is found out, with
// no help from requests without a deadline.
func TestAnOldSlowEstimateDoesNotRefuseEverybodyForEver(t *testing.T) {
	d := newDesk(t, queue.Config{Limit: shed.Fixed(1)})
	d.steady(priority.Normal, 2*time.Second, 20)
	d.core.Release(d.now, d.held[0], shed.Ignored)
	served, refused := 0, 0
	for range 100 { // one request every 10 ms, 1 s to live, and the work takes 5 ms
		w := &queue.Waiter{Ticket: queue.Ticket{Deadline: d.now.Add(time.Second)}}
		if v, _ := d.core.Offer(d.now, w); v == shed.In {
			d.core.Release(d.now.Add(5*time.Millisecond), w.Grant, shed.Served)
			served++
		} else {
			refused++
		}
		d.now = d.now.Add(10 * time.Millisecond)
	}
	if served < 95 {
		t.Fatalf("%d served, %d refused", served, refused)
	}
}

// Where the estimate is right, trying it out costs one slot, not all of them.
func TestARightSlowEstimateIsTriedByOneAtATime(t *testing.T) {
	d := newDesk(t, queue.Config{Limit: shed.Fixed(10)})
	d.steady(priority.Normal, 2*time.Second, 20)
	for _, g := range d.held {
		d.core.Release(d.now, g, shed.Ignored)
	}
	type work struct {
		queue.Grant
		end time.Time
	}
	var flying []work
	most := 0
	for range 1000 {
		w := &queue.Waiter{Ticket: queue.Ticket{Deadline: d.now.Add(time.Second)}}
		if v, _ := d.core.Offer(d.now, w); v == shed.In {
			flying = append(flying, work{w.Grant, d.now.Add(2 * time.Second)})
		}
		most = max(most, len(flying))
		for len(flying) > 0 && !flying[0].end.After(d.now) {
			d.core.Release(d.now, flying[0].Grant, shed.TimedOut)
			flying = flying[1:]
		}
		d.now = d.now.Add(10 * time.Millisecond)
	}
	if most != 1 {
		t.Fatalf("%d hopeless requests in flight at once", most)
	}
}

// Long reports and short searches share a level: the reports' time must not refuse
// the searches for good.
func TestAMixOfLongAndShortWorkServesTheShort(t *testing.T) {
	d := newDesk(t, queue.Config{Limit: shed.Fixed(1)})
	d.steady(priority.Normal, 5*time.Second, 20)
	d.core.Release(d.now, d.held[0], shed.Ignored)
	served := 0
	for i := range 100 {
		w := &queue.Waiter{}
		took := 5 * time.Second
		if i%5 > 2 { // two in five
			w.Deadline, took = d.now.Add(time.Second), 10*time.Millisecond
		}
		if v, _ := d.core.Offer(d.now, w); v == shed.In {
			d.now = d.now.Add(took)
			d.core.Release(d.now, w.Grant, shed.Served)
			if took < time.Second {
				served++
			}
		}
	}
	if served != 40 {
		t.Fatalf("%d of 40 short ones served", served)
	}
}
