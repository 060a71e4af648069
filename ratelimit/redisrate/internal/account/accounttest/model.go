// Package accounttest has what programs in virtual time need: the script's law in Go,
// and the measure of a bound.
package accounttest

import (
	"context"
	"math"
	"time"

	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/account"
)

// Model is the script's law in Go, written from the package comment rather than
// from the script: the oracle of a differential test, and the store of everything
// that runs in virtual time.
type Model struct {
	now     func() int64 // microseconds
	Buckets map[string]*bucket
	bills   map[string]paid
	Down    func() bool
	Calls   int
}

type bucket struct {
	tokens, last, pause, hold int64
	mult                      int64
	epoch                     int64
	limit                     account.Limit
	out, cur, prev            int64
	cell                      int64
	expires                   int64
	full, back, spill         int64
	brim                      bool // full at this call
}

// paid is the last bill that a process paid.
type paid struct{ bill, debit, charge, expires int64 }

// told leaves of r what its sender did not pay before. It returns what is paid then.
func (m *Model) told(r *account.Request) (p paid, write bool) {
	p = m.bills[r.Payer]
	if r.Bill == 0 || p.expires <= m.now() {
		p = paid{}
	}
	switch {
	case r.Bill == 0:
		return p, false
	case p.bill > r.Bill:
		r.Debit, r.Charge = 0, min(0, r.Charge)
		return p, false
	case p.bill < r.Bill:
		return paid{bill: r.Bill, debit: r.Debit, charge: max(0, r.Charge)}, true
	}
	was := p
	p.debit, p.charge = max(p.debit, r.Debit), max(p.charge, r.Charge)
	r.Debit = max(0, r.Debit-was.debit)
	if r.Charge > 0 {
		r.Charge = max(0, r.Charge-was.charge)
	}
	return p, true
}

// NewModel returns an empty store that reads the time, in microseconds, from now.
func NewModel(now func() int64) *Model {
	return &Model{now: now, Buckets: map[string]*bucket{}, bills: map[string]paid{}}
}

// Beat says that there is one process.
func (m *Model) Beat(context.Context, string, string, time.Duration, bool) (int, error) {
	return 1, nil
}

// Parts says that a call answers all its keys at once.
func (m *Model) Parts() bool { return false }

// Close does nothing.
func (m *Model) Close() error { return nil }

// Lease does what the script does.
func (m *Model) Lease(_ context.Context, r account.Request) (account.Reply, error) {
	m.Calls++
	if m.Down != nil && m.Down() {
		return account.Reply{}, context.DeadlineExceeded
	}
	now := m.now()
	b := m.Buckets[r.Key]
	if b == nil || b.expires <= now {
		b = &bucket{tokens: int64(r.Limit.Burst) * account.Micro, last: now, mult: account.Micro, limit: r.Limit, cell: now, full: now}
	} else {
		c := *b
		b = &c
	}
	was := b.limit
	if was.Version <= r.Limit.Version {
		b.limit = r.Limit
	}
	write := r.Touch || r.Gone != 0
	now, write = b.clock(now, write)
	b.age(now, r.Life.Microseconds())
	b.refill(now, was)
	b.tokens = min(b.tokens, int64(b.limit.Burst)*account.Micro)
	b.out = max(0, b.out-int64(r.Gone))
	slip, pays := m.told(&r)
	b.settle(now, &r)
	write = b.change(now, r) || write || pays
	rep := b.grant(now, r)
	if rep.Granted > 0 || write {
		full := (float64(b.limit.Burst)*account.Micro-float64(b.tokens))/(b.limit.Rate*rep.Multiplier) + float64(max(0, b.pause-now))
		if rep.Multiplier < 1 {
			full = max(full, float64(max(0, b.hold-now)+(account.Micro-b.mult)*20))
		}
		b.expires = m.now() + (int64(math.Ceil(full/1000))+1000)*1000
		m.Buckets[r.Key] = b
		if pays {
			slip.expires = b.expires
			m.bills[r.Payer] = slip
		}
	}
	return rep, nil
}

// clock makes a step back harmless.
func (b *bucket) clock(now int64, write bool) (int64, bool) {
	if step := b.last - now; step > account.Micro {
		b.last, write = now, true
		b.pause, b.hold, b.cell = max(0, b.pause-step), max(0, b.hold-step), max(0, b.cell-step)
		b.full, b.back = max(0, b.full-step), max(0, b.back-step)
	}
	return max(now, b.last), write
}

