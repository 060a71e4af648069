package outbound

import (
	"math"
	"time"

	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
)

// slowdown is what a verdict asks of everybody who shares a key.
type slowdown struct {
	factor float64       // on the rate; 1: none
	pause  time.Duration // how long to stay away
	level  int           // up to which level; see Pacer.Heard
}

func (s slowdown) none() bool { return s.factor == 1 && s.pause == 0 }

// slow makes everybody who shares the operation slow down. It reports whether the
// rate was cut and whether a new pause began.
func (o *operation) slow(now time.Time, s slowdown) (cut, paused bool) {
	p := o.limiter.Policy(o.key)
	if o.shared != nil && s.factor < 1 {
		o.shared.Throttled(now, o.key, s.sharedPause(), s.factor)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if s.pause > 0 && now.Add(s.pause).After(o.paused[s.level]) {
		paused = o.paused.extend(now.Add(s.pause+jitter(s.pause)), s.level)
	}
	if o.shared == nil && s.factor < 1 {
		if cut = o.cutLocked(now, s, p); cut {
			o.bucket.reset(o.pausedUntil(now), now)
		}
	}
	if cut || paused {
		o.dismissLocked(now, p)
	}
	return cut, paused
}

// pausedUntil returns when the first call may go: the highest level's.
func (o *operation) pausedUntil(now time.Time) time.Time { return now.Add(o.pauseLeft(now, highest)) }

// cutLocked applies the law. A rate that nobody configured is the one measured when
// the server first objected.
func (o *operation) cutLocked(now time.Time, s slowdown, p ratelimit.Policy) bool {
	top := knownTop
	if p.Rate == rate.Inf {
		top = measuredTop
		if !o.law.active(now) {
			o.base = max(o.meter.perSecond(now), minMeasured)
			o.burst = max(1, o.base/10)
		}
	} else {
		o.base, o.burst = float64(p.Rate), float64(p.Burst)
	}
	return o.law.cut(now, s.factor, top, s.pause)
}

// minMeasured, in calls per second, is the least that counts as measured: a server
// that refused one lone call has not told us to creep.
const minMeasured = 10

// dismissLocked sends away those in line whose turn will now come too late. They
// learn it at once, not at the end of a wait that could not end well.
func (o *operation) dismissLocked(now time.Time, p ratelimit.Policy) {
	r := o.lawRate(now, p)
	o.line.each(func(place int, w *waiter) {
		wait := o.predict(now, w.level, place, r, p.Burst)
		if !now.Add(wait).Before(w.until) {
			o.line.settle(w, Pass{}, o.tooLong(now, w.level, wait, w.until))
		}
	})
}

// lawRate is the rate in force, with the lock held.
func (o *operation) lawRate(now time.Time, p ratelimit.Policy) float64 {
	if !o.law.active(now) {
		return float64(p.Rate)
	}
	return min(float64(p.Rate), o.law.inForce(now)*o.base)
}

// predict estimates when somebody of a level, with the given number of calls ahead,
// would be sent: the pause, or the wait for the next token, then one token each.
// After a pause without a cut the bucket has filled.
func (o *operation) predict(now time.Time, level, ahead int, r float64, burst int) time.Duration {
	wait := max(o.pauseLeft(now, level), o.nextAt.Sub(now), 0)
	if ahead == 0 || math.IsInf(r, 1) || r >= float64(rate.Inf) {
		return wait
	}
	if !o.law.active(now) {
		ahead = max(0, ahead-int(min(float64(burst), o.pauseLeft(now, level).Seconds()*r)))
	}
	return wait + time.Duration(min(float64(ahead)/r, farthest.Seconds())*float64(time.Second))
}

// tooLong makes the refusal of a wait that would end too late.
func (o *operation) tooLong(now time.Time, level int, wait time.Duration, until time.Time) *Refusal {
	why := WaitTooLong
	if !now.Add(o.pauseLeft(now, level)).Before(until) {
		why = Paused
	}
	return &Refusal{Why: why, Wait: wait}
}

// pauses says for each level until when its calls stay away. A pause of a level is a
// pause of those below it, so no level ever waits longer than a lower one.
type pauses [priority.Count]time.Time

// extend keeps the levels up to the given one away until t, and reports whether that
// is news.
func (p *pauses) extend(t time.Time, level int) (news bool) {
	for i := range p[:level+1] {
		if t.After(p[i]) {
			p[i], news = t, true
		}
	}
	return news
}

// sharedPause is the pause that a limiter shared with other processes is told. It
// knows no levels, so a pause that spares some is kept here.
func (s slowdown) sharedPause() time.Duration {
	if s.level < priority.Count-1 {
		return 0
	}
	return s.pause
}
