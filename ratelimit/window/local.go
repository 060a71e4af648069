package window

import (
	"hash/maphash"
	"math"
	"sync"
	"sync/atomic"
)

// local counts in this process: two maps a shard, for the current window and the
// one before. When a window ends its map is dropped whole, so there is nothing to
// clean up. Keys are bounded; at the bound newcomers share one count.
type local struct {
	max      atomic.Int64
	seeds    [2]maphash.Seed
	shards   [localShards]localShard
	keys     atomic.Int64 // in the current window
	overflow atomic.Uint64
	lost     atomic.Uint64 // charges for which there was no room
}

const localShards = 64

type localShard struct {
	mu          sync.Mutex
	window      int64
	now, before map[hash]int64
	extra       int // counts beyond the bound in this window, of keys charged afterwards
}

// hash is a seeded 128-bit hash of a key's text. The zero hash is the shared count.
type hash [2]uint64

func newLocal(maxKeys int) *local {
	l := &local{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
	l.max.Store(int64(maxKeys))
	return l
}

func (l *local) hash(space, id string) hash {
	h := maphash.String(l.seeds[0], space)
	return hash{maphash.String(l.seeds[0], id) ^ (h<<1 | 1), maphash.String(l.seeds[1], id) + h}
}

// use adds cost to key's count in the given window when admit agrees with what is
// there. It reports whether that was the shared count.
func (l *local) use(key hash, window, cost int64, admit func(now, before int64) bool) (shared bool) {
	own, fits := l.useOwn(key, window, cost, admit)
	if fits {
		return false
	}
	l.overflow.Add(1)
	// What the key itself used before counts too, or a debt would end with its window.
	l.useOwn(hash{}, window, cost, func(now, before int64) bool { return admit(now, max(before, own)) })
	return true
}

// useOwn is use for one count; where there is no room for it, it returns what the
// key used in the window before, and false.
func (l *local) useOwn(key hash, window, cost int64, admit func(now, before int64) bool) (before int64, fits bool) {
	s := l.lock(key, window)
	defer s.mu.Unlock()
	now, known := s.now[key]
	before = s.before[key]
	if !known && key != (hash{}) && l.full() {
		return before, false
	}
	if !admit(now, before) {
		return before, true
	}
	if !known {
		l.keys.Add(1)
		if s.now == nil {
			s.now = make(map[hash]int64)
		}
	}
	s.now[key] = now + cost
	return before, true
}

func (l *local) full() bool { return l.keys.Load() >= l.max.Load() }

// note adds what another counter admitted to key, where it has a count or room for one.
func (l *local) note(key hash, window, cost int64) {
	l.useOwn(key, window, cost, func(int64, int64) bool { return true })
}

// look returns the counts that decide about key in the given window.
func (l *local) look(key hash, window int64) (now, before int64) {
	now, before, known := l.lookAt(key, window)
	if known || !l.full() {
		return now, before
	}
	own := before
	now, before, _ = l.lookAt(hash{}, window)
	return now, max(before, own)
}

func (l *local) lookAt(key hash, window int64) (now, before int64, known bool) {
	s := l.lock(key, window)
	defer s.mu.Unlock()
	now, known = s.now[key]
	return now, s.before[key], known
}

// refund subtracts from what was admitted in the given window, if that still matters.
func (l *local) refund(key hash, window, by int64) {
	s := l.lock(key, window)
	defer s.mu.Unlock()
	counts := s.counts(window)
	if counts == nil {
		return
	}
	if n, ok := (*counts)[key]; ok {
		(*counts)[key] = max(n-by, 0)
	}
}

// charge adds to what key used in the given window, if that still matters. A key
// that has no count gets one: the debt must not reach the count that others share.
func (l *local) charge(key hash, window, by int64) {
	s := l.lock(key, window)
	defer s.mu.Unlock()
	counts := s.counts(window)
	if counts == nil {
		return
	}
	n, known := (*counts)[key]
	switch {
	case known:
	case !l.roomLocked(s, window):
		l.lost.Add(1)
		return
	case *counts == nil:
		*counts = make(map[hash]int64)
	}
	if !known && window == s.window {
		l.keys.Add(1)
	}
	(*counts)[key] = min(n, maxCount) + min(by, maxCount)
}

// roomLocked reports whether one more count may be made for a charge in the given
// window: within the bound, or as one of an eighth more.
func (l *local) roomLocked(s *localShard, window int64) bool {
	if window == s.window && !l.full() {
		return true
	}
	if int64(s.extra) >= l.max.Load()/8/localShards+8 {
		return false
	}
	s.extra++
	return true
}

// counts returns the counts of the given window, or nil when it is long over.
func (s *localShard) counts(window int64) *map[hash]int64 {
	switch window {
	case s.window:
		return &s.now
	case s.window - 1:
		return &s.before
	}
	return nil
}

// maxCount keeps the sum of two counts within an int64.
const maxCount = math.MaxInt64 / 4

// lock returns key's shard, locked and turned to the given window. A window that is
// over stays over: a clock that goes back finds the newer counts.
func (l *local) lock(key hash, window int64) *localShard {
	s := &l.shards[key[0]%localShards]
	s.mu.Lock()
	l.turnLocked(s, window)
	return s
}

func (l *local) turnLocked(s *localShard, window int64) {
	if window <= s.window {
		return
	}
	s.before = s.now
	if window > s.window+1 {
		s.before = nil
	}
	l.keys.Add(-int64(len(s.now)))
	s.now, s.window, s.extra = nil, window, 0
}

// turn drops what is over in all shards, at the first request of a window.
func (l *local) turn(window int64) {
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		l.turnLocked(s, window)
		s.mu.Unlock()
	}
}