// age forgets slots that must have perished.
func (b *bucket) age(now, life int64) {
	if life > 0 && now-b.cell >= 2*life {
		b.cell, b.cur, b.prev = now, 0, 0
	} else if life > 0 && now-b.cell >= life {
		b.cell, b.cur, b.prev = b.cell+life, 0, b.cur
	}
	b.out = max(0, min(b.out, b.cur+b.prev))
}

// multiplier climbs 5 % of the full rate a second after hold.
func (b *bucket) multiplier(now int64) int64 {
	return min(account.Micro, b.mult+max(0, now-b.hold)/20)
}

// area is the multiplier summed from hold to x microseconds later.
func (b *bucket) area(x int64) float64 {
	m, top := float64(b.mult)/account.Micro, float64(account.Micro-b.mult)*20
	f := float64(x)
	if f <= 0 {
		return m * f
	}
	if f <= top {
		return m*f + f*f/40000000
	}
	return m*top + top*top/40000000 + f - top
}

func (b *bucket) refill(now int64, was account.Limit) {
	from, top := max(b.last, b.pause), (int64(was.Burst)-b.out)*account.Micro
	b.last = now
	b.brim = b.tokens >= top
	if now <= from {
		return
	}
	gain := (b.area(now-b.hold) - b.area(from-b.hold)) * was.Rate
	whole := math.Floor(gain + 0.001)
	sum := float64(b.tokens) + whole
	if b.brim = sum >= float64(top); b.brim {
		b.spill += int64(max(0, sum-float64(max(top, b.tokens))))
	} else {
		b.last = now - int64(max(0, gain-whole)/(was.Rate*float64(b.multiplier(now))/account.Micro))
	}
	b.tokens = max(b.tokens, int64(min(sum, float64(top))))
}

// settle says how much of a debit counts: not what was refilled before the bucket was last
// full, nor what ran over while processes were returning.
func (b *bucket) settle(now int64, r *account.Request) {
	const returning = 1_500_000
	if b.brim && now-b.back > returning {
		b.full = now
	}
	if r.Debit == 0 {
		return
	}
	if now-b.back > returning {
		b.back, b.spill = now, 0
	}
	r.Debit = min(r.Debit, r.Missing+int64(math.Floor(r.Filling*float64(now-b.full))))
	spilt := min(b.spill, max(0, r.Debit-r.Missing))
	r.Debit, b.spill = r.Debit-spilt, b.spill-spilt
}

func (b *bucket) change(now int64, r account.Request) (changed bool) {
	if r.Debit > 0 {
		b.tokens, changed = max(min(b.tokens, -min(int64(b.limit.Burst), int64(b.limit.Rate*2))*account.Micro), b.tokens-r.Debit), true
	}
	if r.Charge > 0 {
		b.tokens, changed = b.tokens-r.Charge, true
	} else if r.Charge < 0 {
		b.tokens, changed = max(b.tokens, min((int64(b.limit.Burst)-b.out)*account.Micro, b.tokens-r.Charge)), true
	}
	if r.Pause > 0 {
		b.pause, changed = max(b.pause, now+r.Pause.Microseconds()), true
	}
	if c := account.PPM(r.Cut); c < account.Micro && now >= b.hold && (r.Seen < 0 || r.Seen == b.epoch) {
		b.mult = max(account.Micro/10, b.multiplier(now)*c/account.Micro)
		b.hold, b.epoch, changed = now+max(account.Micro, r.Pause.Microseconds()), b.epoch+1, true
	}
	return changed
}

func (b *bucket) grant(now int64, r account.Request) account.Reply {
	m := float64(b.multiplier(now)) / account.Micro
	paused := max(0, b.pause-now)
	free := int(math.Floor((float64(b.tokens+r.Reserve) - float64(paused)*b.limit.Rate*m) / account.Micro))
	g := min(r.Want, free, max(r.Need, r.Share, floorHalf(free)))
	if g < max(1, r.Least) {
		g = 0
	}
	rep := account.Reply{
		Granted: g, Before: b.tokens, Limit: b.limit, Multiplier: m,
		Pause: time.Duration(paused) * time.Microsecond, Epoch: b.epoch,
	}
	b.tokens -= int64(g) * account.Micro
	if r.Life > 0 {
		b.out, b.cur = b.out+int64(g), b.cur+int64(g)
	}
	return rep
}

func floorHalf(n int) int { return int(math.Floor(float64(n) / 2)) }
