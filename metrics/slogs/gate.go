package slogs

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// calm is how long a level goes without a refusal before the next one is news.
const calm = time.Minute

// topic is what lines are rationed by: one kind of change of one thing.
type topic struct{ what, of string }

// gate is what was last seen of one gate.
type gate struct {
	log      *Log
	name     string
	snapshot func() admission.Stats
	due      due

	mu       sync.Mutex
	draining bool
	limits   map[string]int // by pool, as last told
	refused  [priority.Count]uint64
	shedAt   [priority.Count]time.Time
	away     map[string]bool // by store
	said     map[topic]time.Time
}

// look compares the gate with what was last seen of it, and tells the difference.
func (g *gate) look(now time.Time) {
	if !g.due.pass(now, g.log.opts.Look) {
		return
	}
	s := g.snapshot()
	var lines []line
	g.mu.Lock()
	lines = g.drain(lines, s)
	lines = g.levels(lines, s, now)
	for _, p := range s.Pools {
		lines = g.limit(lines, p, now)
	}
	for _, l := range s.Limits {
		for _, store := range l.Stores {
			lines = g.store(lines, store, now)
		}
	}
	g.mu.Unlock()
	for _, line := range lines {
		g.log.logger.LogAttrs(context.Background(), line.level, line.text, append(line.attrs, slog.String("gate", g.name))...)
	}
}

// line is one to be written once the lock is free: a handler may do I/O.
type line struct {
	level slog.Level
	text  string
	attrs []slog.Attr
}

// may reports whether a topic has been silent for long enough, and notes that it
// is not any more.
func (g *gate) may(t topic, now time.Time) bool {
	if last, told := g.said[t]; told && now.Sub(last) < g.log.opts.Every {
		return false
	}
	g.said[t] = now
	return true
}

func (g *gate) drain(lines []line, s admission.Stats) []line {
	if s.Draining && !g.draining {
		lines = append(lines, line{slog.LevelInfo, "draining", []slog.Attr{
			slog.Int("in_flight", s.InFlight()), slog.Int("streams", s.Streams),
		}})
	}
	g.draining = s.Draining
	return lines
}

// levels tells of each level whose work is refused for want of capacity after it
// had not been for a while.
func (g *gate) levels(lines []line, s admission.Stats, now time.Time) []line {
	for i := range s.Visits {
		refused, most := overload(s.Visits[i])
		more := refused - g.refused[i]
		g.refused[i] = refused
		if more == 0 {
			continue
		}
		news := now.Sub(g.shedAt[i]) >= calm
		g.shedAt[i] = now
		level := priority.All()[i]
		if news && g.may(topic{"shed", level.String()}, now) {
			severity := slog.LevelWarn
			if level == priority.Critical {
				severity = slog.LevelError
			}
			attrs := append([]slog.Attr{
				slog.String("level", level.String()), slog.Uint64("refused", more), slog.String("reason", most.String()),
			}, inForce(s.Pools[0])...)
			lines = append(lines, line{severity, "shedding", attrs})
		}
	}
	return lines
}

// overload counts what was refused for capacity, and finds the commonest reason.
func overload(visits [shed.ReasonCount]uint64) (n uint64, most shed.Reason) {
	for _, r := range []shed.Reason{
		shed.RouteCap, shed.StreamCap, shed.Capacity, shed.QueueFull, shed.QueueBytes, shed.PredictedWait,
		shed.WaitedTooLong, shed.DeadlineUnmeetable, shed.Evicted, shed.Pressure,
	} {
		n += visits[r]
		if visits[r] > visits[most] || most == shed.Admitted {
			most = r
		}
	}
	return n, most
}

// limit tells of a limit that is lower than when it was last told of; one that grew
// is told with the next cut.
func (g *gate) limit(lines []line, p admission.PoolStats, now time.Time) []line {
	if g.limits == nil {
		g.limits = map[string]int{}
	}
	last, known := g.limits[p.Name]
	switch {
	case !known || p.Limit > last:
		g.limits[p.Name] = p.Limit
	case p.Limit < last && g.may(topic{"limit", p.Name}, now):
		g.limits[p.Name] = p.Limit
		attrs := append([]slog.Attr{
			slog.String("pool", p.Name), slog.Int("from", last), slog.String("cause", p.Cause.String()),
		}, inForce(p)...)
		lines = append(lines, line{slog.LevelInfo, "limit cut", attrs})
	}
	return lines
}

func (g *gate) store(lines []line, s ratelimit.StoreStats, now time.Time) []line {
	if g.away == nil {
		g.away = map[string]bool{}
	}
	if g.away[s.Name] == s.Degraded || !g.may(topic{"store", s.Name}, now) {
		return lines
	}
	g.away[s.Name] = s.Degraded
	attrs := []slog.Attr{
		slog.String("store", s.Name), slog.Int("peers", s.Peers),
		slog.Float64("rate", float64(s.Rate)), slog.Float64("share", float64(s.ShareRate)),
	}
	if s.Degraded {
		return append(lines, line{slog.LevelWarn, "shared limit degraded", append(attrs, slog.String("why", s.Why))})
	}
	return append(lines, line{slog.LevelInfo, "shared limit restored", attrs})
}

func inForce(p admission.PoolStats) []slog.Attr {
	waiting := 0
	for _, n := range p.Waiting {
		waiting += n
	}
	return []slog.Attr{
		slog.Int("limit", p.Limit), slog.Int("in_flight", p.InFlight),
		slog.Int("waiting", waiting), slog.Int("bound", p.Bound), slog.Float64("drain_rate", p.DrainRate),
	}
}
