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

// unheard is what was let through here and not charged to the bucket. It is told in
// bills. While a bill is not answered it is told again, with what was added meanwhile;
// the bucket keeps what it was paid of it, so each token counts once, whatever the order
// of answers.
type unheard struct {
	spent  float64 // not charged; negative: paid for already, as slots
	bill   int64   // number of the last one
	open   bool    // it was not answered
	saying int     // calls in flight that carry it
	debit  int64   // micro-tokens of it: spent elsewhere,
	charge int64   // and charged for what was let through on slots
	part   float64 // of spent that it settles
}

func (u *unheard) add(n int) { u.spent += float64(n) }

// rest is what no bill tells yet.
func (u *unheard) rest() float64 {
	if u.open {
		return u.spent - u.part
	}
	return u.spent
}

// owes says that something is not charged yet, as far as is known here.
func (u *unheard) owes() bool { return u.open || u.spent >= 1 }

// due says that a call should tell.
func (u *unheard) due() bool { return u.saying == 0 && u.owes() }

// into adds the open bill to a call, or a new one: what was spent, and charge. The bucket
// bounds what that can do.
func (u *unheard) into(r *Request, t time.Duration, charge int) {
	n := max(0, int(min(u.spent, 1<<40)))
	if !u.open {
		if n == 0 && charge == 0 {
			return
		}
		// Also above those of an account of this key that was forgotten.
		u.bill, u.open = max(u.bill, t.Microseconds())+1, true
		u.saying, u.debit, u.charge = 0, 0, 0
	}
	u.saying++
	u.debit, u.charge = max(u.debit, int64(n)*Micro), u.charge+int64(charge)*Micro
	u.part = float64(u.debit) / Micro
	r.Bill, r.Debit, r.Charge = u.bill, u.debit, u.charge
}

// told takes in what became of a call that carried a bill.
func (u *unheard) told(r Request, answered bool) {
	if !u.open || r.Bill != u.bill {
		return
	}
	u.saying--
	if answered && r.Debit == u.debit && r.Charge >= u.charge { // nothing was added since
		u.spent -= u.part
		u.open = false
	}
}
