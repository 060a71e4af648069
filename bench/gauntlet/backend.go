package gauntlet

import (
	"math"
	"time"
)

// backend does the work that was let in. It never stops work whose client left.
type backend interface {
	// start takes id's work at t and returns when it will be finished, or false
	// when it has to wait inside the backend.
	start(t time.Duration, id int32, r *request) (time.Duration, bool)
	// finish tells that one piece of work ended at t. It returns the work that
	// begins now and when it will be finished.
	finish(t time.Duration) (id int32, until time.Duration, ok bool)
	// median returns the median service time at t, or zero where there is no one
	// kind of work.
	median(t time.Duration) time.Duration
}

const sigma = 0.3 // of the lognormal service times

// lognormal returns the service time of work of the given size around a mean.
func lognormal(mean time.Duration, size float64) time.Duration {
	return time.Duration(float64(mean) * math.Exp(sigma*size-sigma*sigma/2))
}

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

// pool serves at most width at a time, first come first served; whoever is let in
// beyond that waits inside, where no gate sees it. With drag, each piece of work
// in flight beyond width slows all by that share: thrashing.
type pool struct {
	width    int
	drag     float64
	mean     schedule
	busy     int
	line     []int32
	requests []*request
}

func (p *pool) start(t time.Duration, id int32, r *request) (time.Duration, bool) {
	if p.busy >= p.width {
		p.line = append(p.line, id)
		p.requests = append(p.requests, r)
		return 0, false
	}
	p.busy++
	return p.until(t, r), true
}

func (p *pool) finish(t time.Duration) (int32, time.Duration, bool) {
	if len(p.line) == 0 {
		p.busy--
		return 0, 0, false
	}
	id, r := p.line[0], p.requests[0]
	p.line, p.requests = p.line[1:], p.requests[1:]
	return id, p.until(t, r), true
}

func (p *pool) median(t time.Duration) time.Duration { return lognormal(p.mean.at(t), 0) }

func (p *pool) until(t time.Duration, r *request) time.Duration {
	slow := 1 + p.drag*float64(max(0, p.busy+len(p.line)-p.width))
	return t + time.Duration(float64(lognormal(p.mean.at(t), r.size))*slow)
}

// delay takes its time over each piece of work and has no bottleneck.
type delay func(t time.Duration, r *request) time.Duration

func (d delay) start(t time.Duration, _ int32, r *request) (time.Duration, bool) {
	return t + d(t, r), true
}

func (d delay) finish(time.Duration) (int32, time.Duration, bool) { return 0, 0, false }

func (d delay) median(time.Duration) time.Duration { return 0 }
