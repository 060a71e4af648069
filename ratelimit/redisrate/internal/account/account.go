// Package account is the pure part of a shared ceiling: leases, shares and the law that
// sizes them. Times are distances from a start that the caller chose; nothing here
// reads a clock, locks, or makes a call.
package account

import (
	"time"

	"github.com/headgate-go/headgate/ratelimit"
)

// Account is one key's side of the ceiling in this process: the slots it holds,
// what the store last said, and the share it falls back on. It is pure: times are
// distances from the limiter's start, the caller holds the lock and makes the
// calls. A program in virtual time drives it the same way as Limiter does.
type Account struct {
	conf *Config // this process' numbers; replies may bring newer ones

	holdings
	demand
	known      bool          // the store has answered
	heard      time.Duration // when it last did
	balance    float64       // tokens in the bucket then
	inForce    Limit
	multiplier float64
	pause      time.Duration // nothing passes before
	epoch      int64
	terms      terms
	view       View
	low        int           // slots left at which the next lease is fetched
	gone       int           // slots spent or perished since the last call
	lastAsk    time.Duration // when one was last wanted

	flights flights
	advance int           // tokens let through on the strength of calls that are late
	doubt   int           // of those, paid by calls whose answers were lost, if they ran
	next    time.Duration // earliest next call
	retries int           // failed calls in a row

	away    bool // the share decides
	since   time.Duration
	share   share
	unheard unheard
	settle  time.Duration // until then the share bounds what the bucket grants
	credit  int           // tokens to give back to the bucket; negative: to charge it for
	wasted  uint64        // slots that perished

	hint hint // a server's throttle that the bucket does not know of yet
}

// New returns an account without an answer from its bucket.
func New(c *Config, v View) Account {
	a := Account{conf: c, inForce: c.Limit, multiplier: 1}
	a.retune(v)
	return a
}

// Adopt takes on other numbers; the balance stays.
func (a *Account) Adopt(c *Config, v View) {
	if c.Limit == a.conf.Limit {
		return
	}
	a.conf = c
	a.inForce, a.known, a.next = c.Limit, false, 0
	a.retune(v)
}

// retune applies the law to the numbers in force.
func (a *Account) retune(v View) {
	a.view = v
	a.terms = a.conf.Law.Terms(a.speed(), a.inForce.Burst, v)
	a.perish = a.terms.perish
}

// speed is the rate in force, in tokens per second.
func (a *Account) speed() float64 { return a.inForce.Rate * a.multiplier }

// Verdict is what an account says to a request.
type Verdict struct {
	Ok     bool
	Never  bool
	Call   bool          // only the store can tell; nothing was decided
	Wait   time.Duration // as in ratelimit.Decision
	Source ratelimit.Source
}

// Take decides from what is known here, and takes what it admits.
func (a *Account) Take(t time.Duration, cost int, patience time.Duration) Verdict {
	if !a.away {
		a.asked += cost
		a.lastAsk = t
	}
	v := a.Look(t, cost, patience)
	switch {
	case v.Call && a.flights.late > 0:
		return a.TakeLate(t, cost)
	case v.Ok:
		a.spendFor(t, cost, v.Source)
	}
	return v
}

// Look decides as take does, and takes nothing.
func (a *Account) Look(t time.Duration, cost int, patience time.Duration) Verdict {
	if cost > a.inForce.Burst {
		return Verdict{Never: true, Source: a.source()}
	}
	if a.away {
		return a.lookAway(t, cost, patience)
	}
	a.lose(a.expire(t))
	soonest := a.pause
	if t < a.settle {
		soonest = max(soonest, t+a.share.wait(t, cost))
		if soonest > t+patience {
			return Verdict{Wait: soonest - t, Source: ratelimit.SourceShare}
		}
	}
	if a.held < cost {
		return a.lookFurther(t, cost, patience)
	}
	wait := max(0, max(soonest, a.nth(cost))-t)
	return Verdict{Ok: wait <= patience, Wait: wait, Source: a.source()}
}

// lookFurther decides when too few slots are held: by the bucket's last balance,
// which others can only have lowered, it may be known that asking is of no use.
func (a *Account) lookFurther(t time.Duration, cost int, patience time.Duration) Verdict {
	if !a.known || t-a.heard > a.conf.believe {
		return Verdict{Call: true}
	}
	wait := a.earliest(cost-a.held+a.flights.want) - t
	if wait <= patience && t >= a.next {
		return Verdict{Call: true}
	}
	return Verdict{Wait: max(wait, a.next-t, time.Nanosecond), Source: ratelimit.SourceDenialCache}
}

