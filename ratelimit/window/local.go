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
	clock
	max      atomic.Int64
	seeds    [2]maphash.Seed
	shards   [localShards]localShard
	keys     atomic.Int64 // in the current window
	overflow atomic.Uint64
	lost     atomic.Uint64 // charges for which there was no room
}

const localShards = 64

type localShard struct {
	mu sync.Mutex
	counts
	kept  []counts // of other windows, where a clock may have been wrong
	extra int      // counts beyond the bound in this window, of keys charged afterwards
}

// hash is a seeded 128-bit hash of a key's text. The zero hash is the shared count.
type hash [2]uint64

func newLocal(maxKeys int) *local {
	l := &local{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
	l.max.Store(int64(maxKeys))
	l.window.Store(none)
	return l
}

func (l *local) hash(space, id string) hash {
	h := maphash.String(l.seeds[0], space)
	return hash{maphash.String(l.seeds[0], id) ^ (h<<1 | 1), maphash.String(l.seeds[1], id) + h}
}

// admit decides by what a key used, and says whether the window turned since it was
// looked up.
type admit func(now, before int64, turned bool) bool

// use adds cost to key's count in the given window when ok agrees with what is there.
// It returns the window that it counted in, and whether that was the shared count.
func (l *local) use(key hash, window, cost int64, ok admit) (in int64, shared bool) {
	own, in, fits := l.useOwn(key, window, cost, ok)
	if fits {
		return in, false
	}
	l.overflow.Add(1)
	// What the key itself used before counts too, or a debt would end with its window.
	_, in, _ = l.useOwn(hash{}, window, cost, func(now, before int64, turned bool) bool {
		return ok(now, max(before, own), turned)
	})
	return in, true
}

// useOwn is use for one count; where there is no room for it, it returns what the
// key used in the window before, and false.
func (l *local) useOwn(key hash, window, cost int64, ok admit) (before, in int64, fits bool) {
	s := l.lock(key)
	defer s.mu.Unlock()
	now, before, known := s.used(key)
	if !known && key != (hash{}) && l.full() {
		return before, s.window, false
	}
	if !ok(now, before, window != s.window) {
		return before, s.window, true
	}
	if !known {
		l.keys.Add(1)
		if s.now == nil {
			s.now = make(map[hash]int64)
		}
	}
	s.now[key] += cost
	s.passed++
	return before, s.window, true
}

func (l *local) full() bool { return l.keys.Load() >= l.max.Load() }

// note adds what another counter admitted to key, where it has a count or room for one.
func (l *local) note(key hash, cost int64) {
	l.useOwn(key, none, cost, func(int64, int64, bool) bool { return true })
}

// look returns the counts that decide about key.
func (l *local) look(key hash) (now, before int64) {
	now, before, known := l.lookAt(key)
	if known || !l.full() {
		return now, before
	}
	own := before
	now, before, _ = l.lookAt(hash{})
	return now, max(before, own)
}

func (l *local) lookAt(key hash) (now, before int64, known bool) {
	s := l.lock(key)
	defer s.mu.Unlock()
	return s.used(key)
}

// refund subtracts from what was admitted in the given window, if that still matters.
func (l *local) refund(key hash, window, by int64) {
	s := l.lock(key)
	defer s.mu.Unlock()
	counts := s.countsOf(window)
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
	s := l.lock(key)
	defer s.mu.Unlock()
	counts := s.countsOf(window)
	if counts == nil {
		return
	}
	n, known := (*counts)[key]
	current := counts == &s.now
	switch {
	case known:
	case !l.roomLocked(s, current):
		l.lost.Add(1)
		return
	case *counts == nil:
		*counts = make(map[hash]int64)
	}
	if !known && current {
		l.keys.Add(1)
	}
	(*counts)[key] = min(n, maxCount) + min(by, maxCount)
}

// roomLocked reports whether one more count may be made for a charge: within the bound
// in the current window, or as one of an eighth more.
func (l *local) roomLocked(s *localShard, current bool) bool {
	if current && !l.full() {
		return true
	}
	if int64(s.extra) >= l.max.Load()/8/localShards+8 {
		return false
	}
	s.extra++
	return true
}

// maxCount keeps the sum of two counts within an int64.
const maxCount = math.MaxInt64 / 4

func (l *local) lock(key hash) *localShard {
	s := &l.shards[key[0]%localShards]
	s.mu.Lock()
	return s
}
