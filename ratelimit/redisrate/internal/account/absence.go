package account

import (
	"time"

	"github.com/headgate-go/headgate/ratelimit"
)

// What an account does while the store is out of reach, and on its return.

// GoAway makes the share decide. It starts with the slots this process holds, its part
// of the bucket's last balance, which is below zero when slots were handed out ahead of
// the rate, and its part of what was refilled in the silence: all together that is what
// one bucket would hold now. Calls whose answers were lost may have drawn on it or not.
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
	full := float64(a.inForce.Burst) * a.part() // a full bucket refills nothing
	start := float64(held) + min(full, a.left()+a.undrawn(t)) - max(0, a.unheard.spent) - float64(a.doubt)
	a.unheard.spent -= float64(held)
	if t < a.settle { // a flap mints nothing
		a.share.refill(t)
		start = min(start, a.share.tokens)
	}
	a.share = newShare(t, Limit{Rate: a.speed(), Burst: a.inForce.Burst}, a.part(), start)
}

// left is this process' part of what the bucket held when it fell silent. One that was
// all but empty when last heard is drawn upon as fast as it refills, down to the reserve.
func (a *Account) left() float64 {
	rest := float64(a.inForce.Burst)
	if a.known {
		rest = min(rest, a.balance)
	}
	if rest < 2 {
		rest = min(rest, -float64(a.terms.Reserve))
	}
	return rest * a.part()
}

// undrawn is this process' part of what the bucket refilled while it was silent: nobody
// drew on that.
func (a *Account) undrawn(t time.Duration) float64 {
	return max(0, t-a.flights.since).Seconds() * a.speed() * a.part()
}

// bill writes what the bucket is told of what was spent on the share: all of it, and what
// the bucket needs to know to leave out what it refilled meanwhile.
func (a *Account) bill(t time.Duration, r *Request) {
	a.unheard.into(r, t, max(0, -a.credit))
	a.credit = max(0, a.credit)
	switch r.Missing = r.Debit; {
	case !a.away:
	case a.conf.OnOutage == ratelimit.FailShare:
		r.Missing, r.Filling = int64(a.share.deficit(t)*Micro), a.share.rate
	default:
		r.Missing, r.Filling = 0, a.speed()
	}
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
