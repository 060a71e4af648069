package redisrate

import (
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/ratelimit"
)

// table finds entries by key. It is bounded: when a part of it is full, a key that
// loses nothing is forgotten for the newcomer.
type table struct {
	seed   maphash.Seed
	fresh  func(ratelimit.Key) *entry
	shards [tableShards]shard
	room   int // entries in a shard
	count  atomic.Int64
	peak   atomic.Int64
	full   atomic.Uint64 // newcomers that found no room
}

const (
	tableShards = 16
	tableLook   = 16 // entries looked at for one to forget
)

type id struct{ space, id string }

type shard struct {
	mu sync.RWMutex
	m  map[id]*entry
}

func newTable(maxKeys int, fresh func(ratelimit.Key) *entry) *table {
	t := &table{seed: maphash.MakeSeed(), fresh: fresh, room: max(1, maxKeys/tableShards)}
	for i := range t.shards {
		t.shards[i].m = map[id]*entry{}
	}
	return t
}

// get returns key's entry, made fresh if there is none; nil if there is no room.
func (t *table) get(key ratelimit.Key, now time.Duration) *entry {
	s := &t.shards[maphash.String(t.seed, key.ID)%tableShards]
	k := id{key.Space, key.ID}
	s.mu.RLock()
	e := s.m[k]
	s.mu.RUnlock()
	if e != nil {
		return e
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e = s.m[k]; e != nil {
		return e
	}
	if len(s.m) >= t.room && !t.forgetLocked(s, now) {
		t.full.Add(1)
		return nil
	}
	e = t.fresh(key)
	s.m[k] = e
	if n := t.count.Add(1); n > t.peak.Load() {
		t.peak.Store(n) // close enough: two newcomers may race by one
	}
	return e
}

// forgetLocked drops an idle entry of a few, which the map picks at random.
func (t *table) forgetLocked(s *shard, now time.Duration) bool {
	look := tableLook
	for k, e := range s.m {
		if e.mu.TryLock() {
			idle := e.waiters == 0 && !e.timer && e.account.Idle(now)
			e.mu.Unlock()
			if idle {
				delete(s.m, k)
				t.count.Add(-1)
				return true
			}
		}
		if look--; look == 0 {
			break
		}
	}
	return false
}

// any returns some entry, or nil.
func (t *table) any() *entry {
	for i := range t.shards {
		s := &t.shards[(i+rand.IntN(tableShards))%tableShards]
		s.mu.RLock()
		for _, e := range s.m {
			s.mu.RUnlock()
			return e
		}
		s.mu.RUnlock()
	}
	return nil
}

// each visits all entries, one lock at a time.
func (t *table) each(f func(*entry)) {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.RLock()
		list := make([]*entry, 0, len(s.m))
		for _, e := range s.m {
			list = append(list, e)
		}
		s.mu.RUnlock()
		for _, e := range list {
			f(e)
		}
	}
}

// find returns key's entry, or nil.
func (t *table) find(key ratelimit.Key) *entry {
	s := &t.shards[maphash.String(t.seed, key.ID)%tableShards]
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.m[id{key.Space, key.ID}]
}
