package redisrate

import (
	"context"
	"math"
	"time"
)

// model is the script's law in Go, written from the package comment rather than
// from the script: the oracle of a differential test, and the store of everything
// that runs in virtual time.
type model struct {
	now     func() int64 // microseconds
	buckets map[string]*bucket
	down    func() bool
	calls   int
}

type bucket struct {
	tokens, last, pause, hold int64
	mult                      int64
	epoch                     int64
	limit                     limit
	out, cur, prev            int64
	cell                      int64
	expires                   int64
}

func newModel(now func() int64) *model {
	return &model{now: now, buckets: map[string]*bucket{}}
}

func (m *model) Beat(context.Context, string, string, time.Duration, bool) (int, error) {
	return 1, nil
}
func (m *model) Parts() bool  { return false }
func (m *model) Close() error { return nil }

func (m *model) Lease(_ context.Context, r request) (reply, error) {
	m.calls++
	if m.down != nil && m.down() {
		return reply{}, context.DeadlineExceeded
	}
	now := m.now()
	b := m.buckets[r.key]
	if b == nil || b.expires <= now {
		b = &bucket{tokens: int64(r.limit.burst) * micro, last: now, mult: micro, limit: r.limit, cell: now}
	} else {
		c := *b
		b = &c
	}
	was := b.limit
	if was.version <= r.limit.version {
		b.limit = r.limit
	}
	write := r.touch || r.gone != 0
	now, write = b.clock(now, write)
	b.age(now, r.life.Microseconds())
	b.refill(now, was)
	b.tokens = min(b.tokens, int64(b.limit.burst)*micro)
	b.out = max(0, b.out-int64(r.gone))
	write = b.change(now, r) || write
	rep := b.grant(now, r)
	if rep.granted > 0 || write {
		full := (float64(b.limit.burst)*micro-float64(b.tokens))/(b.limit.rate*rep.multiplier) + float64(max(0, b.pause-now))
		if rep.multiplier < 1 {
			full = max(full, float64(max(0, b.hold-now)+(micro-b.mult)*20))
		}
		b.expires = m.now() + (int64(math.Ceil(full/1000))+1000)*1000
		m.buckets[r.key] = b
	}
	return rep, nil
}

// clock makes a step back harmless.
func (b *bucket) clock(now int64, write bool) (int64, bool) {
	if step := b.last - now; step > micro {
		b.last, write = now, true
		b.pause, b.hold, b.cell = max(0, b.pause-step), max(0, b.hold-step), max(0, b.cell-step)
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
	return min(micro, b.mult+max(0, now-b.hold)/20)
}

// area is the multiplier summed from hold to x microseconds later.
func (b *bucket) area(x int64) float64 {
	m, top := float64(b.mult)/micro, float64(micro-b.mult)*20
	f := float64(x)
	if f <= 0 {
		return m * f
	}
	if f <= top {
		return m*f + f*f/40000000
	}
	return m*top + top*top/40000000 + f - top
}

func (b *bucket) refill(now int64, was limit) {
	from, top := max(b.last, b.pause), (int64(was.burst)-b.out)*micro
	b.last = now
	if now <= from {
		return
	}
	gain := (b.area(now-b.hold) - b.area(from-b.hold)) * was.rate
	whole := math.Floor(gain + 0.001)
	sum := float64(b.tokens) + whole
	if sum < float64(top) {
		b.last = now - int64(max(0, gain-whole)/(was.rate*float64(b.multiplier(now))/micro))
	}
	b.tokens = max(b.tokens, int64(min(sum, float64(top))))
}

func (b *bucket) change(now int64, r request) (changed bool) {
	if r.debit > 0 {
		b.tokens, changed = max(min(b.tokens, -min(int64(b.limit.burst), int64(b.limit.rate*2))*micro), b.tokens-r.debit), true
	}
	if r.lack > 0 {
		b.tokens, changed = min(b.tokens, max(0, int64(b.limit.burst)*micro-r.lack)), true
	}
	if r.charge > 0 {
		b.tokens, changed = b.tokens-r.charge, true
	} else if r.charge < 0 {
		b.tokens, changed = max(b.tokens, min((int64(b.limit.burst)-b.out)*micro, b.tokens-r.charge)), true
	}
	if r.pause > 0 {
		b.pause, changed = max(b.pause, now+r.pause.Microseconds()), true
	}
	if c := ppm(r.cut); c < micro && now >= b.hold && (r.seen < 0 || r.seen == b.epoch) {
		b.mult = max(micro/10, b.multiplier(now)*c/micro)
		b.hold, b.epoch, changed = now+max(micro, r.pause.Microseconds()), b.epoch+1, true
	}
	return changed
}

func (b *bucket) grant(now int64, r request) reply {
	m := float64(b.multiplier(now)) / micro
	paused := max(0, b.pause-now)
	free := int(math.Floor((float64(b.tokens+r.reserve) - float64(paused)*b.limit.rate*m) / micro))
	g := min(r.want, free, max(r.need, r.share, floorHalf(free)))
	if g < max(1, r.least) {
		g = 0
	}
	rep := reply{
		granted: g, before: b.tokens, limit: b.limit, multiplier: m,
		pause: time.Duration(paused) * time.Microsecond, epoch: b.epoch,
	}
	b.tokens -= int64(g) * micro
	if r.life > 0 {
		b.out, b.cur = b.out+int64(g), b.cur+int64(g)
	}
	return rep
}

func floorHalf(n int) int { return int(math.Floor(float64(n) / 2)) }
