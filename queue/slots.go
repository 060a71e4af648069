package queue

import (
	"context"
	"sync"
	"time"

	"github.com/headgate-go/headgate/internal/entry"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

// Slots hands out a limited number of slots, and lets a bounded number of
// goroutines wait for one in a fair order: a lock and a wait around a [Core], whose rules it
// follows. It starts no goroutine of its own, and nothing polls: a goroutine that waits
// sleeps until it is woken or its context ends; one timer serves all stays. All methods
// are safe for concurrent use; Acquire without a wait and Release cost one short critical
// section each and do not allocate.
type Slots struct {
	epoch time.Time // the core's

	mu     sync.Mutex
	core   *Core
	onMove func(shed.Step)
	timer  *time.Timer // makes waiters leave
	armed  time.Time   // when it fires; zero: it does not
	idle   spares
	door   door
}

// mostKept is how many waiters, with their channel, are kept for the next
// rush.
const mostKept = 1024

// NewSlots builds slots. Errors name the field of the Config.
func NewSlots(config Config) (*Slots, error) {
	core, err := NewCore(config)
	if err != nil {
		return nil, err
	}
	core.epoch = time.Now()
	return &Slots{epoch: core.epoch, core: core, onMove: config.OnMove, idle: spares{most: mostKept}}, nil
}

// Acquire takes a slot, waiting for one within the bounds of the Config and the
// ticket; now is the caller's current time. It returns when there is a slot, when
// the stay is over, when the deadline can no longer be met, when the place in the
// queue goes to work ranked higher, or when ctx ends, whichever is first. The
// error is a [shed.Reason]: ClientGone when ctx was cancelled, DeadlineUnmeetable when its
// deadline passed. The grant must be released exactly once.
func (s *Slots) Acquire(ctx context.Context, now time.Time, t Ticket) (Grant, error) {
	g, _, err := s.acquire(ctx, now, &t, false)
	return g, err
}

// Ask is [Slots.Acquire] for a caller that tells its client when to come back: a refusal
// is counted as in [Slots.RetryAfter], in the same step, with what that returns; else it
// is zero. Where nobody waits it refuses without the lock while nothing changes.
func (s *Slots) Ask(ctx context.Context, now time.Time, t *Ticket) (Grant, time.Duration, error) {
	return s.acquire(ctx, now, t, true)
}

// acquire counts a refusal as in RetryAfter if it is told.
func (s *Slots) acquire(ctx context.Context, now time.Time, t *Ticket, told bool) (g Grant, after time.Duration, err error) {
	if err := ctx.Err(); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		reason := ended(err)
		s.core.tally.refused[t.Level.Index()][reason]++
		return Grant{}, s.comebackLocked(now, t.Level, told), reason
	}
	if told {
		if after, refused := s.door.refuse(s.epoch, now, t); refused {
			return Grant{}, after, shed.Capacity
		}
	}
	s.mu.Lock()
	s.door.tell(s.core, now, t.Level)
	if g, ok := s.core.walkIn(now, t); ok {
		s.settle(now, nil)
		return g, 0, nil
	}
	w := s.waiter()
	w.Ticket = *t
	v, evictee := s.core.Offer(now, w)
	if v == entry.Waits {
		s.settle(now, evictee)
		return s.wait(ctx, w, told)
	}
	g, reason := w.Grant, w.Reason
	s.idle.put(w)
	if v == entry.Out {
		after = s.comebackLocked(now, t.Level, told)
		if s.door.close(s.core, now, t.Level, reason) {
			s.mu.Unlock()
			return g, after, reason
		}
	}
	s.settle(now, evictee)
	return g, after, reason.Err()
}

// TryAcquire takes a slot if one is free and no waiter goes first. It never
// blocks.
func (s *Slots) TryAcquire(now time.Time, t Ticket) (Grant, error) {
	t.MaxWait = NoWait
	return s.Acquire(context.Background(), now, t)
}

// Force takes a slot for t whether one is free or not, for a gate in shadow mode,
// which counts what it would have refused and lets it run. The work is in flight
// like any other; with more of it than slots, the limit that a law learns is
// advice only. It never blocks.
func (s *Slots) Force(now time.Time, t Ticket) Grant {
	s.mu.Lock()
	w := s.waiter()
	w.Ticket = t
	s.core.force(now, w)
	g := w.Grant
	s.idle.put(w)
	s.settle(now, nil)
	return g
}

// wait blocks until w has left the queue, and ends its use. No lock is held.
func (s *Slots) wait(ctx context.Context, w *Waiter, told bool) (Grant, time.Duration, error) {
	select {
	case <-w.wake:
	case <-ctx.Done():
		s.cancel(ctx, w)
		<-w.wake
	}
	return s.finish(ctx, w, told)
}

