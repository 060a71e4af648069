package account

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

func newShare(t time.Duration, l Limit, part, start float64) share {
	s := share{last: t, rate: l.Rate * part, burst: max(1, float64(l.Burst)*part)}
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

// unheard is what was let through here and not charged to the bucket. What it is
// charged is what was really spent, and no more than was missing from the share when
// a call last failed and what was let through since: before that the bucket was out
// of reach, and what it refilled then was not lost.
type unheard struct {
	spent  float64 // negative: paid for already, as slots
	lack   float64
	failed time.Duration
	saying float64 // part that calls in flight tell the bucket
}

// mark says what was missing from the share when a call failed at that time.
func (u *unheard) mark(failed time.Duration, deficit float64) {
	if failed >= u.failed {
		u.failed, u.lack = failed, deficit
	}
}

func (u *unheard) add(n int) {
	u.spent += float64(n)
	u.lack = max(0, u.lack+float64(n))
}

// owed returns the whole tokens to charge: a burst at most, since the bucket cannot
// have refilled more beside it.
func (u *unheard) owed(burst int) int {
	return max(0, int(min(u.spent, u.lack, float64(burst))-u.saying))
}

// tell returns the micro-tokens to debit.
func (u *unheard) tell(burst int) int64 {
	n := u.owed(burst)
	u.saying += float64(n)
	return int64(n) * Micro
}

// told takes off what the bucket was charged.
func (u *unheard) told(debit int64) {
	n := float64(debit) / Micro
	u.spent, u.lack, u.saying = u.spent-n, max(0, u.lack-n), u.saying-n
	if u.saying == 0 && u.lack < 1 {
		u.spent, u.lack = min(u.spent, 0), 0
	}
}

// untold says that an answer was lost: the debit is said again, and the bucket
// bounds what that can do.
func (u *unheard) untold(debit int64) { u.saying -= float64(debit) / Micro }
