package window

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// clock says which window is in force. It follows the readings of many requests, one
// of which may be wrong by any amount.
type clock struct {
	window  atomic.Int64 // none before the first reading
	seen    atomic.Int64 // the latest reading, in seconds; up to one behind
	turning sync.Mutex
}

const (
	none = -1
	// maxLate is how far readings may overtake each other, in seconds. One further
	// back is that of a clock that was set right, and one that much ahead may be wrong.
	maxLate = 5 * 60
)

// zero is the instant from which [time.Time.Truncate] counts, and so windows are
// numbered: the same windows as httprate's.
var zero = time.Time{}.Unix()

// at returns the number of the window in force at now, how long it is, and how far it has
// come. A reading that is late by a little belongs to the window in force.
func (l *local) at(now time.Time, p *period) (window int64, length, elapsed time.Duration) {
	s := p.at(now)
	window = s.window
	seconds := now.Unix()
	ahead := seconds - l.seen.Load()
	if window != l.window.Load() || ahead > 1 || ahead < -maxLate {
		l.follow(window, seconds)
	}
	if in := l.window.Load(); in != window {
		return in, p.lengthOf(in), 0
	}
	return window, s.end.Sub(s.start), now.Sub(s.start)
}

// follow takes note of a reading, and turns to its window if that is another.
func (l *local) follow(window, seconds int64) {
	l.turning.Lock()
	defer l.turning.Unlock()
	in, seen := l.window.Load(), l.seen.Load()
	first, back := in == none, seconds < seen-maxLate
	switch {
	case first || window > in && seconds <= seen+maxLate:
		l.turn(window, (*localShard).turn)
	case window > in && !l.returns(window):
		l.turn(window, (*localShard).pass)
	case window > in || window < in && back:
		l.turn(window, (*localShard).jump)
	}
	if first || back || seconds > seen {
		l.seen.Store(seconds)
	}
}

// turn takes all shards to another window.
func (l *local) turn(window int64, to func(s *localShard, window int64)) {
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		before := len(s.now)
		to(s, window)
		s.extra = 0
		l.keys.Add(int64(len(s.now) - before))
		s.mu.Unlock()
	}
	l.window.Store(window)
}

// returns reports whether a reading far ahead ends a time when clocks were far back,
// rather than being told after a long pause: few requests came since those windows were
// left, beside those that came in them.
func (l *local) returns(window int64) bool {
	left, since := 0, 0
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		if i := s.find(window); i >= 0 {
			c := &s.kept[i]
			if left += c.passed; c.window != s.window+1 {
				left += c.earlier
			}
		}
		since += s.passed
		s.mu.Unlock()
	}
	return left > 0 && since <= 2*left
}

// counts are what keys used in a window and in the one before it.
type counts struct {
	window      int64
	now, before map[hash]int64
	passed      int  // how many requests came in this window
	earlier     int  // and in the one before
	also        bool // of counts that are kept: they count in the current window as well
}

// next returns empty counts for a later window.
func (c counts) next(window int64) counts {
	n := counts{window: window}
	if window == c.window+1 {
		n.before, n.earlier = c.now, c.passed
	}
	return n
}

// maxKept is how many other windows' counts a shard keeps for the case that the
// clock that left them was wrong.
const maxKept = 2

// turn goes on to the next window as time does.
func (s *localShard) turn(window int64) {
	s.pass(window)
	s.kept = nil
}

// pass is turn for a reading that may be wrong: the counts that are left are kept. What
// was used by clocks that were wrong counts in the window that ends.
func (s *localShard) pass(window int64) {
	for _, c := range s.kept {
		if c.also {
			s.merge(c)
		}
	}
	s.kept = slices.DeleteFunc(s.kept, func(c counts) bool { return c.also })
	s.leave()
	s.counts = s.kept[len(s.kept)-1].next(window)
}

// leave keeps the current counts beside the latest of the others.
func (s *localShard) leave() {
	s.kept = append(slices.Clip(s.kept), s.counts)
	s.kept = s.kept[max(len(s.kept)-maxKept, 0):]
}

// jump goes back, or returns to the counts that were left when clocks went back. What
// was used since, or in later windows, still counts: nothing is gained by that.
func (s *localShard) jump(window int64) {
	i := s.find(window)
	to := counts{window: window}
	if i >= 0 {
		if to = s.kept[i]; to.window != window {
			to = to.next(window)
		}
		s.kept = slices.Delete(slices.Clone(s.kept), i, i+1)
	}
	known := len(s.kept)
	s.leave()
	for j := range s.kept {
		since := i >= 0 && j+known+1-len(s.kept) >= i
		s.kept[j].also = since || i < 0 && s.kept[j].window > window
	}
	to.also = false
	s.counts = to
}

// find returns where the counts for window, or for the one before it, are kept.
func (s *localShard) find(window int64) int {
	return slices.IndexFunc(s.kept, func(c counts) bool { return c.window == window || c.window+1 == window })
}

// merge adds what was used in a window that a wrong clock named to the current one.
func (s *localShard) merge(c counts) {
	if s.now == nil && len(c.now) > 0 {
		s.now = make(map[hash]int64, len(c.now))
	}
	for key, n := range c.now {
		s.now[key] = min(s.now[key], maxCount) + min(n, maxCount)
	}
}

// used returns what decides about key.
func (s *localShard) used(key hash) (now, before int64, known bool) {
	now, known = s.now[key]
	for _, c := range s.kept {
		if c.also {
			now = min(now, maxCount) + min(c.now[key], maxCount)
		}
	}
	return now, s.before[key], known
}

// countsOf returns the counts of the given window, or nil when it is long over.
func (s *localShard) countsOf(window int64) *map[hash]int64 {
	found := s.counts.of(window)
	for i := range s.kept {
		if found == nil {
			found = s.kept[i].of(window)
		}
	}
	if found == nil && window > s.window {
		return &s.now // of a clock that was ahead: counted here since
	}
	return found
}

func (c *counts) of(window int64) *map[hash]int64 {
	switch window {
	case c.window:
		return &c.now
	case c.window - 1:
		return &c.before
	}
	return nil
}
