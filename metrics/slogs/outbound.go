package slogs

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/outbound/pacer"
)

// transport is what was told of one transport.
type transport struct {
	mu      sync.Mutex
	slowed  time.Time // when last told
	spent   time.Time
	slowing int // since then
}

type outboundLog struct{ *Log }

// Attach has nothing to read: what changes is told by events.
func (l outboundLog) Attach(string, func() pacer.Stats) {}

// Observe tells of a rate that was cut or a pause that began, and of a retry budget
// that is spent; at most once in every Options.Every each.
func (l outboundLog) Observe(e outbound.Event) {
	switch {
	case e.Type == outbound.EventSlowed:
		l.slowed(e, time.Now())
	case e.Type == outbound.EventStopped && e.Stop == outbound.StopBudgetSpent:
		l.spent(e, time.Now())
	}
}

func (l outboundLog) of(name string) *transport {
	t, ok := l.transports.Load(name)
	if !ok {
		t, _ = l.transports.LoadOrStore(name, new(transport))
	}
	return t.(*transport)
}

func (l outboundLog) slowed(e outbound.Event, now time.Time) {
	t := l.of(e.Transport)
	t.mu.Lock()
	t.slowing++
	times, news := t.slowing, now.Sub(t.slowed) >= l.opts.Every
	if news {
		t.slowed, t.slowing = now, 0
	}
	t.mu.Unlock()
	if news {
		l.logger.LogAttrs(context.Background(), slog.LevelWarn, "slowed down by the other side",
			slog.String("transport", e.Transport), slog.String("service", e.Key.Space), slog.String("operation", e.Key.ID),
			slog.String("kind", e.Kind.String()), slog.Float64("rate", float64(e.Rate)),
			slog.Float64("multiplier", e.Multiplier), slog.Duration("pause", e.Wait), slog.Int("times", times))
	}
}

func (l outboundLog) spent(e outbound.Event, now time.Time) {
	t := l.of(e.Transport)
	t.mu.Lock()
	news := now.Sub(t.spent) >= l.opts.Every
	if news {
		t.spent = now
	}
	t.mu.Unlock()
	if news {
		l.logger.LogAttrs(context.Background(), slog.LevelWarn, "retry budget spent",
			slog.String("transport", e.Transport), slog.String("service", e.Key.Space), slog.String("operation", e.Key.ID))
	}
}

var _ outbound.Observer = outboundLog{}
