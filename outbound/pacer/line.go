package pacer

import (
	"context"
	"time"

	"github.com/headgate-go/headgate/priority"
)

// line holds the calls of one operation that wait for their turn: the highest level
// first, within a level first come, first served. One timer serves it, and lives
// while there is a call in it. It is guarded by its operation's lock.
type line struct {
	op    *Operation
	lanes [priority.Count]lane
	n     int

	serving bool // a serve is under way, or the timer will start one
	timer   *time.Timer
	fires   time.Time // when the timer does
	debt    int       // sends that could not be paid for when they happened
}

// lane is a linked list, so that a call that leaves does so in constant time.
type lane struct {
	head, tail *waiter
	n          int
}

// waiter is one call in line.
type waiter struct {
	level      int
	until      time.Time // when it stops waiting: its deadline, or its longest wait
	ready      chan struct{}
	grant      Grant
	err        error
	done       bool // granted or refused; out of the line
	next, prev *waiter
}

// wait returns with a token in hand, or says why there is none. It blocks while the
// call stands in line.
func (l *line) wait(ctx context.Context, now time.Time, level int, longest time.Duration) (Grant, error) {
	if l.vacant(level) {
		grant, refusal, ok := l.op.ask(ctx, now, level)
		if ok {
			return grant, nil
		}
		if refusal.final {
			return Grant{}, &Refusal{Reason: refusal.reason, Wait: refusal.wait}
		}
	}
	w, err := l.join(ctx, now, level, longest)
	if err != nil {
		return Grant{}, err
	}
	return l.stand(ctx, w, w.until.Sub(now))
}

// vacant reports whether a newcomer of a level may ask at once: no call in line goes
// before it.
func (l *line) vacant(level int) bool {
	l.op.mu.Lock()
	defer l.op.mu.Unlock()
	return l.debt == 0 && (l.n == 0 || l.ahead(level) == 0)
}

// join puts the call in line, unless its turn would come too late.
func (l *line) join(ctx context.Context, now time.Time, level int, longest time.Duration) (*waiter, error) {
	o := l.op
	until := now.Add(longest)
	if d, ok := ctx.Deadline(); ok && d.Before(until) {
		until = d
	}
	p := o.limiter.Policy(o.key)
	o.mu.Lock()
	defer o.mu.Unlock()
	ahead := l.ahead(level)
	wait := o.predict(now, level, ahead, o.rateInForce(now, p), p.Burst)
	if !now.Add(wait).Before(until) {
		return nil, o.tooLong(now, level, wait, until)
	}
	w := &waiter{level: level, until: until, ready: make(chan struct{})}
	l.push(w)
	if ahead == 0 { // its turn is next, so its wait is the line's
		l.serveWithin(now, wait)
	}
	return w, nil
}

// stand waits for w's turn. The deadline is a timer of its own, because a prediction
// may be wrong.
func (l *line) stand(ctx context.Context, w *waiter, longest time.Duration) (Grant, error) {
	timer := time.NewTimer(longest)
	defer timer.Stop()
	select {
	case <-w.ready:
		return w.grant, w.err
	case <-ctx.Done():
		return Grant{}, l.leave(w, context.Cause(ctx))
	case <-timer.C:
		return Grant{}, l.leave(w, &Refusal{Reason: WaitTooLong, Wait: longest})
	}
}

// leave takes w out of the line; a token that reached it meanwhile goes back.
func (l *line) leave(w *waiter, err error) error {
	l.op.mu.Lock()
	served := w.done
	if !served {
		l.remove(w)
		w.done = true
	}
	l.op.mu.Unlock()
	if served && w.grant.op != nil {
		w.grant.returnToken(time.Now())
	}
	return err
}

// serve grants tokens until the line is empty or no token is to be had; then a timer
// goes on. Only one serve runs at a time, which the mark sees to, and never on a
// caller's goroutine: the limiter may have to ask a store.
func (l *line) serve() {
	for {
		level, ok := l.next()
		if !ok {
			return
		}
		now := time.Now()
		grant, refusal, ok := askSafely(l.op, now, level)
		switch {
		case ok:
			l.hand(grant, now)
		case refusal.final:
			l.refuseAll(refusal)
		default:
			l.serveAfter(now, refusal.wait)
			return
		}
	}
}

