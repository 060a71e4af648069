package account

import (
	"time"

	"github.com/headgate-go/headgate/ratelimit"
)

// Config is what an account is made with. It is not changed after set-up.
type Config struct {
	Limit    Limit
	Law      Law
	OnOutage ratelimit.Fail // what decides while the store is away
	MinPeers int            // least number of processes to divide by while the store is away
	Portion  float64        // part of the ceiling that all shares make up, in (0, 1]
	believe  time.Duration  // how long the store's last word is believed
}

// Defaults returns everything but the limit.
func Defaults() Config {
	return Config{
		Law:      Law{Tau: 50 * time.Millisecond, Ahead: 50 * time.Millisecond, Trip: 500 * time.Millisecond},
		MinPeers: 1,
		Portion:  1,
		believe:  5 * time.Second,
	}
}
