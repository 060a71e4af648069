package redisrate

import (
	"time"

	"github.com/headgate-go/headgate/ratelimit"
)

// account is one key's side of the ceiling in this process: the slots it holds,
// what the store last said, and the share it falls back on. It is pure: times are
// distances from the limiter's start, the caller holds the lock and makes the
// calls. A program in virtual time drives it the same way as Limiter does.
type account struct {
	conf *config // this process' numbers; replies may bring newer ones

	holdings
	demand
	known      bool          // the store has answered
	heard      time.Duration // when it last did
	balance    float64       // tokens in the bucket then
	inForce    limit
	multiplier float64
	pause      time.Duration // nothing passes before
	epoch      int64
	terms      terms
	low        int           // slots left at which the next lease is fetched
	gone       int           // slots spent or perished since the last call
	lastAsk    time.Duration // when somebody last wanted one

	calling bool
	next    time.Duration // earliest next call
	retries int           // failed calls in a row

	away   bool // the share decides
	since  time.Duration
	share  share
	debt   debt
	settle time.Duration // until then the share bounds what the bucket grants
	credit int           // tokens to give back to the bucket
	wasted uint64        // slots that perished

	hint hint // a server's throttle that the others have not heard of
}

func newAccount(c *config, peers int) account {
	a := account{conf: c, inForce: c.limit, multiplier: 1}
	a.retune(peers)
	return a
}

// retune applies the law to the numbers in force.
func (a *account) retune(peers int) {
	a.terms = a.conf.law.terms(a.speed(), peers)
	a.perish = a.terms.perish
}

// speed is the rate in force, in tokens per second.
func (a *account) speed() float64 { return a.inForce.rate * a.multiplier }

// verdict is what an account says to a request.
type verdict struct {
	ok     bool
	never  bool
	call   bool          // only the store can tell; nothing was decided
	wait   time.Duration // as in ratelimit.Decision
	source ratelimit.Source
}

// take decides from what is known here.
func (a *account) take(t time.Duration, cost int, patience time.Duration) verdict {
	if cost > a.inForce.burst {
		return verdict{never: true, source: ratelimit.SourceSlot}
	}
	if a.away {
		return a.takeShare(t, cost, patience)
	}
	a.asked += cost
	a.lastAsk = t
	a.lose(a.expire(t))
	soonest := a.pause
	if t < a.settle {
		soonest = max(soonest, t+a.share.wait(t, cost))
		if soonest > t+patience {
			return verdict{wait: soonest - t, source: ratelimit.SourceShare}
		}
	}
	if a.held >= cost {
		return a.takeSlots(t, max(soonest, a.nth(cost)), cost, patience)
	}
	return a.takeLater(t, cost, patience)
}

// takeSlots decides from slots that are held, the last of which is ripe then.
func (a *account) takeSlots(t, ripe time.Duration, cost int, patience time.Duration) verdict {
	v := verdict{source: a.source(), wait: max(0, ripe-t)}
	if v.wait > patience {
		return v
	}
	v.ok = true
	a.spend(cost)
	a.gone += cost
	if t < a.settle {
		a.share.spend(cost)
	}
	return v
}

// takeLater decides when too few slots are held: by the bucket's last balance,
// which others can only have lowered, it may be known that asking is of no use.
func (a *account) takeLater(t time.Duration, cost int, patience time.Duration) verdict {
	if !a.known || t-a.heard > a.conf.believe {
		return verdict{call: true}
	}
	wait := a.earliest(cost-a.held) - t
	if wait <= patience && t >= a.next {
		return verdict{call: true}
	}
	return verdict{wait: max(wait, a.next-t, time.Nanosecond), source: ratelimit.SourceDenialCache}
}

// earliest is when the bucket will hold n tokens if nobody else draws on it.
func (a *account) earliest(n int) time.Duration {
	from := max(a.heard, a.pause)
	if short := float64(n) - a.balance; short > 0 {
		return from + seconds(short/a.speed())
	}
	return from
}