// next returns the level whose turn is next; with a debt to pay, the highest. It
// ends the serve when there is nothing left to do.
func (l *line) next() (level int, ok bool) {
	l.op.mu.Lock()
	defer l.op.mu.Unlock()
	l.timer = nil
	w := l.front()
	switch {
	case l.debt > 0:
		return highest, true
	case w != nil:
		return w.level, true
	}
	l.serving = false
	return 0, false
}

// serveAfter goes on with the serve after wait. A call that came meanwhile, and whose
// turn is earlier, has waited for nothing longer than this.
func (l *line) serveAfter(now time.Time, wait time.Duration) {
	o := l.op
	o.mu.Lock()
	defer o.mu.Unlock()
	if w := l.front(); w != nil {
		wait = min(wait, max(o.pauseLeft(now, w.level), o.nextAt.Sub(now), minWait))
	}
	l.fires = now.Add(wait)
	l.timer = time.AfterFunc(wait, l.serve)
}

// serveWithin makes sure that a serve comes within wait, for a call that is first in
// line now. A serve that is under way looks for itself. The lock is held.
func (l *line) serveWithin(now time.Time, wait time.Duration) {
	at := now.Add(wait)
	if l.serving && (l.timer == nil || !at.Before(l.fires) || !l.timer.Stop()) {
		return
	}
	l.serving, l.fires = true, at
	l.timer = time.AfterFunc(wait, l.serve)
}

// hand gives the token to the debt, or to the call that is first now.
func (l *line) hand(grant Grant, now time.Time) {
	l.op.mu.Lock()
	if l.debt > 0 {
		l.debt--
		l.op.mu.Unlock()
		return
	}
	w := l.front()
	if w != nil {
		l.finish(w, grant, nil)
	}
	l.op.mu.Unlock()
	if w == nil {
		grant.returnToken(now)
	}
}

// refuseAll refuses all calls in line: waiting does not help. A debt that cannot be
// paid is forgotten with them.
func (l *line) refuseAll(refusal denial) {
	l.op.mu.Lock()
	defer l.op.mu.Unlock()
	l.debt = 0
	l.each(func(_ int, w *waiter) {
		l.finish(w, Grant{}, &Refusal{Reason: refusal.reason, Wait: refusal.wait})
	})
}

// owe adds a send to the debt: if no token is to be had now, the next one pays.
func (l *line) owe(now time.Time) {
	l.op.mu.Lock()
	defer l.op.mu.Unlock()
	l.debt++
	l.serveWithin(now, 0)
}

func (l *line) push(w *waiter) {
	q := &l.lanes[w.level]
	w.prev = q.tail
	if q.tail == nil {
		q.head = w
	} else {
		q.tail.next = w
	}
	q.tail = w
	q.n++
	l.n++
}

// front returns the call whose turn is next, or nil.
func (l *line) front() *waiter {
	for i := priority.Count - 1; i >= 0; i-- {
		if w := l.lanes[i].head; w != nil {
			return w
		}
	}
	return nil
}

// ahead counts the calls that go before a newcomer of the given level.
func (l *line) ahead(level int) int {
	n := 0
	for i := level; i < priority.Count; i++ {
		n += l.lanes[i].n
	}
	return n
}

func (l *line) remove(w *waiter) {
	q := &l.lanes[w.level]
	if w.prev == nil {
		q.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		q.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.next, w.prev = nil, nil
	q.n--
	l.n--
}

// finish takes w out of the line with its result and wakes it.
func (l *line) finish(w *waiter, g Grant, err error) {
	l.remove(w)
	w.grant, w.err, w.done = g, err, true
	close(w.ready)
}

// each calls f for all calls in the order in which they will be served; f may finish
// its argument.
func (l *line) each(f func(place int, w *waiter)) {
	place := 0
	for i := priority.Count - 1; i >= 0; i-- {
		for w := l.lanes[i].head; w != nil; {
			next := w.next
			f(place, w)
			place++
			w = next
		}
	}
}
