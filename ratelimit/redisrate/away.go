package redisrate

import (
	"time"

	"github.com/headgate-go/headgate/ratelimit"
)

// settleTime is how long after its return a process stays inside its share as
// well: others may still be on theirs, and together they must not exceed the
// ceiling. It covers the longest pause between two looks at the store.
const settleTime = maxProbe + maxProbe/2

// briefly is an absence too short for others to have noticed.
const briefly = 250 * time.Millisecond

// goAway makes the share decide. It starts with the slots this process holds and
// its part of the bucket's last balance, which is below zero when slots were handed
// out ahead of the rate: all together that is what one bucket would hold now.
func (a *account) goAway(t time.Duration, v view) {
	if a.away {
		return
	}
	a.view = v
	a.away, a.since = true, t
	a.unheard.add(a.advance)
	a.advance = 0
	held := a.clear()
	a.gone += held
	start := float64(held) + a.entitled(t) - max(0, a.unheard.spent)
	a.unheard.spent -= float64(held)
	if t < a.settle { // a flap mints nothing
		a.share.refill(t)
		start = min(start, a.share.tokens)
	}
	a.share = newShare(t, limit{rate: a.speed(), burst: a.inForce.burst}, a.part(), start)
	a.outOfReach(t, t)
}

// outOfReach hears of a call that failed, for this key or another.
func (a *account) outOfReach(t, failed time.Duration) {
	if !a.away || failed < a.unheard.failed {
		return
	}
	deficit := 0.0
	if a.conf.outage == FailShare {
		deficit = a.share.deficit(t)
	}
	a.unheard.mark(failed, deficit)
}

// lookAway decides while the store is away.
func (a *account) lookAway(t time.Duration, cost int, patience time.Duration) verdict {
	switch a.conf.outage {
	case FailOpen:
		return verdict{ok: true, source: ratelimit.SourceOpen}
	case FailClosed:
		return verdict{wait: max(a.next-t, time.Second), source: ratelimit.SourceClosed}
	}
	wait := max(a.share.wait(t, cost), a.pause-t, 0)
	return verdict{ok: wait <= patience, wait: wait, source: ratelimit.SourceShare}
}

// lack is what the one bucket would be missing if all shares were as empty as this
// process': micro-tokens. While some are back and others are not, the bucket fills
// up faster than those who are back may draw, and it would greet the last of them
// with a second burst. Slots that are out hold it down; without any, this does.
func (a *account) lack(t time.Duration) int64 {
	return int64(a.share.deficit(t) / a.share.burst * float64(a.inForce.burst) * micro)
}

// comeBack makes the bucket decide again, after it was told what is owed.
func (a *account) comeBack(t time.Duration) {
	a.away = false
	a.unheard.spent = max(0, a.unheard.spent)
	if t-a.since >= briefly && a.conf.outage == FailShare {
		a.settle = t + settleTime
	}
}

// refund puts back what an unspent grant took. Slots are as good as new until
// they perish; after that they are nobody's.
func (a *account) refund(t time.Duration, cost int, matured time.Duration, source ratelimit.Source) {
	switch source {
	case ratelimit.SourceShare, ratelimit.SourceOpen:
		if !a.away {
			a.advance = max(0, a.advance-cost)
			return
		}
		a.share.undo(cost)
		a.unheard.add(-cost)
	default:
		if t < a.settle {
			a.share.undo(cost)
		}
		if !a.away && t <= matured+a.perish {
			a.put(cost, matured)
			a.gone -= cost
		}
	}
}

// adjust charges by more tokens for a grant, or gives -by of them back.
func (a *account) adjust(t time.Duration, by int, matured time.Duration, source ratelimit.Source) {
	switch {
	case by < 0:
		a.refund(t, -by, matured, source)
	case a.away:
		a.spendFor(t, by, ratelimit.SourceShare)
	default:
		here := min(by, a.held)
		a.spendFor(t, here, a.source())
		a.credit -= by - here // the bucket goes into debt for the rest
	}
}
