package redisrate

import "time"

// What an account says to the store, when, and what it makes of the answer.

// due says whether a call should be made that nobody waits for: the next lease,
// tokens to give back, or a look whether the store is back.
func (a *account) due(t time.Duration) bool {
	switch {
	case a.flights.current != 0 || a.flights.n >= maxFlights || t < a.next:
		return false
	case a.away, a.late(t), a.credit != 0, a.hint.fresh, a.unheard.owed(a.inForce.burst) > 0:
		return true
	case !a.terms.leasing || !a.known || a.held > a.low || t < a.pause:
		return false
	case !a.more(a.terms.tau, t):
		return false
	}
	return a.balance+(t-a.heard).Seconds()*a.speed()+float64(a.terms.reserve) >= 1
}

// ask writes the call to make for need tokens that callers wait for, some of them
// as long as patience, the smallest at a time being least.
func (a *account) ask(t time.Duration, need, least int, patience time.Duration) request {
	if owed := a.advance - a.flights.want; owed > 0 {
		need, least = need+owed, 1
	} else if need == 0 && a.late(t) {
		need, least = 1, 1
	}
	r := request{limit: a.conf.limit, want: need, need: need, least: least}
	a.hint.into(&r, t)
	r.reserve = int64(patience.Seconds() * a.speed() * micro)
	expected := a.per(a.terms.tau, t)
	if a.terms.leasing {
		r.life, r.gone = a.terms.life, a.gone
		r.share = a.terms.q
		if expected >= 1 && (need > 0 || t-a.lastAsk < a.terms.tau) {
			r.want = max(need, min(max(int(expected)+1, a.terms.q), a.terms.most))
		}
		if ahead := int64(a.terms.reserve) * micro; r.reserve <= ahead {
			r.reserve = ahead
		} else {
			r.want = need // others must not wait for what nobody here has asked for
		}
	}
	r.debit = a.unheard.tell(a.inForce.burst)
	a.flights.start(t, &r)
	if a.away && !a.terms.leasing && a.conf.outage == FailShare {
		r.lack = a.lack(t)
	}
	r.charge = -int64(a.credit) * micro
	a.credit, a.gone = 0, 0 // told once: if the answer is lost, so are the tokens
	return r
}

// apply takes in the answer to request r, sent at sent. Answers may come in any
// order: each pays what it granted, and the newest call's says what the bucket holds.
func (a *account) apply(t, sent time.Duration, r request, rep reply, v view) {
	if a.away {
		a.comeBack(t)
	}
	newest := a.flights.land(r, true)
	a.retries = 0
	a.hint.told(true)
	a.unheard.told(r.debit)
	if newest {
		a.learn(t, rep)
	}
	a.retune(v)
	if rep.granted > 0 {
		a.add(lease{
			at: max(t, a.pause), balance: float64(rep.before) / micro,
			rate: a.speed(), granted: rep.granted,
		})
		a.pay(rep.granted)
	}
	a.settleAdvance()
	if newest {
		a.pace(sent, r, rep.granted)
	}
}

// learn keeps what the bucket said of itself.
func (a *account) learn(t time.Duration, rep reply) {
	a.known = true
	a.heard, a.inForce, a.multiplier, a.epoch = t, rep.limit, rep.multiplier, rep.epoch
	a.balance = float64(rep.before)/micro - float64(rep.granted)
	if !a.hint.fresh {
		a.pause = 0
	}
	if rep.pause > 0 {
		a.pause = t + rep.pause
	}
}

// pace sets when the next call may be made. A bucket that gave less than a full
// lease is dry: asking again at once would only take the scraps one by one.
func (a *account) pace(sent time.Duration, r request, granted int) {
	// What is left when the next lease is asked for lasts until it arrives.
	bridge := float64(a.terms.trip+a.conf.law.tau/2) / float64(a.terms.trip+a.conf.law.tau)
	a.low, a.next = int(float64(granted)*bridge), 0
	if !a.terms.leasing || granted >= min(r.want, a.terms.q) {
		return
	}
	a.next = sent + a.terms.tau/2
	if a.held == 0 {
		a.low = 0
	}
}

// fail takes in that a call got no answer; the next is made after backoff. It is no
// news of the key when a call made later was answered.
func (a *account) fail(t, backoff time.Duration, r request, lost bool, v view) {
	newer := a.flights.land(r, false)
	a.hint.told(false)
	a.unheard.untold(r.debit)
	switch {
	case a.away || newer && !(lost && a.flights.late == 0):
		a.retries++
		a.goAway(t, v)
		a.outOfReach(t, t)
		a.next = t + backoff
	case newer: // a connection broke: one more try before the share decides
		a.flights.late++
	}
	a.settleAdvance()
}
