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
}

const localShards = 64

type localShard struct {
	mu          sync.Mutex
	window      int64
	now, before map[hash]int64
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
	if l.useOwn(key, window, cost, admit) {
		return false
	}
	l.overflow.Add(1)
	l.useOwn(hash{}, window, cost, admit)
	return true
}

// useOwn is use for one count; it reports false when there is no room for it.
func (l *local) useOwn(key hash, window, cost int64, admit func(now, before int64) bool) bool {
	s := l.lock(key, window)
	defer s.mu.Unlock()
	now, known := s.now[key]
	if !known && key != (hash{}) && l.keys.Load() >= l.max.Load() {
		return false
	}
	if !admit(now, s.before[key]) {
		return true
	}
	if !known {
		l.keys.Add(1)
		if s.now == nil {
			s.now = make(map[hash]int64)
		}
	}
	s.now[key] = now + cost
	return true
}

// look returns the counts that decide about key in the given window.
func (l *local) look(key hash, window int64) (now, before int64) {
	now, before, known := l.lookAt(key, window)
	if !known && l.keys.Load() >= l.max.Load() {
		now, before, _ = l.lookAt(hash{}, window)
	}
	return now, before
}

func (l *local) lookAt(key hash, window int64) (now, before int64, known bool) {
	s := l.lock(key, window)
	defer s.mu.Unlock()
	now, known = s.now[key]
	return now, s.before[key], known
}

// adjust adds to what was admitted in the given window, or subtracts, if that still
// matters.
func (l *local) adjust(key hash, window, by int64) {
	s := l.lock(key, window)
	defer s.mu.Unlock()
	switch window {
	case s.window:
		adjust(s.now, key, by)
	case s.window - 1:
		adjust(s.before, key, by)
	}
}

// maxCount keeps the sum of two counts within an int64.
const maxCount = math.MaxInt64 / 2

func adjust(counts map[hash]int64, key hash, by int64) {
	if n, ok := counts[key]; ok {
		counts[key] = min(max(min(n, maxCount)+min(max(by, -maxCount), maxCount), 0), maxCount)
	}
}

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
	s.now, s.window = nil, window
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