// cancel makes w leave because its context ended, unless it has left already.
func (s *Slots) cancel(ctx context.Context, w *Waiter) {
	s.mu.Lock()
	now := time.Now()
	if s.core.cancel(now, w, ended(ctx.Err())) {
		s.settle(now, w)
		return
	}
	s.settle(now, nil)
}

// finish returns what w got and keeps it for the next caller. A slot that came
// together with the end of the context is given back: it would not be used.
func (s *Slots) finish(ctx context.Context, w *Waiter, told bool) (g Grant, after time.Duration, _ error) {
	g, reason, level := w.Grant, w.Reason, w.Level
	err := ctx.Err()
	s.mu.Lock()
	s.idle.put(w)
	switch {
	case reason != shed.Admitted:
		after = s.comebackLocked(s.now(), level, told)
		s.mu.Unlock()
		return g, after, reason
	case err == nil:
		s.mu.Unlock()
		return g, 0, nil
	}
	now := s.now()
	reason = ended(err)
	s.core.revoke(now, g, level, reason)
	after = s.comebackLocked(now, level, told)
	s.settle(now, nil)
	return Grant{}, after, reason
}

// now is the current time, at half the price of time.Now.
func (s *Slots) now() time.Time { return s.epoch.Add(time.Since(s.epoch)) }

// Release gives the slot back and says how the work ended. It returns how long the
// slot was held. Releasing twice, through a copy of the grant, or a grant that was
// never given, does nothing and returns false.
func (s *Slots) Release(g Grant, o shed.Outcome) (held time.Duration, ok bool) {
	if !g.Held() {
		return 0, false
	}
	return s.ReleaseAt(s.now(), g, o)
}

// ReleaseAt is Release for a caller that has read the current time already.
func (s *Slots) ReleaseAt(now time.Time, g Grant, o shed.Outcome) (held time.Duration, ok bool) {
	at := now.Sub(s.epoch)
	s.mu.Lock()
	if ok = s.core.flight.held(g) != nil; ok {
		held = at - g.at
		s.core.Release(now, g, o)
	}
	s.settle(now, nil)
	return held, ok
}

// Drain makes all waiters leave with Draining and refuses newcomers. Work
// in flight goes on. There is no way back; a second call does nothing.
func (s *Slots) Drain() {
	s.mu.Lock()
	now := time.Now()
	s.core.Drain(now)
	s.settle(now, nil)
}

// Update adopts another configuration, or returns an error that names the field and
// changes nothing; see [Core.Update].
func (s *Slots) Update(config Config) error {
	s.mu.Lock()
	now := time.Now()
	err := s.core.Update(now, config)
	if err == nil {
		s.onMove = config.OnMove
	}
	s.settle(now, nil)
	return err
}

// Limit returns the number of slots in force.
func (s *Slots) Limit() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.core.limit
}

// Stats returns what the slots look like now.
func (s *Slots) Stats() Stats {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range priority.All() {
		s.door.tell(s.core, now, l)
	}
	return s.core.Stats(now)
}

// settle ends a critical section: it takes out all that have to leave or may go,
// sees to it that the next to leave will, unlocks, and only then wakes them and
// reports the move. left is a waiter that has left already, or nil.
func (s *Slots) settle(now time.Time, left *Waiter) {
	if left != nil {
		left.next = nil
	}
	if s.core.line.n > 0 || s.core.out.oldest != nil {
		left = s.clear(now, left)
		s.arm()
	}
	step, onMove := s.core.Moved(), s.onMove
	s.door.open()
	s.mu.Unlock()
	for w := left; w != nil; {
		next := w.next // read before w is used again
		w.next = nil
		w.wake <- struct{}{}
		w = next
	}
	if onMove != nil && step.Moved() {
		onMove(step)
	}
}

// clear empties the core's Expire and Next in front of the given chain.
func (s *Slots) clear(now time.Time, chain *Waiter) *Waiter {
	for w := s.core.Expire(now); w != nil; w = s.core.Expire(now) {
		w.next, chain = chain, w
	}
	for w := s.core.Next(now); w != nil; w = s.core.Next(now) {
		w.next, chain = chain, w
	}
	return chain
}

// arm sets the one timer that makes waiters leave. It may fire early, when the one
// it was set for has gone: then it is set for the next.
func (s *Slots) arm() {
	at, ok := s.core.NextExpiry()
	if !ok || !s.armed.IsZero() && !at.Before(s.armed) {
		return
	}
	s.armed = at
	if s.timer == nil {
		s.timer = time.AfterFunc(time.Until(at), s.expire)
		return
	}
	s.timer.Reset(time.Until(at))
}

// expire is what the timer does.
func (s *Slots) expire() {
	s.mu.Lock()
	s.armed = time.Time{}
	s.settle(time.Now(), nil)
}

// waiter returns one that is not in use.
func (s *Slots) waiter() *Waiter {
	if w := s.idle.take(); w != nil {
		return w
	}
	return &Waiter{wake: make(chan struct{}, 1)}
}
