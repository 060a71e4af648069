package overhead

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
)

// taken is what one turn measured, per request.
type taken struct{ ns, allocs, bytes float64 }

// work is one caller's part of a turn.
type work struct {
	busy    time.Duration
	done    int
	wrong   int
	touched byte // by fill, so that it is not compiled away
}

var began = time.Now()

func wallTime() time.Duration { return time.Since(began) }

// CPUTime is what this process has spent on processors, or where that cannot be read,
// the time since it began.
func CPUTime() time.Duration { return cpuTime() }

// turn lets each caller ask for the length of a turn. On one core a request takes
// the time of the processor; on several it takes the time that passes, of all cores
// together: it halves when two do twice the work.
func (g *group) turn(e *entry, callers []*sender) (taken, error) {
	var before, after runtime.MemStats
	parts := make([]work, len(callers))
	runtime.ReadMemStats(&before)
	clock := wallTime
	if len(callers) == 1 {
		clock = cpuTime
	}
	var all sync.WaitGroup
	for i, c := range callers {
		all.Go(func() { parts[i] = c.work(e, clock, g.run.turn) })
	}
	all.Wait()
	runtime.ReadMemStats(&after)
	var sum work
	for _, p := range parts {
		sum.busy, sum.done, sum.wrong = sum.busy+p.busy, sum.done+p.done, sum.wrong+p.wrong
	}
	if sum.wrong > 0 {
		return taken{}, fmt.Errorf("%s: %d of %d requests were not answered %d", e.name, sum.wrong, sum.done, e.want)
	}
	n := float64(sum.done)
	return taken{
		ns:     float64(sum.busy.Nanoseconds()) / n / float64(len(callers)),
		allocs: float64(after.Mallocs-before.Mallocs) / n,
		bytes:  float64(after.TotalAlloc-before.TotalAlloc) / n,
	}, nil
}

func (c *sender) work(e *entry, clock func() time.Duration, length time.Duration) (w work) {
	ask, want := e.ask, e.want
	for w.busy < length {
		w.touched ^= c.fill()
		from := clock()
		for _, key := range &c.batch {
			c.as(key)
			if ask(c) != want {
				w.wrong++
			}
		}
		w.busy += clock() - from
		w.done += batchSize
	}
	return w
}

// series are the turns of one subject.
type series struct{ ns, allocs, bytes, ratio []float64 }

func (s *series) add(t, base taken) {
	s.ns = append(s.ns, t.ns)
	s.allocs = append(s.allocs, t.allocs)
	s.bytes = append(s.bytes, t.bytes)
	s.ratio = append(s.ratio, t.ns/base.ns)
}

func median(v []float64) float64 { return quantile(v, 0.5) }

// quantile is a value of v or the mean of the two nearest.
func quantile(v []float64, q float64) float64 {
	v = slices.Sorted(slices.Values(v))
	at := q * float64(len(v)-1)
	low := int(at)
	high := min(low+1, len(v)-1)
	return v[low] + (v[high]-v[low])*(at-float64(low))
}

func spread(v []float64) float64 {
	return (quantile(v, 0.75) - quantile(v, 0.25)) / 2 / median(v)
}
