package ratelimit

// Stats are a limiter's numbers for gauges. Reading them costs a few atomic loads;
// limits shared through a store visit their keys.
type Stats struct {
	Keys      int    // buckets in memory now, within the bound
	Extra     int    // buckets beyond it: of keys charged after the fact while the table was full, or from before the bound was lowered
	Peak      int    // most buckets at once, within the bound
	MaxKeys   int    // the bound on buckets
	Overflow  uint64 // decisions made by the bucket that newcomers share at the bound
	Uncharged uint64 // charges after the fact that were lost: the key had no bucket, and there was no room for one
	Shadowed  uint64 // requests a limit in shadow would have refused

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
	s.Extra += o.Extra
	s.Peak += o.Peak
	s.MaxKeys += o.MaxKeys
	s.Overflow += o.Overflow
	s.Uncharged += o.Uncharged
	s.Shadowed += o.Shadowed
	s.Stores = append(s.Stores, o.Stores...)
}