func (a *account) source() ratelimit.Source {
	if a.terms.leasing {
		return ratelimit.SourceSlot
	}
	return ratelimit.SourceDirect
}

// due says whether a call should be made that nobody waits for: the next lease,
// tokens to give back, or a look whether the store is back.
func (a *account) due(t time.Duration) bool {
	switch {
	case a.calling || t < a.next:
		return false
	case a.away, a.credit > 0, a.hint.fresh:
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
	a.calling = true
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
	r.debit = a.debt.tell(t, a.inForce.burst) - int64(a.credit)*micro
	a.credit, a.gone = 0, 0 // told once: if the answer is lost, so are the tokens
	return r
}

// apply takes in the answer to request r, sent at sent.
func (a *account) apply(t, sent time.Duration, r request, rep reply, peers int) {
	if a.away {
		a.comeBack(t)
	}
	a.calling, a.known, a.retries = false, true, 0
	a.debt.told(true)
	a.heard, a.inForce, a.multiplier, a.epoch = t, rep.limit, rep.multiplier, rep.epoch
	a.balance = float64(rep.before)/micro - float64(rep.granted)
	if !a.hint.fresh {
		a.pause = 0
	}
	if rep.pause > 0 {
		a.pause = t + rep.pause
	}
	a.retune(peers)
	if rep.granted > 0 {
		a.add(lease{
			at: max(t, a.pause), balance: float64(rep.before) / micro,
			rate: a.speed(), granted: rep.granted,
		})
		if a.terms.leasing {
			a.gone -= min(r.need, rep.granted) // the bucket counts them as spent
		}
	}
	a.pace(sent, r, rep.granted)
}

// pace sets when the next call may be made. A bucket that gave less than a full
// lease is dry: asking again at once would only take the scraps one by one.
func (a *account) pace(sent time.Duration, r request, granted int) {
	a.low, a.next = granted/2, 0
	if !a.terms.leasing || granted >= min(r.want, a.terms.q) {
		return
	}
	a.next = sent + a.terms.tau/2
	if a.held == 0 {
		a.low = 0
	}
}

// fail takes in that a call got no answer; the next is made after backoff.
func (a *account) fail(t, backoff time.Duration, peers int) {
	a.calling = false
	a.retries++
	a.debt.told(false)
	a.goAway(t, peers)
	a.next = t + backoff
}

func (a *account) lose(n int) {
	if n == 0 {
		return
	}
	a.wasted += uint64(n)
	a.gone += n
	if !a.terms.leasing {
		a.credit += n // taken one by one: worth a call to return
	}
}

// lull gives back slots that nobody has asked for lately, so that the bucket can
// fill again; it says whether there is something to tell.
func (a *account) lull(t time.Duration) bool {
	a.lose(a.expire(t))
	if a.away || a.calling || t-a.lastAsk < a.terms.tau {
		return false
	}
	n := a.clear()
	a.credit += n
	a.gone += n
	return a.unsaid()
}

// unsaid says that the bucket does not know yet what became of slots.
func (a *account) unsaid() bool { return a.credit > 0 || a.terms.leasing && a.gone > 0 }

// idle says that forgetting the account loses nothing.
func (a *account) idle(t time.Duration) bool {
	a.lose(a.expire(t))
	switch {
	case a.calling || a.held > 0 || a.credit > 0 || t < a.pause:
		return false
	case a.away:
		return a.share.full(t)
	}
	return t >= a.settle
}

// remaining is how many more would pass now, as far as is known here.
func (a *account) remaining(t time.Duration) int {
	if a.away {
		return max(0, int(a.share.tokens))
	}
	n := float64(a.ripe(t))
	if a.known {
		n += max(0, a.balance+(t-a.heard).Seconds()*a.speed())
	}
	return int(min(n, float64(a.inForce.burst)))
}

// inForceNow returns the numbers that decide at this moment.
func (a *account) inForceNow() limit {
	in := a.inForce
	in.rate = a.speed()
	if a.away {
		in.rate, in.burst = a.share.rate, int(a.share.burst)
	}
	return in
}
