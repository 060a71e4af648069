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

// deficit is what is missing from a full share. Those of all processes together
// are what must be missing from the one bucket when they return to it.
func (s *share) deficit(t time.Duration) float64 {
	s.refill(t)
	return max(0, s.burst-s.tokens)
}

// unheard is what the bucket has not heard of: what was missing from the share
// when a call last failed, and what was let through since. Before that the bucket
// was out of reach, and what it refilled then was not lost to anybody.
type unheard struct {
	tokens float64
	failed time.Duration
	saying float64 // part that a call in flight tells the bucket
}

// mark starts afresh because a call failed at that time.
func (u *unheard) mark(failed time.Duration, deficit float64) {
	if failed >= u.failed {
		u.failed, u.tokens = failed, deficit
	}
}

func (u *unheard) add(n int) { u.tokens = max(0, u.tokens+float64(n)) }

// tell returns the micro-tokens to debit: a burst at most, since the bucket cannot
// have refilled more beside it.
func (u *unheard) tell(burst int) int64 {
	u.tokens = min(u.tokens, float64(burst))
	u.saying = u.tokens
	return int64(u.saying * micro)
}

// told takes off what the bucket has heard of; without an answer it is said again:
// the bucket bounds what that can do.
func (u *unheard) told() {
	if u.tokens -= u.saying; u.tokens < 1 {
		u.tokens = 0
	}
	u.saying = 0
}
