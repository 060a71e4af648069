package gauntlet

import (
	"math"
	"time"
)

// backend does the work that was let in. It never stops work whose client left.
type backend interface {
	// start takes id's work at t and returns when it will be finished, or false
	// when it has to wait inside the backend. It files in r how long the work takes
	// alone.
	start(t time.Duration, id int32, r *request) (time.Duration, bool)
	// finish tells that work ended, which took so many places.
	finish(slots int)
	// next returns work that waited inside and begins at t, and when it will be
	// finished, until there is none.
	next(t time.Duration) (id int32, until time.Duration, ok bool)
	// median returns the median service time at t, or zero where there is no one
	// kind of work.
	median(t time.Duration) time.Duration
}

const sigma = 0.3 // of the lognormal service times

// lognormal returns the service time of work of the given size around a mean.
func lognormal(mean time.Duration, size, sigma float64) time.Duration {
	return time.Duration(float64(mean) * math.Exp(sigma*size-sigma*sigma/2))
}

// pool serves at most width at a time, first come first served; work that is let in
// beyond that waits inside, where no gate sees it.
type pool struct {
	width    func(t time.Duration) int
	mean     schedule
	took     func(t time.Duration, r *request) time.Duration // nil: lognormal around the mean
	drag     float64                                         // thrashing: each piece of work beyond width slows all by this share
	pause    time.Duration                                   // the backend stands still this long at the end of
	every    time.Duration                                   // each such period; zero: never
	busy     int
	line     []int32
	requests []*request
}

// fixed is a width that stays.
func fixed(n int) func(time.Duration) int { return func(time.Duration) int { return n } }

func (p *pool) start(t time.Duration, id int32, r *request) (time.Duration, bool) {
	if !p.fits(t, r) {
		p.line = append(p.line, id)
		p.requests = append(p.requests, r)
		r.alone = p.alone(t, r)
		return 0, false
	}
	p.busy += r.slots
	return p.until(t, r), true
}

// fits reports whether there are places for r; what is wider than all gets all.
func (p *pool) fits(t time.Duration, r *request) bool {
	return p.busy+r.slots <= p.width(t) || p.busy == 0 && p.width(t) > 0
}

func (p *pool) finish(slots int) { p.busy -= slots }

func (p *pool) next(t time.Duration) (int32, time.Duration, bool) {
	if len(p.line) == 0 || !p.fits(t, p.requests[0]) {
		return 0, 0, false
	}
	id, r := p.line[0], p.requests[0]
	p.busy += r.slots
	p.line, p.requests = p.line[1:], p.requests[1:]
	return id, p.until(t, r), true
}

func (p *pool) median(t time.Duration) time.Duration {
	if p.took != nil {
		return 0
	}
	return lognormal(p.mean.at(t), 0, sigma)
}

func (p *pool) alone(t time.Duration, r *request) time.Duration {
	if p.took != nil {
		return p.took(t, r)
	}
	return lognormal(p.mean.at(t), r.size, sigma)
}

func (p *pool) until(t time.Duration, r *request) time.Duration {
	r.alone = p.alone(t, r)
	slow := 1 + p.drag*float64(max(0, p.busy+len(p.line)-p.width(t)))
	return p.stretched(t, time.Duration(float64(r.alone)*slow))
}

// stretched returns when work of length d that begins at t ends, pauses included.
func (p *pool) stretched(t, d time.Duration) time.Duration {
	if p.every == 0 {
		return t + d
	}
	for {
		end := t - t%p.every + p.every // of this period
		if stop := end - p.pause; t < stop {
			if t+d <= stop {
				return t + d
			}
			d -= stop - t
		}
		t = end
	}
}

// delay takes its time over each piece of work and has no bottleneck.
type delay func(t time.Duration, r *request) time.Duration

func (d delay) start(t time.Duration, _ int32, r *request) (time.Duration, bool) {
	r.alone = d(t, r)
	return t + r.alone, true
}

func (d delay) finish(int) {}

func (d delay) next(time.Duration) (int32, time.Duration, bool) { return 0, 0, false }

func (d delay) median(time.Duration) time.Duration { return 0 }

// schedule is a mean service time that changes at given instants.
type schedule []change

type change struct {
	from time.Duration
	mean time.Duration
}

func (s schedule) at(t time.Duration) time.Duration {
	mean := s[0].mean
	for _, c := range s {
		if t >= c.from {
			mean = c.mean
		}
	}
	return mean
}
