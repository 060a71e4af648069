package outbound

import (
	"context"
	"time"
)

// wait returns with a token in hand, or says why there is none. It blocks while the
// call stands in line.
func (o *operation) wait(ctx context.Context, now time.Time, level int, longest time.Duration) (Pass, error) {
	if o.vacant(level) {
		pass, refusal, ok := o.ask(ctx, now, level)
		if ok {
			return pass, nil
		}
		if refusal.hard {
			return Pass{}, &Refusal{Why: refusal.why, Wait: refusal.wait}
		}
	}
	w, err := o.join(ctx, now, level, longest)
	if err != nil {
		return Pass{}, err
	}
	return o.stand(ctx, w, w.until.Sub(now))
}

// vacant reports whether a newcomer of a level may ask at once: nobody in line goes
// before it.
func (o *operation) vacant(level int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.debt == 0 && (o.line.n == 0 || o.line.ahead(level) == 0)
}

// join puts the call in line, unless its turn would come too late.
func (o *operation) join(ctx context.Context, now time.Time, level int, longest time.Duration) (*waiter, error) {
	until := now.Add(longest)
	if d, ok := ctx.Deadline(); ok && d.Before(until) {
		until = d
	}
	p := o.limiter.Policy(o.key)
	o.mu.Lock()
	defer o.mu.Unlock()
	ahead := o.line.ahead(level)
	wait := o.predict(now, level, ahead, o.lawRate(now, p), p.Burst)
	if !now.Add(wait).Before(until) {
		return nil, o.tooLong(now, level, wait, until)
	}
	w := &waiter{level: level, until: until, ready: make(chan struct{})}
	o.line.push(w)
	if ahead == 0 { // whose turn is next, so its wait is everybody's
		o.armLocked(now, wait)
	}
	return w, nil
}

// stand waits for w's turn. The deadline is a timer of its own, because a
// prediction may be wrong.
func (o *operation) stand(ctx context.Context, w *waiter, longest time.Duration) (Pass, error) {
	timer := time.NewTimer(longest)
	defer timer.Stop()
	select {
	case <-w.ready:
		return w.pass, w.err
	case <-ctx.Done():
		return Pass{}, o.leave(w, context.Cause(ctx))
	case <-timer.C:
		return Pass{}, o.leave(w, &Refusal{Why: WaitTooLong, Wait: longest})
	}
}

// leave takes w out of the line; a token that reached it meanwhile goes back.
func (o *operation) leave(w *waiter, err error) error {
	o.mu.Lock()
	served := w.done
	if !served {
		o.line.remove(w)
		w.done = true
	}
	o.mu.Unlock()
	if served {
		w.pass.Undo(time.Now())
	}
	return err
}

// drive serves the line until it is empty or no token is to be had; then a timer
// goes on. Only one drive runs at a time, held together by the driving mark, and
// never on a caller's goroutine: the limiter may have to ask a store.
func (o *operation) drive() {
	for {
		level, ok := o.next()
		if !ok {
			return
		}
		now := time.Now()
		pass, refusal, ok := o.ask(context.Background(), now, level)
		switch {
		case ok:
			o.hand(pass, now)
		case refusal.hard:
			o.turnAway(refusal)
		default:
			o.arm(now, refusal.wait)
			return
		}
	}
}

// next returns the level whose turn is next; with a debt to pay, the highest. It
// ends the drive when there is nothing left to serve.
func (o *operation) next() (level int, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.timer = nil
	w := o.line.front()
	switch {
	case o.debt > 0:
		return highest, true
	case w != nil:
		return w.level, true
	}
	o.driving = false
	return 0, false
}

// arm goes on with the drive after wait. If somebody came meanwhile whose turn is
// earlier, it has waited for nothing longer than this.
func (o *operation) arm(now time.Time, wait time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if w := o.line.front(); w != nil {
		wait = min(wait, max(o.pauseLeft(now, w.level), o.nextAt.Sub(now), minWait))
	}
	o.armed = now.Add(wait)
	o.timer = time.AfterFunc(wait, o.drive)
}

// armLocked makes sure that a drive comes within wait, for somebody who is first in
// line now. A drive that is under way looks for itself.
func (o *operation) armLocked(now time.Time, wait time.Duration) {
	at := now.Add(wait)
	if o.driving && (o.timer == nil || !at.Before(o.armed) || !o.timer.Stop()) {
		return
	}
	o.driving, o.armed = true, at
	o.timer = time.AfterFunc(wait, o.drive)
}

// hand gives the token to whoever is first now, after the debt.
func (o *operation) hand(pass Pass, now time.Time) {
	o.mu.Lock()
	if o.debt > 0 {
		o.debt--
		o.mu.Unlock()
		return
	}
	w := o.line.front()
	if w != nil {
		o.line.settle(w, pass, nil)
	}
	o.mu.Unlock()
	if w == nil {
		pass.Undo(now)
	}
}

// turnAway refuses everybody in line: waiting does not help. A debt that cannot be
// paid is forgotten with them.
func (o *operation) turnAway(refusal no) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.debt = 0
	o.line.each(func(_ int, w *waiter) {
		o.line.settle(w, Pass{}, &Refusal{Why: refusal.why, Wait: refusal.wait})
	})
}

// owe charges for a send that net/http repeated by itself. If no token is to be had
// now, the next one pays. It does not block: net/http calls it between two writes.
func (o *operation) owe() {
	o.counts.resends.Add(1)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.debt++
	o.armLocked(time.Now(), 0)
}
