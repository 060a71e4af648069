package redisrate

import "time"

// share is the bucket a process falls back on while the store is away: its part
// of the ceiling. A ceiling of R and B shared by N becomes N buckets of R/N and
// B/N, and never less than one token each. It starts with what this process was
// entitled to at that moment, not full: otherwise every flap of the store would
// mint another burst.
type share struct {
	tokens float64
	last   time.Duration
	rate   float64
	burst  float64
}

func newShare(t time.Duration, l limit, part, start float64) share {
	s := share{last: t, rate: l.rate * part, burst: max(1, float64(l.burst)*part)}
	s.tokens = min(s.burst, start)
	return s
}

func (s *share) refill(t time.Duration) {
	if t > s.last {
		s.tokens = min(s.burst, s.tokens+(t-s.last).Seconds()*s.rate)
		s.last = t
	}
}

// wait returns how long until the share admits cost; zero means now. A cost above
// the share's burst, but not above the ceiling's, is admitted by a full share and
// paid back afterwards.
func (s *share) wait(t time.Duration, cost int) time.Duration {
	s.refill(t)
	short := min(float64(cost), s.burst) - s.tokens
	if short <= 0 {
		return 0
	}
	return seconds(short / s.rate)
}

func (s *share) spend(cost int) { s.tokens -= float64(cost) }

func (s *share) undo(cost int) { s.tokens = min(s.burst, s.tokens+float64(cost)) }

// full says that nothing is lost by forgetting the share.
func (s *share) full(t time.Duration) bool {
	s.refill(t)
	return s.tokens >= s.burst
}

// debt is what was let through without the bucket's knowledge. It fades at the
// rate of the share, because the bucket refills meanwhile.
type debt struct {
	tokens float64
	last   time.Duration
	rate   float64
	saying float64 // part that a call in flight carries
}

func (d *debt) fade(t time.Duration) {
	if t > d.last {
		d.tokens = max(0, d.tokens-(t-d.last).Seconds()*d.rate)
		d.last = t
	}
}

func (d *debt) add(t time.Duration, cost int, rate float64) {
	d.fade(t)
	d.rate = rate
	d.tokens = max(0, d.tokens+float64(cost))
}

// tell returns the micro-tokens to debit, a burst at most: more would make
// callers pay for time that has passed.
func (d *debt) tell(t time.Duration, burst int) int64 {
	d.fade(t)
	d.tokens = min(d.tokens, float64(burst))
	d.saying = d.tokens
	return int64(d.saying * micro)
}

// told settles what the call carried. Without an answer it is still owed: a debit
// never takes the bucket below empty, so saying it twice does no harm.
func (d *debt) told(ok bool) {
	if ok {
		d.tokens = max(0, d.tokens-d.saying)
	}
	d.saying = 0
}
