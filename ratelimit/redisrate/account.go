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
	view       view
	low        int           // slots left at which the next lease is fetched
	gone       int           // slots spent or perished since the last call
	lastAsk    time.Duration // when somebody last wanted one

	flights flights
	advance int           // tokens let through on the strength of calls that are late
	next    time.Duration // earliest next call
	retries int           // failed calls in a row

	away    bool // the share decides
	since   time.Duration
	share   share
	unheard unheard
	settle  time.Duration // until then the share bounds what the bucket grants
	credit  int           // tokens to give back to the bucket; negative: to charge it for
	wasted  uint64        // slots that perished

	hint hint // a server's throttle that the others have not heard of
}

func newAccount(c *config, v view) account {
	a := account{conf: c, inForce: c.limit, multiplier: 1}
	a.retune(v)
	return a
}

// retune applies the law to the numbers in force.
func (a *account) retune(v view) {
	a.view = v
	a.terms = a.conf.law.terms(a.speed(), a.inForce.burst, v)
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

// take decides from what is known here, and takes what it admits.
func (a *account) take(t time.Duration, cost int, patience time.Duration) verdict {
	if !a.away {
		a.asked += cost
		a.lastAsk = t
	}
	v := a.look(t, cost, patience)
	switch {
	case v.call && a.flights.late > 0:
		return a.takeLate(t, cost)
	case v.ok:
		a.spendFor(t, cost, v.source)
	}
	return v
}

// look decides as take does, and takes nothing.
func (a *account) look(t time.Duration, cost int, patience time.Duration) verdict {
	if cost > a.inForce.burst {
		return verdict{never: true, source: a.source()}
	}
	if a.away {
		return a.lookAway(t, cost, patience)
	}
	a.lose(a.expire(t))
	soonest := a.pause
	if t < a.settle {
		soonest = max(soonest, t+a.share.wait(t, cost))
		if soonest > t+patience {
			return verdict{wait: soonest - t, source: ratelimit.SourceShare}
		}
	}
	if a.held < cost {
		return a.lookFurther(t, cost, patience)
	}
	wait := max(0, max(soonest, a.nth(cost))-t)
	return verdict{ok: wait <= patience, wait: wait, source: a.source()}
}

// lookFurther decides when too few slots are held: by the bucket's last balance,
// which others can only have lowered, it may be known that asking is of no use.
func (a *account) lookFurther(t time.Duration, cost int, patience time.Duration) verdict {
	if !a.known || t-a.heard > a.conf.believe {
		return verdict{call: true}
	}
	wait := a.earliest(cost-a.held+a.flights.want) - t
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

// spendFor takes what a verdict admitted.
func (a *account) spendFor(t time.Duration, cost int, source ratelimit.Source) {
	switch source {
	case ratelimit.SourceShare, ratelimit.SourceOpen:
		a.unheard.add(cost)
		if source == ratelimit.SourceShare {
			a.share.spend(cost)
		}
	default:
		a.spend(cost)
		a.gone += cost
		if t < a.settle {
			a.share.spend(cost)
		}
	}
}

func (a *account) source() ratelimit.Source {
	if a.terms.leasing {
		return ratelimit.SourceSlot
	}
	return ratelimit.SourceDirect
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
	if a.away || a.flights.n > 0 || t-a.lastAsk < a.terms.tau {
		return false
	}
	n := a.clear()
	a.credit += n
	a.gone += n
	return a.unsaid()
}

// unsaid says that the bucket should hear what became of slots. A single one is
// not worth a call: the bucket forgets it within its life.
func (a *account) unsaid() bool { return a.credit != 0 || a.terms.leasing && a.gone > 1 }

// idle says that forgetting the account loses nothing.
func (a *account) idle(t time.Duration) bool {
	a.lose(a.expire(t))
	switch {
	case a.flights.n > 0 || a.held > 0 || a.credit != 0 || a.unheard.owed(a.inForce.burst) > 0 || t < a.pause:
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

// whole is how long until nothing would be missing, if nothing else were taken.
func (a *account) whole(remaining int) time.Duration {
	in := a.inForceNow()
	return seconds(float64(max(0, in.burst-remaining)) / in.rate)
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
