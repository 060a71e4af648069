package window

import (
	"math"
	"time"

	"github.com/headgate-go/headgate/ratelimit"
)

// Undo implements [ratelimit.Undoer]. A foreign counter is told in the background,
// by a negative increment; one that cannot do that keeps the count.
func (l *Limiter) Undo(now time.Time, g ratelimit.Grant) { l.Adjust(now, g, -g.Cost) }

// Adjust implements [ratelimit.Adjuster]: the window in which the grant was made is
// charged by more, or given back at most what it was charged, as long as it counts.
// A charge always counts against the key itself, beyond Options.MaxKeys too if need be, and
// never against the count that keys share at the bound. A foreign counter is told in
// the background.
func (l *Limiter) Adjust(_ time.Time, g ratelimit.Grant, by int) {
	if l.err != nil || g.Cost < 1 || by == 0 {
		return
	}
	by = int(min(int64(max(by, -g.Cost)), mostAtOnce))
	window, source := unmark(g.Mark)
	c := l.counts.local
	key := c.hash(g.Key.Space, g.Key.ID)
	switch {
	case by >= 0:
		c.charge(key, window, int64(by))
	case source == ratelimit.SourceOverflow:
		c.refund(hash{}, window, int64(-by))
	default:
		c.refund(key, window, int64(-by))
	}
	if source == ratelimit.SourceDirect && l.counts.remote != nil {
		l.counts.remote.adjust(g.Key, window, by)
	}
}

// mostAtOnce bounds one charge, so that a foreign counter's int does not overflow.
const mostAtOnce = min(1<<50, math.MaxInt/4)

func mark(window int64, s ratelimit.Source) uint64 { return uint64(window)<<8 | uint64(s) }

func unmark(m uint64) (int64, ratelimit.Source) { return int64(m) >> 8, ratelimit.Source(m & 0xff) }
