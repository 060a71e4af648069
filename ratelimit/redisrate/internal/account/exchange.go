package account

import (
	"time"
)

// What an account says to the store, when, and what it makes of the answer.

// Due says whether a call should be made without a waiting request: the next lease,
// tokens to give back, or a look whether the store is back.
func (a *Account) Due(t time.Duration) bool {
	switch {
	case a.flights.current != 0 || a.flights.n >= maxFlights || t < a.next:
		return false
	case a.away, a.late(t), a.credit != 0, a.hint.fresh, a.unheard.due():
		return true
	case !a.terms.Leasing || !a.known || a.held > a.low || t < a.pause:
		return false
	case !a.more(a.terms.Tau, t):
		return false
	}
	return a.balance+(t-a.heard).Seconds()*a.speed()+float64(a.terms.Reserve) >= 1
}

// late says that another call should be made beside those that are late: to pay for
// what was let through, or to ask ahead for the key's next request.
func (a *Account) late(t time.Duration) bool {
	f := &a.flights
	switch {
	case f.late == 0:
		return false
	case a.advance > f.want, !a.known && f.n < 2:
		return true
	}
	return a.known && a.balance+(t+a.view.Trip/2-a.heard).Seconds()*a.speed() >= float64(f.want+1)
}

// Ask writes the call to make for need tokens that callers wait for, some of them
// as long as patience, the smallest at a time being least.
func (a *Account) Ask(t time.Duration, need, least int, patience time.Duration) Request {
	if owed := a.advance - a.flights.want; owed > 0 {
		need, least = need+owed, 1
	} else if need == 0 && a.late(t) && a.entitled(t)-float64(a.advance) < 1 {
		need, least = 1, 1
	}
	r := Request{Limit: a.conf.Limit, Want: need, Need: need, Least: least}
	a.hint.into(&r, t)
	r.Reserve = int64(patience.Seconds() * a.speed() * Micro)
	expected := a.per(a.terms.Tau, t)
	if a.terms.Leasing {
		r.Life, r.Gone = a.terms.life, a.gone
		r.Share = a.terms.Q
		if expected >= 1 && (need > 0 || t-a.lastAsk < a.terms.Tau) {
			r.Want = max(need, min(max(int(expected)+1, a.terms.Q), a.most(t)))
		}
		if ahead := int64(a.terms.Reserve) * Micro; r.Reserve <= ahead {
			r.Reserve = ahead
		} else {
			r.Want = need // others must not wait for what was not asked for here
		}
	}
	a.bill(t, &r)
	a.flights.start(t, &r)
	if r.Charge == 0 && a.credit > 0 {
		r.Charge = -int64(a.credit) * Micro
		a.credit = 0 // told once: if the answer is lost, so are the tokens
	}
	a.gone = 0
	return r
}

// most bounds a lease: while the share bounds what is spent, more would lie idle.
func (a *Account) most(t time.Duration) int {
	if a.away || t < a.settle {
		return min(a.terms.most, 1+int(a.share.rate*a.terms.Tau.Seconds()))
	}
	return a.terms.most
}

// Apply takes in the answer to request r, sent at sent. Answers may come in any
// order: each pays what it granted, and the newest call's says what the bucket holds.
func (a *Account) Apply(t, sent time.Duration, r Request, rep Reply, v View) {
	if a.away {
		a.comeBack(t)
	}
	newest := a.flights.land(r, true)
	a.retries, a.doubt = 0, 0
	a.hint.told(true)
	a.unheard.told(r, true)
	if newest {
		a.learn(t, rep)
	}
	a.retune(v)
	if rep.Granted > 0 {
		a.add(lease{
			at: max(t, a.pause), balance: float64(rep.Before) / Micro,
			rate: a.speed(), granted: rep.Granted,
		})
		a.pay(rep.Granted)
	}
	a.settleAdvance()
	if newest {
		a.pace(sent, r, rep.Granted)
	}
}

// learn keeps what the bucket said of itself.
func (a *Account) learn(t time.Duration, rep Reply) {
	a.known = true
	a.heard, a.inForce, a.multiplier, a.epoch = t, rep.Limit, rep.Multiplier, rep.Epoch
	a.balance = float64(rep.Before)/Micro - float64(rep.Granted)
	if !a.hint.fresh {
		a.pause = 0
	}
	if rep.Pause > 0 {
		a.pause = t + rep.Pause
	}
}

// pace sets when the next call may be made. A bucket that gave less than a full
// lease is dry: asking again at once would only take the scraps one by one.
func (a *Account) pace(sent time.Duration, r Request, granted int) {
	// What is left when the next lease is asked for lasts until it arrives.
	bridge := float64(a.terms.trip+a.conf.Law.Tau/2) / float64(a.terms.trip+a.conf.Law.Tau)
	a.low, a.next = int(float64(granted)*bridge), 0
	if !a.terms.Leasing || granted >= min(r.Want, a.terms.Q) {
		return
	}
	a.next = sent + a.terms.calm/2
	if a.held == 0 {
		a.low = 0
	}
}

