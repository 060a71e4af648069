package logs

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Often tells of what may happen at every request, at most once per kind and interval,
// and then how often it was. The kinds come from a closed list. It is safe for
// concurrent use.
type Often struct {
	log   *slog.Logger
	every time.Duration

	mu    sync.Mutex
	kinds map[string]*told
}

// told is one kind's.
type told struct {
	last   time.Time
	silent int // times since that were not told
}

// NewOften returns an Often that writes to log.
func NewOften(log *slog.Logger, every time.Duration) *Often {
	return &Often{log: log, every: every, kinds: map[string]*told{}}
}

// Warn writes a line about kind unless one was written a short while ago.
func (o *Often) Warn(now time.Time, kind, message string, args ...any) {
	silent, ok := o.allow(now, kind)
	if !ok {
		return
	}
	if silent > 0 {
		args = append(args, "times_since", silent)
	}
	o.log.Warn(message, args...)
}

func (o *Often) allow(now time.Time, kind string) (silent int, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	k := o.kinds[kind]
	if k == nil {
		k = new(told)
		o.kinds[kind] = k
	} else if now.Sub(k.last) < o.every {
		k.silent++
		return 0, false
	}
	silent = k.silent
	*k = told{last: now}
	return silent, true
}

// Handler returns a handler for what a library logs by itself: all of it is one kind.
func (o *Often) Handler(kind string) slog.Handler { return &handler{o.log.Handler(), o, kind} }

type handler struct {
	slog.Handler
	often *Often
	kind  string
}

// Handle passes on the record unless one was passed on a short while ago.
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	silent, ok := h.often.allow(r.Time, h.kind)
	if !ok {
		return nil
	}
	if silent > 0 {
		r.AddAttrs(slog.Int("times_since", silent))
	}
	return h.Handler.Handle(ctx, r)
}
