// Package pressure is a second opinion beside the limits of package shed: signals that
// something else than slots runs short (memory, the scheduler, a connection pool, a
// work queue). It is the part that reads the world, so that shed stays pure.
package pressure

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

// Guard is the configuration of a gauge: which signals it reads and how fast it acts.
// It is never the only trigger: a law finds the limit, and pressure turns away the
// lowest levels on top of that, one by one, while a signal stays high. Critical is
// never shed. The zero value has no signals and turns away no work. The type
// admission.Options.Pressure takes is satisfied by a Guard value.
type Guard struct {
	Signals []Signal
	Every   time.Duration // how often signals are read at most; 0: 100 ms
	Hold    time.Duration // time between two steps up or down; 0: 1 s
	// Cohort, when set, sheds a level in steps of this share of its callers, chosen
	// by hash and anew every hour, instead of all at once. It contradicts equal
	// turns: some callers get nothing while others notice nothing. 0: off; else in
	// (0, 1).
	Cohort float64
}

// Signal is one thing that can run short.
type Signal struct {
	Name string
	// Read returns the present value. It is called from whichever request comes
	// first after Guard.Every, never twice at a time and without any lock held;
	// it should be quick and must not block. NaN counts as no news.
	Read func() float64
	High float64 // at and above this the signal is high
	Low  float64 // below this it is low again; in between it stays what it was; 0: 95 % of High
}

// New validates the configuration and builds the gauge. Errors name the field.
func (p Guard) New() (shed.Gauge, error) {
	switch {
	case p.Every < 0:
		return nil, fmt.Errorf("pressure: Guard.Every = %v: must not be negative", p.Every)
	case p.Hold < 0:
		return nil, fmt.Errorf("pressure: Guard.Hold = %v: must not be negative", p.Hold)
	case !(p.Cohort >= 0 && p.Cohort < 1):
		return nil, fmt.Errorf("pressure: Guard.Cohort = %v: must be at least 0 and below 1", p.Cohort)
	}
	if p.Every == 0 {
		p.Every = 100 * time.Millisecond
	}
	if p.Hold == 0 {
		p.Hold = time.Second
	}
	g := &gauge{every: p.Every, hold: p.Hold, steps: 1}
	if p.Cohort > 0 {
		g.steps = max(1, int(1/p.Cohort+0.5))
	}
	for i, s := range p.Signals {
		if s.Low == 0 {
			s.Low = 0.95 * s.High
		}
		if s.Read == nil || !(s.High > 0) || !(s.Low > 0 && s.Low <= s.High) {
			return nil, fmt.Errorf("pressure: Guard.Signals[%d] (%q): needs Read, and 0 < Low <= High", i, s.Name)
		}
		g.signals = append(g.signals, gauged{Signal: s})
	}
	return g, nil
}

// gauge is the gauge behind a [Guard]. It has no goroutine and no lock, and allocates
// nothing; asking costs a few nanoseconds, except for the one request in Every that
// reads the signals.
type gauge struct {
	every, hold time.Duration
	steps       int // of a level
	origin      atomic.Int64
	next        atomic.Int64 // when to read, in nanoseconds since origin
	severity    atomic.Int32 // steps in force
	busy        atomic.Bool  // guards what follows
	signals     []gauged
	stepped     time.Duration
}

type gauged struct {
	Signal
	high bool
}

// Sheds reports whether work of this level and caller is to be turned away for
// pressure.
func (g *gauge) Sheds(now time.Time, l priority.Level, caller string) bool {
	severity := g.read(now)
	if severity == 0 || l >= priority.Critical || len(g.signals) == 0 {
		return false
	}
	switch within := severity - l.Index()*g.steps; {
	case within <= 0:
		return false
	case within >= g.steps:
		return true
	default:
		return cohort(now, caller) < float64(within)/float64(g.steps)
	}
}

// Lowest returns the lowest level that is still let in, at least in part.
func (g *gauge) Lowest(now time.Time) priority.Level {
	return priority.All()[min(g.read(now)/g.steps, priority.Count-1)]
}

// read reads the signals if it is time, and returns the severity in force.
func (g *gauge) read(now time.Time) int {
	t := time.Duration(now.UnixNano() - g.start(now))
	if int64(t) >= g.next.Load() && g.busy.CompareAndSwap(false, true) {
		g.next.Store(int64(t + g.every))
		high := false
		for i := range g.signals {
			high = g.signals[i].update() || high
		}
		severity := int(g.severity.Load())
		if next := pressureStep(severity, g.steps*(priority.Count-1), high); next != severity && (severity == 0 || t-g.stepped >= g.hold) {
			g.severity.Store(int32(next))
			g.stepped = t
		}
		g.busy.Store(false)
	}
	return int(g.severity.Load())
}

func (g *gauge) start(now time.Time) int64 {
	if at := g.origin.Load(); at != 0 {
		return at
	}
	g.origin.CompareAndSwap(0, now.UnixNano())
	return g.origin.Load()
}

// update reads the signal and reports whether it is high now.
func (s *gauged) update() bool {
	switch v := s.Read(); {
	case v >= s.High:
		s.high = true
	case v < s.Low:
		s.high = false
	}
	return s.high
}

// pressureStep is the severity that follows.
func pressureStep(severity, most int, high bool) int {
	if high {
		return min(severity+1, most)
	}
	return max(severity-1, 0)
}

// cohort places a caller in [0, 1), elsewhere each hour: FNV-1a over the hour and
// the name, the same in every process.
func cohort(now time.Time, caller string) float64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for hour := uint64(now.Unix() / 3600); hour > 0; hour >>= 8 {
		h = (h ^ hour&0xff) * prime
	}
	for i := range len(caller) {
		h = (h ^ uint64(caller[i])) * prime
	}
	h ^= h >> 32 // FNV's high bits lag behind on short input
	h *= 0x9e3779b97f4a7c15
	return float64(h>>11) / (1 << 53)
}
