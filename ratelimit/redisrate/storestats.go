package redisrate

import (
	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/ratelimit"
)

// StoreStats implements ratelimit.Stored: the snapshot in the terms that metrics
// and the dashboard share.
func (l *Limiter) StoreStats() ratelimit.StoreStats {
	s := l.Snapshot()
	out := ratelimit.StoreStats{
		Name: s.Name, State: s.State.String(), Why: s.Why.String(), Since: s.Since,
		Degraded: s.Degraded(), Peers: s.Peers,
		Rate: rate.Limit(s.Rate), Burst: s.Burst,
		ShareRate: rate.Limit(s.ShareRate), ShareBurst: int(s.ShareBurst),
		Keys: s.Keys, AwayKeys: s.AwayKeys,
		CallTime: s.CallTime, Wasted: s.Wasted, Changes: s.Changes,
	}
	for why, n := range s.Calls {
		result := Why(why).String()
		if Why(why) == WhyNothing {
			result = "ok"
		}
		out.Calls = append(out.Calls, ratelimit.StoreCalls{Result: result, Count: n})
	}
	return out
}

var _ ratelimit.Stored = (*Limiter)(nil)
