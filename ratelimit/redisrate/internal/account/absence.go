package account

import (
	"time"

	"github.com/headgate-go/headgate/ratelimit"
)

// What an account does while the store is out of reach, and on its return.

// GoAway makes the share decide. It starts with the slots this process holds and
// its part of the bucket's last balance, which is below zero when slots were handed
// out ahead of the rate: all together that is what one bucket would hold now.
func (a *Account) GoAway(t time.Duration, v View) {
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
	a.share = newShare(t, Limit{Rate: a.speed(), Burst: a.inForce.Burst}, a.part(), start)
	a.OutOfReach(t, t)
}

// OutOfReach takes in a call that failed, for this key or another.
func (a *Account) OutOfReach(t, failed time.Duration) {
	if !a.away || failed < a.unheard.failed {
		return
	}
	deficit := 0.0
	if a.conf.OnOutage == ratelimit.FailShare {
		deficit = a.share.deficit(t)
	}
	a.unheard.mark(failed, deficit)
}

// lack is what the one bucket would be missing if all shares were as empty as this
// process': micro-tokens. While some are back and others are not, the bucket fills
// up faster than those that are back may draw, and the last of them would find a
// second burst there. Slots that are out are missing as well.
func (a *Account) lack(t time.Duration) int64 {
	return int64(a.share.deficit(t) / a.share.burst * float64(a.inForce.Burst) * Micro)
}

// Rejoin looks at an account that was left on its share: it forgets the outage when
// nothing is owed and nothing is missing, and else says that a call is needed.
func (a *Account) Rejoin(t time.Duration) (call bool) {
	if !a.away {
		return false
	}
	if a.Owes() || !a.share.full(t) {
		return a.flights.n == 0 && t >= a.next
	}
	a.comeBack(t)
	a.known = false
	return false
}

// comeBack makes the bucket decide again, after it was told what is owed.
func (a *Account) comeBack(t time.Duration) {
	a.away = false
	a.unheard.spent = max(0, a.unheard.spent)
	if t-a.since >= briefly && a.conf.OnOutage == ratelimit.FailShare {
		a.settle = t + settleTime
	}
}
