package redisrate

import "time"

// hint is what a server said when it throttled a call: news that every process
// sharing the key should hear.
type hint struct {
	fresh  bool          // the bucket has not heard it
	saying bool          // a call in flight carries it
	until  time.Duration // pause
	epoch  int64         // of the multiplier when it was said
	cut    float64       // the lowest factor asked for
}

// into adds the hint to a call.
func (h *hint) into(r *request, t time.Duration) {
	r.seen = -1
	if !h.fresh {
		return
	}
	h.saying = true
	r.cut, r.seen, r.pause = h.cut, h.epoch, max(0, h.until-t)
}

// told settles what a call carried. Without an answer it is said again: the epoch
// keeps a second hearing from cutting twice.
func (h *hint) told(ok bool) {
	if ok && h.saying {
		h.fresh = false
	}
	h.saying = false
}

// throttled pauses the key here at once, and in all processes with the next call.
func (a *account) throttled(t, pause time.Duration, factor float64) {
	h := &a.hint
	if h.fresh {
		factor = min(factor, h.cut)
	}
	a.hint = hint{fresh: true, until: max(h.until, t+pause), epoch: a.epoch, cut: factor}
	a.pause = max(a.pause, a.hint.until)
	a.next = min(a.next, t)
}
