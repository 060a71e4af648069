package redisrate

import (
	"time"

	"github.com/headgate-go/headgate/ratelimit"
)

// Peek implements ratelimit.Peeker. It makes no call: when only the store can
// tell, the answer is that the request would pass.
func (l *Limiter) Peek(now time.Time, key ratelimit.Key, cost int, maxWait time.Duration) ratelimit.Decision {
	if l.bad != nil {
		return ratelimit.Decision{Never: true, Source: ratelimit.SourceClosed}
	}
	if d, ok := l.unmetered(key.Plan); ok {
		return d
	}
	t := now.Sub(l.start)
	e := l.table.find(key)
	if e == nil {
		e = l.newEntry(key)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	v := e.account.look(t, max(1, cost), max(0, maxWait))
	v.ok = v.ok || v.call
	d := l.decisionLocked(e, v, t, key, cost)
	d.Grant = ratelimit.Grant{}
	return d
}

// Undo implements ratelimit.Undoer. Slots go back to this process, and to the
// bucket when nobody here wants them.
func (l *Limiter) Undo(now time.Time, g ratelimit.Grant) {
	l.change(now, g, func(a *account, t, matured time.Duration, s ratelimit.Source) {
		a.refund(t, g.Cost, matured, s)
	})
}

// Adjust implements ratelimit.Adjuster.
func (l *Limiter) Adjust(now time.Time, g ratelimit.Grant, by int) {
	l.change(now, g, func(a *account, t, matured time.Duration, s ratelimit.Source) {
		a.adjust(t, max(by, -g.Cost), matured, s)
	})
}

func (l *Limiter) change(now time.Time, g ratelimit.Grant, f func(a *account, t, matured time.Duration, s ratelimit.Source)) {
	t := now.Sub(l.start)
	e := l.table.get(g.Key, t)
	if e == nil {
		return
	}
	matured, source := unmark(g.Mark)
	e.mu.Lock()
	defer e.mu.Unlock()
	f(&e.account, t, matured, source)
	l.watchLocked(e)
}

// mark packs when a grant matures, and what it came from, into a Grant's mark.
func mark(t time.Duration, s ratelimit.Source) uint64 { return uint64(t)<<4 | uint64(s) }

func unmark(m uint64) (time.Duration, ratelimit.Source) {
	return time.Duration(m >> 4), ratelimit.Source(m & 15)
}
