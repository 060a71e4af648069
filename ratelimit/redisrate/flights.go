package redisrate

import (
	"time"

	"github.com/headgate-go/headgate/ratelimit"
)

// flights are a key's calls in flight. Usually there is one. A call that is late is
// not waited for any longer, and another may be made beside it.
type flights struct {
	serial  int64 // of the last call made
	heard   int64 // of the newest call that was answered
	current int64 // of the call that is waited for; 0 for none
	n       int
	want    int           // tokens they ask for
	late    int           // calls that became late since the last answer
	since   time.Duration // when the first of those that were not answered was made
}

// maxFlights bounds a key's calls in flight.
const maxFlights = 4

func (f *flights) start(t time.Duration, r *request) {
	if f.n == 0 {
		f.since = t
	}
	f.serial++
	r.serial = f.serial
	f.current = f.serial
	f.n++
	f.want += r.want
}

// land takes a call off the list. It says whether no call made later was answered.
func (f *flights) land(r request, answered bool) (newest bool) {
	f.n--
	f.want -= r.want
	if f.current == r.serial {
		f.current = 0
	}
	if newest = r.serial > f.heard; newest && answered {
		f.heard, f.late, f.since = r.serial, 0, 0
	}
	return newest
}

// overdue says that a call is late: those who wait for it are decided without it.
func (f *flights) overdue(serial int64) {
	if f.current == serial {
		f.current = 0
	}
	if serial > f.heard {
		f.late++
	}
}

// takeLate decides for a request whose answer is late. What the bucket held when it
// was last heard lets this process' part of it through; the call's grant pays for it
// when it comes, and else the bucket is charged.
func (a *account) takeLate(t time.Duration, cost int) verdict {
	if a.conf.outage == FailClosed {
		return verdict{wait: max(a.view.trip, time.Millisecond), source: ratelimit.SourceClosed}
	}
	entitled := float64(a.held) + a.entitled(t) - float64(a.advance)
	if t >= a.pause && t >= a.settle && entitled >= float64(cost) {
		a.advance += cost
		return verdict{ok: true, source: ratelimit.SourceShare}
	}
	wait := max(a.earliest(cost-a.held+a.advance)-t, a.view.trip, time.Nanosecond)
	return verdict{wait: wait, source: ratelimit.SourceDenialCache}
}

// late says that another call should be made beside those that are late: to pay for
// what was let through, or to ask ahead for the key's next request.
func (a *account) late(t time.Duration) bool {
	f := &a.flights
	switch {
	case f.late == 0:
		return false
	case a.advance > f.want, !a.known && f.n < 2:
		return true
	}
	return a.known && a.balance+(t+a.view.trip/2-a.heard).Seconds()*a.speed() >= float64(f.want+1)
}

// entitled is this process' part of what the bucket holds, as far as is known: since
// it was heard, others have drawn on it too. A bucket never heard of is full.
func (a *account) entitled(t time.Duration) float64 {
	part := a.part()
	rest := float64(a.inForce.burst)
	if a.known {
		rest = min(rest, a.balance+(t-a.heard).Seconds()*a.speed()*part)
	}
	return rest * part
}

func (a *account) part() float64 {
	return a.conf.portion / float64(max(1, a.conf.minPeers, a.view.peers))
}

// pay spends what was just granted on what was let through before it came.
func (a *account) pay(granted int) {
	n := min(granted, a.advance)
	a.advance -= n
	if more := min(granted-n, a.unheard.owed(granted)); more > 0 {
		a.unheard.add(-more)
		n += more
	}
	a.spend(n)
	a.gone += n
}

// settleAdvance leaves what no call in flight can pay to be charged to the bucket.
func (a *account) settleAdvance() {
	if a.flights.n == 0 && a.advance > 0 {
		a.unheard.add(a.advance)
		a.advance = 0
	}
}