// earliest is when the bucket will hold n tokens if no other process draws on it.
func (a *Account) earliest(n int) time.Duration {
	from := max(a.heard, a.pause)
	if short := float64(n) - a.balance; short > 0 {
		return from + seconds(short/a.speed())
	}
	return from
}

// lookAway decides while the store is away.
func (a *Account) lookAway(t time.Duration, cost int, patience time.Duration) Verdict {
	switch a.conf.OnOutage {
	case ratelimit.FailOpen:
		return Verdict{Ok: true, Source: ratelimit.SourceOpen}
	case ratelimit.FailClosed:
		return Verdict{Wait: max(a.next-t, time.Second), Source: ratelimit.SourceClosed}
	}
	wait := max(a.share.wait(t, cost), a.pause-t, 0)
	return Verdict{Ok: wait <= patience, Wait: wait, Source: ratelimit.SourceShare}
}

// TakeLate decides for a request whose answer is late. What the bucket held when it
// was last heard lets this process' part of it through; the call's grant pays for it
// when it comes, and else the bucket is charged.
func (a *Account) TakeLate(t time.Duration, cost int) Verdict {
	if a.conf.OnOutage == ratelimit.FailClosed {
		return Verdict{Wait: max(a.view.Trip, time.Millisecond), Source: ratelimit.SourceClosed}
	}
	entitled := float64(a.held) + a.entitled(t) - float64(a.advance)
	if t >= a.pause && t >= a.settle && entitled >= float64(cost) {
		a.advance += cost
		return Verdict{Ok: true, Source: ratelimit.SourceShare}
	}
	wait := max(a.earliest(cost-a.held+a.advance)-t, a.view.Trip, time.Nanosecond)
	return Verdict{Wait: wait, Source: ratelimit.SourceDenialCache}
}

// entitled is this process' part of what the bucket holds, as far as is known: since
// its last answer, others have drawn on it too. A bucket that never answered is full.
func (a *Account) entitled(t time.Duration) float64 {
	part := a.part()
	rest := float64(a.inForce.Burst)
	if a.known {
		rest = min(rest, a.balance+(t-a.heard).Seconds()*a.speed()*part)
	}
	return rest * part
}

func (a *Account) part() float64 {
	return a.conf.Portion / float64(max(1, a.conf.MinPeers, a.view.Peers))
}

// spendFor takes what a verdict admitted.
func (a *Account) spendFor(t time.Duration, cost int, source ratelimit.Source) {
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

func (a *Account) source() ratelimit.Source {
	if a.terms.Leasing {
		return ratelimit.SourceSlot
	}
	return ratelimit.SourceDirect
}

// Refund puts back what an unspent grant took. Slots are as good as new until
// they perish; after that they are lost.
func (a *Account) Refund(t time.Duration, cost int, matured time.Duration, source ratelimit.Source) {
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

// Adjust charges by more tokens for a grant, or gives -by of them back.
func (a *Account) Adjust(t time.Duration, by int, matured time.Duration, source ratelimit.Source) {
	switch {
	case by < 0:
		a.Refund(t, -by, matured, source)
	case a.away:
		a.spendFor(t, by, ratelimit.SourceShare)
	default:
		here := min(by, a.held)
		a.spendFor(t, here, a.source())
		a.credit -= by - here // the bucket goes into debt for the rest
	}
}

// Remaining is how many more would pass now, as far as is known here.
func (a *Account) Remaining(t time.Duration) int {
	if a.away {
		return max(0, int(a.share.tokens))
	}
	n := float64(a.ripe(t))
	if a.known {
		n += max(0, a.balance+(t-a.heard).Seconds()*a.speed())
	}
	return int(min(n, float64(a.inForce.Burst)))
}

// Whole is how long until nothing would be missing, if nothing else were taken.
func (a *Account) Whole(remaining int) time.Duration {
	in := a.InForce()
	return seconds(float64(max(0, in.Burst-remaining)) / in.Rate)
}

// InForce returns the numbers that decide at this moment.
func (a *Account) InForce() Limit {
	in := a.inForce
	in.Rate = a.speed()
	if a.away {
		in.Rate, in.Burst = a.share.rate, int(a.share.burst)
	}
	return in
}

// Away says that the share decides.
func (a *Account) Away() bool { return a.away }

// Counts returns the slots held, and those that perished.
func (a *Account) Counts() (held int, wasted uint64) { return a.held, a.wasted }
