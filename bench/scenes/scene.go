package scenes

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/bench/rig"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/ratelimit/redisrate"
)

// Scene is a store, and what becomes of it.
type Scene struct {
	Name, Title string
	Program     string               // of the server; empty: redis-server
	Trip        time.Duration        // of the link, where it is the subject
	Least       time.Duration        // its shortest length
	Forgets     bool                 // the store may lose what it knew: one burst more is within the bound
	Keys        int                  // of each limit; 0: 1
	stage       func(*stage) error   // starts servers
	away, back  func(*stage) error   // nil: nothing happens
	hold        func() time.Duration // between away and back; nil: a quarter of the length
}

// processes share each ceiling.
const processes = 3

// stage is where a scene plays.
type stage struct {
	*rig.Rig
	server    *rig.Server
	link      *rig.Link
	cluster   *rig.Cluster
	sentinels *rig.Sentinels
	fleets    []*fleet
	client    func(process int) redis.UniversalClient
}

// limit is one ceiling for each key.
type limit struct {
	name  string
	rate  float64
	burst int
}

// Both ways to share a ceiling: the first is leased, the second a call for each
// admission.
func limits(keys int) []limit {
	if keys > 1 {
		return []limit{{"leased", 150, 75}, {"each", 30, 30}}
	}
	return []limit{{"leased", 300, 150}, {"each", 40, 40}}
}

// fleet is the limiters of all processes for one limit.
type fleet struct {
	limit
	keys []string
	all  []*redisrate.Limiter
}

func (s *stage) open(l limit, keys []string) (*fleet, error) {
	f := &fleet{limit: l, keys: keys}
	for i := range processes {
		one := redisrate.PerKey(s.client(i), rate.Limit(l.rate), l.burst, redisrate.Options{
			Name: l.name, MinPeers: processes, Logger: slog.New(slog.DiscardHandler),
		})
		if err := one.Validate(); err != nil {
			return nil, err
		}
		f.all = append(f.all, one)
	}
	f.meet()
	return f, nil
}

// meet waits until the processes know of each other, and what that took from the keys is
// there again. A store that does not let them shows in the figures.
func (f *fleet) meet() {
	for _, l := range f.all {
		for _, key := range f.keys {
			l.Take(context.Background(), time.Now(), ratelimit.Key{ID: key}, 1, 0)
		}
	}
	_ = rig.Until(context.Background(), 5*time.Second, "the processes know of each other", func() bool {
		return !slices.ContainsFunc(f.all, func(l *redisrate.Limiter) bool {
			st := l.StoreStats()
			return st.Peers != processes || st.Degraded
		})
	})
	time.Sleep(time.Duration(processes * float64(time.Second) / f.rate))
}

func (f *fleet) close() {
	for _, l := range f.all {
		l.Close()
	}
}

// degraded counts the processes that do not share the ceiling at this moment.
func (f *fleet) degraded() (n int) {
	for _, l := range f.all {
		if l.StoreStats().Degraded {
			n++
		}
	}
	return n
}

// changes counts the changes of state, calls what the store answered.
func (f *fleet) counts() (changes, calls uint64) {
	for _, l := range f.all {
		st := l.StoreStats()
		changes += st.Changes
		for _, c := range st.Calls {
			calls += c.Count
		}
	}
	return changes, calls
}

// keysFor names n keys of a limit. In a cluster each lives with another primary.
func (s *stage) keysFor(l limit, n int) ([]string, error) {
	if s.cluster == nil {
		return []string{"all"}, nil
	}
	keys, homes := make([]string, 0, n), map[int]int{}
	for i := 0; len(keys) < n; i++ {
		id := fmt.Sprint("k", i)
		slot, err := s.cluster.Slot(bucket(l.name, id))
		if err != nil {
			return nil, err
		}
		if home := s.cluster.Home(slot); homes[home] < (n+2)/3 {
			homes[home]++
			keys = append(keys, id)
		}
	}
	return keys, nil
}

// bucket is the store's name for a key without a space, as docs/replicas.md has it.
func bucket(name, id string) string { return "headgate:v1:{" + name + "::" + id + "}:b" }
