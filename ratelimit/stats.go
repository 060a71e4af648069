package ratelimit

// Stats are a limiter's numbers for gauges. Reading them costs a few atomic loads;
// limits shared through a store visit their keys.
type Stats struct {
	Keys     int    // buckets in memory now
	Peak     int    // most buckets at once
	MaxKeys  int    // the bound on buckets
	Overflow uint64 // decisions made by the bucket that newcomers share at the bound
	Shadowed uint64 // requests a limit in shadow would have refused

	Stores []StoreStats // of the limits shared through a store
}

// Counter is implemented by limiters that have Stats.
type Counter interface {
	Stats() Stats
}

// StatsOf returns the stats of l, or zeros when it has none.
func StatsOf(l Limiter) Stats {
	switch l := l.(type) {
	case Counter:
		return l.Stats()
	case Stored:
		store := l.StoreStats()
		return Stats{Keys: store.Keys, Stores: []StoreStats{store}}
	}
	return Stats{}
}

// Add makes s the sum of both.
func (s *Stats) Add(o Stats) {
	s.Keys += o.Keys
	s.Peak += o.Peak
	s.MaxKeys += o.MaxKeys
	s.Overflow += o.Overflow
	s.Shadowed += o.Shadowed
	s.Stores = append(s.Stores, o.Stores...)
}
