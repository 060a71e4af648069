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

// spending counts what was let through without the bucket's knowledge, lately: at
// least in the last window and at most in the last two.
type spending struct {
	window    time.Duration
	from      time.Duration // begin of the cell now
	cur, prev int
	saying    int // part that a call in flight tells the bucket
}

func (s *spending) roll(t time.Duration) {
	switch age := t - s.from; {
	case age >= 2*s.window:
		s.from, s.cur, s.prev = t, 0, 0
	case age >= s.window:
		s.from, s.cur, s.prev = s.from+s.window, 0, s.cur
	}
}

func (s *spending) add(t time.Duration, n int) {
	s.roll(t)
	s.cur = max(0, s.cur+n)
}

// drop takes off what the bucket has heard of.
func (s *spending) drop(n int) {
	old := min(n, s.prev)
	s.prev -= old
	s.cur = max(0, s.cur-n+old)
}

func (s *spending) sum(t time.Duration) int {
	s.roll(t)
	return s.cur + s.prev
}
