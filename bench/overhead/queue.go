package overhead

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	door "github.com/headgate-go/headgate/internal/entry"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/shed"
)

// QueueRow is a queue with so many waiting in it.
type QueueRow struct {
	Waiting       int
	P50, P99      time.Duration // from a release to the next holder running
	ChannelP50    time.Duration // the same with a channel as a semaphore
	ChannelP99    time.Duration
	Dispatch      float64 // ns: one leaves with a slot, one joins
	Cancel, Evict float64 // ns: one leaves that way, one joins
}

const handovers = 20_000

func (r *run) measureQueues() (rows []QueueRow, err error) {
	for _, n := range r.queues {
		fmt.Fprintf(r.log, "queue, %d waiting\n", n)
		row := QueueRow{Waiting: n}
		s, err := queue.NewSlots(queue.Config{Limit: shed.Fixed(1), MaxWaiting: 2 * n, MaxWait: time.Hour})
		if err != nil {
			return nil, err
		}
		row.P50, row.P99 = handover(n, throughSlots(s))
		row.ChannelP50, row.ChannelP99 = handover(n, throughChannel())
		if err := r.operations(&row); err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// acquire waits for the slot and returns how to give it back.
type acquire func(context.Context) (release func(), err error)

func throughSlots(s *queue.Slots) acquire {
	return func(ctx context.Context) (func(), error) {
		g, err := s.Acquire(ctx, time.Now(), queue.Ticket{})
		return func() { s.Release(g, shed.Ignored) }, err
	}
}

func throughChannel() acquire {
	slot := make(chan struct{}, 1)
	return func(ctx context.Context) (func(), error) {
		select {
		case slot <- struct{}{}:
			return func() { <-slot }, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// handover lets n goroutines pass one slot on for as long as it takes to see enough
// of it, and returns the time from a release to the next holder running. What is
// measured is guarded by the slot.
func handover(n int, get acquire) (p50, p99 time.Duration) {
	ctx, stop := context.WithCancel(context.Background())
	var released time.Time
	var took []time.Duration
	var all sync.WaitGroup
	warm := n // everybody has had the slot once, so all are waiting
	for range n + 1 {
		all.Go(func() {
			for {
				release, err := get(ctx)
				if err != nil {
					return
				}
				now := time.Now()
				if warm--; warm < 0 {
					took = append(took, now.Sub(released))
				}
				if len(took) >= handovers {
					stop()
				}
				released = time.Now()
				release()
			}
		})
	}
	all.Wait()
	stop()
	slices.Sort(took)
	return took[len(took)/2], took[len(took)*99/100]
}

// operations measures the pure core with the number of waiters held: medians of the
// repeats.
func (r *run) operations(row *QueueRow) error {
	var dispatch, cancel, evict []float64
	for range r.repeats {
		c, err := newCrowd(row.Waiting)
		if err != nil {
			return err
		}
		dispatch = append(dispatch, c.time(r.turn, c.dispatch))
		cancel = append(cancel, c.time(r.turn, c.cancel))
		evict = append(evict, c.time(r.turn, c.evict))
		if c.err != nil {
			return c.err
		}
	}
	row.Dispatch, row.Cancel, row.Evict = median(dispatch), median(cancel), median(evict)
	return nil
}

// crowdOf is a core whose one slot is taken and whose queue is full: three classes,
// a thousand tenants, every other waiter with a deadline.
type crowdOf struct {
	core    *queue.Core
	now     time.Time
	waiters []*queue.Waiter
	at      int
	holder  *queue.Waiter
	vip     queue.Waiter
	err     error
}

func newCrowd(n int) (*crowdOf, error) {
	core, err := queue.NewCore(queue.Config{
		Limit: shed.Fixed(1), MaxWaiting: n, MaxWait: time.Hour, WaitingShare: [priority.Count]float64{1, 1, 1, 1},
	})
	if err != nil {
		return nil, err
	}
	c := &crowdOf{core: core, now: time.Now(), holder: new(queue.Waiter), vip: queue.Waiter{Ticket: queue.Ticket{Level: priority.Critical}}}
	core.Offer(c.now, c.holder)
	for i := range n {
		w := &queue.Waiter{Ticket: queue.Ticket{Level: priority.All()[i%3], Caller: strconv.Itoa(i % 1009)}}
		if i%2 == 0 {
			w.Deadline = c.now.Add(time.Hour + time.Duration(i*7919%n)*time.Millisecond)
		}
		c.offer(w)
		c.waiters = append(c.waiters, w)
	}
	return c, c.err
}

func (c *crowdOf) offer(w *queue.Waiter) {
	if v, _ := c.core.Offer(c.now, w); v != door.Waits {
		c.err = fmt.Errorf("queue: a waiter was not taken in: %w", w.Reason)
	}
}

func (c *crowdOf) time(length time.Duration, do func()) float64 {
	start, n := time.Now(), 0
	for ; time.Since(start) < length && c.err == nil; n += 64 {
		for range 64 {
			do()
		}
	}
	return float64(time.Since(start).Nanoseconds()) / float64(max(n, 1))
}

// dispatch lets the next one go and the last holder join at the end.
func (c *crowdOf) dispatch() {
	c.core.Release(c.now, c.holder.Grant, shed.Ignored)
	next := c.core.Next(c.now)
	if next == nil {
		c.err = fmt.Errorf("queue: nobody went though a slot was free")
		return
	}
	c.offer(c.holder)
	c.holder = next
}

// cancel takes one out of the middle and lets it join again.
func (c *crowdOf) cancel() {
	w := c.waiters[c.at%len(c.waiters)]
	c.at += 7919
	if w != c.holder && !c.core.Cancel(c.now, w) {
		c.err = fmt.Errorf("queue: a waiter was not there")
		return
	}
	if w != c.holder {
		c.offer(w)
	}
}

// evict lets somebody of a higher class in, for whom another goes.
func (c *crowdOf) evict() {
	_, left := c.core.Offer(c.now, &c.vip)
	if left == nil {
		c.err = fmt.Errorf("queue: nobody made room")
		return
	}
	c.core.Cancel(c.now, &c.vip)
	c.offer(left)
}
