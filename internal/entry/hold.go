package entry

import (
	"time"

	"github.com/headgate-go/headgate/priority"
)

// Hold keeps slots for a level whose waiters run out of time. When the longest stay
// is shorter than the work, waiters of the top level leave between two releases, and
// the slot that they waited for would go to whatever comes next. So a slot that was
// taken while such a waiter ran out of time is kept, when it comes free, for the next
// arrival of that level: one mean gap between its arrivals per slot kept, one after
// the other. The strict order of levels then holds whatever the longest stay is.
//
// What stays idle for it is bounded to 1/50 of the slot time. The zero value is ready
// and keeps nothing. It is not safe for concurrent use, allocates nothing, and every
// method is O(1).
type Hold struct {
	level  priority.Level // whose waiters ran out of time
	missed time.Time      // the latest of them
	began  time.Time      // the first, of those that followed each other closely
	owed   int            // waiters that ran out of time and were not made up for
	kept   int            // free slots
	until  time.Time      // when the last of them is given up
	seen   time.Time      // idle is added up to here
	idle   time.Duration  // slot time spent since began
}

const (
	holdShare  = 50              // one part in so many of the slot time may be idle
	holdMemory = 5 * time.Second // misses further apart have nothing to do with each other
)

// Missed tells that a waiter of level l ran out of time while no higher level waited
// and so many slots were there.
func (h *Hold) Missed(now time.Time, l priority.Level, slots int) {
	if stale := now.Sub(h.missed) > holdMemory; stale || l > h.level {
		*h = Hold{level: l, began: now, seen: now}
	} else if l < h.level {
		return
	}
	h.missed = now
	h.owed = min(h.owed+1, slots)
}

// Owes reports whether a slot taken at admitted may have to be kept when it comes free:
// without a miss since then, [Hold.Freed] keeps nothing.
func (h *Hold) Owes(admitted time.Time) bool { return h.owed > 0 && admitted.Before(h.missed) }

// Freed tells that a slot, taken at admitted, came free with no waiter of the level
// to take it. gap is the mean time between two arrivals of that level; zero: not known.
func (h *Hold) Freed(now, admitted time.Time, gap time.Duration, slots int) {
	if gap <= 0 || !h.Owes(admitted) {
		return
	}
	h.spend(now)
	planned := h.idle + time.Duration((h.kept+1)*(h.kept+2)/2)*gap
	if planned*holdShare > time.Duration(slots)*(now.Sub(h.began)+holdMemory) {
		return
	}
	from := now
	if h.kept > 0 && h.until.After(now) {
		from = h.until
	}
	h.owed--
	h.kept++
	h.until = from.Add(gap)
}

// Level returns the level that slots are kept for.
func (h *Hold) Level() priority.Level { return h.level }

// Kept returns how many free slots work of level l has to leave alone at now.
func (h *Hold) Kept(now time.Time, l priority.Level) int {
	if h.kept == 0 || l >= h.level || !now.Before(h.until) {
		return 0
	}
	return h.kept
}

// Took tells that work of level l took a slot.
func (h *Hold) Took(now time.Time, l priority.Level) {
	if h.kept == 0 {
		return
	}
	h.spend(now)
	if h.kept > 0 && l >= h.level {
		h.kept--
	}
}

// spend accounts for the slots kept until now, and gives up those whose time is over.
func (h *Hold) spend(now time.Time) {
	end := now
	if h.until.Before(now) {
		end = h.until
	}
	h.idle += time.Duration(h.kept) * max(end.Sub(h.seen), 0)
	h.seen = now
	if !now.Before(h.until) {
		h.kept = 0
	}
}

// Until returns when the slots kept are given up, and whether there are any at now.
func (h *Hold) Until(now time.Time) (time.Time, bool) {
	return h.until, h.kept > 0 && now.Before(h.until)
}
