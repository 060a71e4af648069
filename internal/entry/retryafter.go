package entry

import (
	"math"
	"math/bits"
	"time"

	"github.com/headgate-go/headgate/priority"
)

// RetryAfter answers the refused: when is it worth asking again? The zero value is
// ready. It is not safe for concurrent use, allocates nothing, and its methods are
// O(1).
//
// Per level, v = (callers refused in the last 10 s and not yet due back) / (this
// level's admit rate): the time the level needs to serve those already sent away.
// While nothing is admitted v doubles as the drought doubles. The answer is drawn
// evenly from the whole seconds in [v, 2v], so that callers refused together do
// not return together.
type RetryAfter struct {
	level [priority.Count]returns
}

const (
	retryWindow = 10               // seconds a refusal or an admission is remembered
	retryMost   = 60 * time.Second // the longest answer; v itself is at most half of it
	retrySpan   = int64(retryMost / time.Second / 2)
)

// Admitted tells that work of this level got a slot.
func (c *RetryAfter) Admitted(now time.Time, l priority.Level) {
	r := &c.level[l.Index()]
	r.advance(now)
	r.wake()
	r.admitted[r.second%retryWindow]++
	r.admits++
	r.last = now
}

// Refused counts a caller of this level that was just refused, and returns when it
// should come back: whole seconds, 1 to 60. random is evenly spread over [0, 1);
// values outside count as the nearest inside.
func (c *RetryAfter) Refused(now time.Time, l priority.Level, random float64) time.Duration {
	r := &c.level[l.Index()]
	r.advance(now)
	r.wake()
	if r.last.IsZero() {
		r.last = now
	}
	v := r.seconds(now)
	after := v + min(int64(max(random, 0)*float64(v+1)), v)
	r.away++
	r.due[(r.second+min(after, retryWindow))%len64(r.due[:])]++
	return time.Duration(after) * time.Second
}

// Same returns v for the next caller of this level that is refused, for how many more of
// them it stays the same unless work is admitted, and until when.
func (c *RetryAfter) Same(now time.Time, l priority.Level) (v, callers int64, until time.Time) {
	r := &c.level[l.Index()]
	r.advance(now)
	v, callers = r.seconds(now), math.MaxInt32
	if r.admits > 0 && v < retrySpan {
		window := min(r.second-r.base+1, retryWindow)
		callers = max(v*r.admits/window-r.away, 0)
	}
	until = r.start.Add(r.end)
	if whole := r.last.Add(now.Sub(r.last).Truncate(time.Second) + time.Second); !r.last.IsZero() && whole.Before(until) {
		until = whole
	}
	return v, callers, until
}

// Told counts so many callers of this level that were told to come back after whole
// seconds in [v, 2v], evenly.
func (c *RetryAfter) Told(now time.Time, l priority.Level, v, callers int64) {
	r := &c.level[l.Index()]
	r.advance(now)
	r.wake()
	r.away += callers
	each, rest := callers/(v+1), callers%(v+1)
	for i := range v + 1 {
		n := each
		if i < rest {
			n++
		}
		r.due[(r.second+min(v+i, retryWindow))%len64(r.due[:])] += n
	}
}

// returns is the bookkeeping of one level, in buckets of one second.
type returns struct {
	start    time.Time     // second 0
	end      time.Duration // when the current second ends, since start
	second   int64         // seconds since start
	base     int64         // the second that ended a quiet time
	last     time.Time     // the latest admission, or the first refusal before any
	admits   int64         // admissions in the window
	away     int64         // refused and not yet due back
	admitted [retryWindow]int64
	due      [retryWindow + 1]int64 // by the second they are due in
}

// seconds returns v for the next caller, who is counted among those away.
func (r *returns) seconds(now time.Time) int64 {
	drought := now.Sub(r.last).Seconds()
	v := float64(powerBelow(1 + uint64(max(drought, 0))))
	if r.admits > 0 {
		window := float64(min(r.second-r.base+1, retryWindow))
		v = max(v, float64(r.away+1)*window/float64(r.admits))
	}
	return int64(math.Ceil(min(max(v, 1), float64(retrySpan))))
}

// powerBelow returns the largest power of two that is at most n, which is not 0.
func powerBelow(n uint64) uint64 { return 1 << (bits.Len64(n) - 1) }

// wake begins the window anew after a quiet time, which says nothing about how
// much could have been admitted.
func (r *returns) wake() {
	if r.admits == 0 && r.away == 0 {
		r.base = r.second
	}
}

// advance forgets what has left the window. A clock that stands still or goes back
// forgets nothing.
func (r *returns) advance(now time.Time) {
	if r.start.IsZero() {
		r.start = now
	}
	since := now.Sub(r.start)
	if since < r.end {
		return
	}
	second := int64(since / time.Second)
	if second-r.second > retryWindow {
		*r = returns{start: r.start, second: second, last: r.last}
	}
	r.end = time.Duration(second+1) * time.Second
	for r.second < second {
		r.second++
		i := r.second % retryWindow
		r.admits -= r.admitted[i]
		r.admitted[i] = 0
		j := r.second % len64(r.due[:])
		r.away -= r.due[j]
		r.due[j] = 0
	}
}

func len64(s []int64) int64 { return int64(len(s)) }
