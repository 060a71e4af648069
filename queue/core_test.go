package queue_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headgate-go/headgate/internal/entry"
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
		if v, _ := core.Offer(d.now, w); v != entry.In {
			return d
		}
		d.held = append(d.held, w.Grant)
	}
}

// offer asks for a slot for each of the names, "level:caller"; a digit after it
// tells two of a caller apart. It returns what happened: "+x" waits, "-x" is
// refused, "!x" was evicted for it.
func (d *desk) offer(names ...string) string {
	d.t.Helper()
	var log []string
	for _, name := range names {
		level, caller, ok := strings.Cut(name, ":")
		l, known := priority.Parse(map[string]string{"b": "batch", "n": "normal", "h": "high", "c": "critical"}[level])
		if !ok || !known {
			d.t.Fatalf("bad name %q", name)
		}
		w := &queue.Waiter{Ticket: queue.Ticket{Level: l, Caller: strings.TrimRight(caller, "0123456789"), Bytes: 100}}
		d.names[w] = name
		v, evictee := d.core.Offer(d.now, w)
		log = append(log, map[entry.Verdict]string{entry.Waits: "+", entry.Out: "-", entry.In: "="}[v]+name)
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
		d.now = d.now.Add(time.Millisecond) // as long as is expected of work nothing is known of
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
	d := newDesk(t, queue.Config{Limit: shed.Fixed(1), MaxWaiting: 100})
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
	d := newDesk(t, queue.Config{Limit: shed.Fixed(1), MaxWaiting: 100})
	d.offer("n:a1", "n:a2", "n:a3", "n:a4", "n:b1", "n:b2", "n:c1")
	d.expect(d.serve(3), "n:a1 n:b1 n:c1")
	d.offer("n:c2") // no credit for having been away, no debt either: the last turn
	d.expect(d.serve(9), "n:a2 n:b2 n:c2 n:a3 n:a4")
}

func TestAQuietTenantIsNotShutOutByALoudOne(t *testing.T) {
	d := newDesk(t, queue.Config{Limit: shed.Fixed(1), MaxWaiting: 10})
	d.offer(repeat("n:loud%d", 50)...)
	d.expect(d.offer("n:quiet1", "n:quiet2"), "+n:quiet1 !n:loud9 +n:quiet2 !n:loud8")
	d.expect(d.serve(4), "n:loud0 n:quiet1 n:loud1 n:quiet2")
}

func TestEvictionTakesWhoeverWouldBeServedLast(t *testing.T) {
	t.Run("the lowest class first, its largest caller, its last", func(t *testing.T) {
		d := newDesk(t, queue.Config{Limit: shed.Fixed(1), MaxWaiting: 5, WaitingShare: [priority.Count]float64{1, 1, 1, 1}})
		d.offer("n:a", "b:x1", "b:y1", "b:y2", "h:a")
		d.expect(d.offer("c:a", "h:b", "n:c"), "+c:a !b:y2 +h:b !b:y1 +n:c !b:x1")
		d.expect(d.offer("b:z", "c:b"), "-b:z +c:b !n:c")
	})
	t.Run("nobody of a higher class", func(t *testing.T) {
		d := newDesk(t, queue.Config{Limit: shed.Fixed(1), MaxWaiting: 2})
		d.offer("h:a1", "h:a2")
		d.expect(d.offer("n:b"), "-n:b")
	})
	t.Run("two callers never churn", func(t *testing.T) {
		d := newDesk(t, queue.Config{Limit: shed.Fixed(1), MaxWaiting: 5})
		d.offer("n:a1", "n:a2", "n:a3", "n:b1", "n:b2")
		d.expect(d.offer("n:b3", "n:a4", "n:b3", "n:a4"), "-n:b3 -n:a4 -n:b3 -n:a4")
	})
	t.Run("one more than two apart is enough", func(t *testing.T) {
		d := newDesk(t, queue.Config{Limit: shed.Fixed(1), MaxWaiting: 5})
		d.offer("n:a1", "n:a2", "n:a3", "n:a4", "n:b1")
		d.expect(d.offer("n:b2", "n:b3"), "+n:b2 !n:a4 -n:b3")
	})
	t.Run("newest first: the oldest of the newcomer's caller", func(t *testing.T) {
		d := newDesk(t, queue.Config{Limit: shed.Fixed(1), MaxWaiting: 2, MaxWait: 100 * time.Millisecond})
		d.offer("n:a1", "n:a2")
		d.expect(d.offer("n:a3"), "-n:a3")
		d.now = d.now.Add(50 * time.Millisecond)
		d.expect(d.offer("n:a3", "n:a4"), "+n:a3 !n:a1 +n:a4 !n:a2")
		d.expect(d.offer("n:a5"), "-n:a5") // the head is young again
	})
}

func TestSharesBindOnlyWhileAHigherClassWaits(t *testing.T) {
	d := newDesk(t, queue.Config{Limit: shed.Fixed(1), MaxWaiting: 20})
	d.offer(repeat("b:a%d", 9)...)
	d.expect(d.offer("c:x", "b:a9"), "+c:x +b:a9")
	d.expect(d.offer("b:a10"), "-b:a10")           // half of twenty
	d.expect(d.offer("b:other"), "+b:other !b:a9") // and callers stay equal within it
	d.expect(d.offer(repeat("n:a%d", 5)...), "+n:a0 +n:a1 +n:a2 +n:a3 +n:a4 !b:a8")
	d.serve(1) // the critical one; nobody above normal waits
	d.expect(d.offer("n:a5", "n:a6"), "+n:a5 +n:a6")
}

func TestBytesBoundWhoWaits(t *testing.T) {
	d := newDesk(t, queue.Config{Limit: shed.Fixed(1), MaxWaiting: 100, MaxWaitingBytes: 1000})
	d.offer(repeat("b:a%d", 5)...)
	d.offer(repeat("n:a%d", 5)...) // 1000 in all
	d.expect(d.offer("n:a9"), "+n:a9")
	d.left("b:a4 evicted")
	d.expect(d.offer("b:b1"), "+b:b1")
	d.left("b:a3 evicted")
	big := &queue.Waiter{Ticket: queue.Ticket{Level: priority.Critical, Bytes: 126}}
	if v, _ := d.core.Offer(d.now, big); v != entry.Out || big.Reason != shed.QueueBytes {
		t.Fatalf("more than an eighth: %v %v", v, big.Reason)
	}
	unknown := &queue.Waiter{Ticket: queue.Ticket{Level: priority.Critical, Bytes: -1}}
	if v, _ := d.core.Offer(d.now, unknown); v != entry.Out || unknown.Reason != shed.QueueBytes {
		t.Fatalf("unknown length: %v %v", v, unknown.Reason)
	}
	fits := &queue.Waiter{Ticket: queue.Ticket{Level: priority.Critical, Bytes: 125}}
	d.names[fits] = "fits"
	if v, _ := d.core.Offer(d.now, fits); v != entry.Waits {
		t.Fatalf("an eighth: %v %v", v, fits.Reason)
	}
	d.left("b:a2 evicted, b:a1 evicted")
	if n := d.core.Stats(d.now).WaitingBytes; n != [priority.Count]int64{200, 600, 0, 125} {
		t.Fatalf("%v bytes wait", n)
	}
}

func TestBytesThatCannotBeFreedEvictNobody(t *testing.T) {
	d := newDesk(t, queue.Config{Limit: shed.Fixed(1), MaxWaiting: 100, MaxWaitingBytes: 1000})
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
