package redisrate

import "time"

// hint is what a server said when it throttled a call: news that every process
// sharing the key should hear.
type hint struct {
	fresh bool
	until time.Duration // pause
	epoch int64         // of the multiplier when it was said
	cut   float64       // the lowest factor asked for
}

// into adds the hint to a call and forgets it.
func (h *hint) into(r *request, t time.Duration) {
	r.seen = -1
	if !h.fresh {
		return
	}
	r.cut, r.seen = h.cut, h.epoch
	r.pause = max(0, h.until-t)
	*h = hint{until: h.until}
}

// throttled pauses the key here at once, and in all processes with the next call.
func (a *account) throttled(t, pause time.Duration, factor float64) {
	if a.hint.fresh {
		factor = min(factor, a.hint.cut)
	}
	a.hint = hint{fresh: true, until: max(a.hint.until, t+pause), epoch: a.epoch, cut: factor}
	a.pause = max(a.pause, a.hint.until)
	a.next = min(a.next, t)
}