// pay spends what was just granted on what was let through before it came.
func (a *Account) pay(granted int) {
	n := min(granted, max(0, a.advance-a.flights.owing()))
	a.advance -= n
	if more := min(granted-n, int(a.unheard.rest())); more > 0 {
		a.unheard.add(-more)
		n += more
	}
	a.spend(n)
	a.gone += n
}

// settleAdvance leaves what no call in flight can pay to be charged to the bucket.
func (a *Account) settleAdvance() {
	if a.flights.n == 0 && a.advance > 0 {
		a.unheard.add(a.advance)
		a.advance = 0
	}
}

// Fail takes in that a call got no answer; the next is made after backoff. It is no
// news of the key when a call made later was answered.
func (a *Account) Fail(t time.Duration, r Request, why Why, v View) {
	newer := a.flights.land(r, false)
	a.hint.told(false)
	a.unheard.told(r, false)
	if why == WhyTimeout || why == WhyLost { // it may have run: charged once, not twice
		n := min(r.Want, a.advance)
		a.advance -= n
		a.doubt += n
	}
	switch {
	case a.away || newer && (why != WhyLost || a.flights.late > 0):
		a.GoAway(t, v)
		a.next = t + RetryDelay(a.retries)
		a.retries++
	case newer: // a connection broke: one more try before the share decides
		a.flights.late++
	}
	a.settleAdvance()
}

// Overdue says that a call is late: requests that wait for it are decided without it.
func (a *Account) Overdue(serial int64) { a.flights.overdue(serial) }

// Calls says that calls are in flight, late ones included.
func (a *Account) Calls() bool { return a.flights.n > 0 }

// Listen makes the share decide when the store has said nothing for that long. Half of it
// must have passed since that was noted: a process that stalled finds its calls late while
// their answers are there, not read yet.
func (a *Account) Listen(t, silence time.Duration, v View) {
	f := &a.flights
	if f.late == 0 || f.n == 0 {
		return
	}
	if f.noted == 0 {
		f.noted = t
	}
	if t-f.since >= silence && t-f.noted >= silence/2 {
		a.GoAway(t, v)
	}
}

// Uncovered says that another call may be made for requests that wait for so many
// tokens, since those in flight do not ask for all of them.
func (a *Account) Uncovered(need int) bool {
	return a.Missing(need) > 0 && a.flights.n < maxFlights
}

// Missing is what to ask for when requests wait for so many tokens. What late calls
// ask for pays for what was let through without them.
func (a *Account) Missing(need int) int {
	owing := a.flights.owing()
	return max(0, need-a.held-(a.flights.want-owing)-max(0, owing-a.advance))
}

// settleTime is how long after its return a process stays inside its share as
// well: others may still be on theirs, and together they must not exceed the
// ceiling. It covers the longest pause between two looks at the store.
const settleTime = maxProbe + maxProbe/2

// briefly is an absence too short for others to have noticed.
const briefly = 250 * time.Millisecond

// Throttled pauses the key here at once, and in all processes with the next call.
func (a *Account) Throttled(t, pause time.Duration, factor float64) {
	h := &a.hint
	if h.fresh {
		factor = min(factor, h.cut)
	}
	a.hint = hint{fresh: true, until: max(h.until, t+pause), epoch: a.epoch, cut: factor}
	a.pause = max(a.pause, a.hint.until)
	a.next = min(a.next, t)
}

func (a *Account) lose(n int) {
	if n == 0 {
		return
	}
	a.wasted += uint64(n)
	a.gone += n
	if !a.terms.Leasing {
		a.credit += n // taken one by one: worth a call to return
	}
}

// Lull gives back slots that were not asked for lately, so that the bucket can
// fill again; it says whether there is something to tell.
func (a *Account) Lull(t time.Duration) bool {
	a.lose(a.expire(t))
	if a.away || a.flights.n > 0 || t-a.lastAsk < a.terms.Tau {
		return false
	}
	n := a.clear()
	a.credit += n
	a.gone += n
	return a.unsaid() && t >= a.next
}

// Watch says that there is something to give back if it is not asked for.
func (a *Account) Watch() bool { return a.held > 0 || a.unsaid() }

// Interval is how long a key is not asked for before its slots are given back.
func (a *Account) Interval() time.Duration { return a.terms.Tau }

// unsaid says that the bucket should know what became of slots. A single one is
// not worth a call: the bucket forgets it within its life.
func (a *Account) unsaid() bool { return a.credit != 0 || a.terms.Leasing && a.gone > 1 }

// Owes says that tokens were let through which the bucket was not charged.
func (a *Account) Owes() bool { return a.unheard.owes() }

// Idle says that forgetting the account loses nothing.
func (a *Account) Idle(t time.Duration) bool {
	a.lose(a.expire(t))
	switch {
	case a.flights.n > 0 || a.held > 0 || a.credit != 0 || a.unheard.owes() || t < a.pause:
		return false
	case a.away:
		return a.share.full(t)
	}
	return t >= a.settle
}
