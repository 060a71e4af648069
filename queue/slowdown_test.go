package queue_test

import (
	"math"
	"testing"
	"time"

	"github.com/headgate-go/headgate/internal/entry"
	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/shed"
)

// closedLoop is a fixed number of callers of which each sends its next request as
// soon as it has an answer, in virtual time, against a backend that only delays.
type closedLoop struct {
	core    *queue.Core
	now     time.Time
	latency time.Duration
	ends    []ending // by time, since latency is the same for all at any moment
	retry   []*queue.Waiter
	least   int
	served  map[int64]int // completions by second
}

type ending struct {
	at time.Time
	w  *queue.Waiter
}

func (l *closedLoop) offer(w *queue.Waiter) {
	w.Ticket = queue.Ticket{MaxWait: 10 * time.Second}
	switch v, _ := l.core.Offer(l.now, w); v {
	case entry.In:
		l.start(w)
	case entry.Out:
		l.retry = append(l.retry, w)
	}
}

func (l *closedLoop) start(w *queue.Waiter) {
	e := ending{l.now.Add(l.latency), w}
	i := len(l.ends)
	for ; i > 0 && l.ends[i-1].at.After(e.at); i-- {
	}
	l.ends = append(l.ends, ending{})
	copy(l.ends[i+1:], l.ends[i:])
	l.ends[i] = e
}

// run lets time pass until the given instant, a millisecond at a time.
func (l *closedLoop) run(until time.Time) {
	for ; l.now.Before(until); l.now = l.now.Add(time.Millisecond) {
		again := l.retry
		l.retry = nil
		for _, w := range again {
			l.offer(w)
		}
		for len(l.ends) > 0 && !l.ends[0].at.After(l.now) {
			w := l.ends[0].w
			l.ends = l.ends[1:]
			l.core.Release(l.now, w.Grant, shed.Served)
			l.served[l.now.Unix()]++
			l.offer(w)
		}
		for w := l.core.Expire(l.now); w != nil; w = l.core.Expire(l.now) {
			l.retry = append(l.retry, w)
		}
		for w := l.core.Next(l.now); w != nil; w = l.core.Next(l.now) {
			l.start(w)
		}
		l.least = min(l.least, l.core.Stats(l.now).Limit)
	}
}

// Fifty callers at 10 ms; a second each for half a minute; 10 ms again.
//
// Case IF-19: from reports about waiting and priority in other limiters
func TestTheLimitComesBackAfterALongSlowdown(t *testing.T) {
	core, err := queue.NewCore(queue.Config{Limit: shed.Throughput{Min: 4}, MaxWait: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Unix(1_000_000_000, 0)
	l := &closedLoop{core: core, now: start, latency: 10 * time.Millisecond, least: math.MaxInt, served: make(map[int64]int)}
	for range 50 {
		l.offer(new(queue.Waiter))
	}
	l.run(start.Add(20 * time.Second))
	before := core.Stats(l.now).Limit
	if before < 50 {
		t.Fatalf("limit %d with fifty callers and nothing that queues", before)
	}
	l.latency = time.Second
	l.run(start.Add(50 * time.Second))
	l.latency = 10 * time.Millisecond
	l.run(start.Add(110 * time.Second))
	if after := core.Stats(l.now).Limit; 2*after < before {
		t.Errorf("limit %d a minute after recovery, %d before", after, before)
	}
	if l.least < 4 {
		t.Errorf("limit went down to %d, below its minimum", l.least)
	}
	for s := range int64(110) {
		if s != 20 && l.served[start.Unix()+s] == 0 { // in second 20 the first slow ones are still running
			t.Errorf("nothing was served in second %d", s)
		}
	}
}
