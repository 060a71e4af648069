package account

import "time"

// hint is what a server said when it throttled a call: news that every process
// sharing the key should know.
type hint struct {
	fresh  bool          // the bucket has not heard it
	saying bool          // a call in flight carries it
	until  time.Duration // pause
	epoch  int64         // of the multiplier when it was said
	cut    float64       // the lowest factor asked for
}

// into adds the hint to a call.
func (h *hint) into(r *Request, t time.Duration) {
	r.Seen = -1
	if !h.fresh {
		return
	}
	h.saying = true
	r.Cut, r.Seen, r.Pause = h.cut, h.epoch, max(0, h.until-t)
}

// told settles what a call carried. Without an answer it is said again: the epoch
// keeps a second hearing from cutting twice.
func (h *hint) told(ok bool) {
	if ok && h.saying {
		h.fresh = false
	}
	h.saying = false
}
