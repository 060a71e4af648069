package window

import (
	"maps"
	"time"

	"github.com/go-chi/httprate"

	"github.com/headgate-go/headgate/ratelimit"
)

// Option changes a limiter at set-up.
type Option func(*settings)

type settings struct {
	name     string
	maxKeys  int
	plans    map[string]int
	counter  httprate.LimitCounter
	timeout  time.Duration
	fallback Away
}

func defaults() settings {
	return settings{name: "quota", maxKeys: ratelimit.DefaultMaxKeys, timeout: 100 * time.Millisecond}
}

// Name names the limit in headers, metrics and logs. The default is "quota".
func Name(name string) Option { return func(s *settings) { s.name = name } }

// MaxKeys bounds how many keys are counted in a window; further ones share one
// count. The default is [ratelimit.DefaultMaxKeys].
func MaxKeys(n int) Option { return func(s *settings) { s.maxKeys = n } }

// Plans gives the keys of a plan a quota of their own: zero admits nothing, and
// [Unlimited] everything. Keys of other plans keep the limiter's quota. The map is
// copied.
func Plans(quotas map[string]int) Option {
	return func(s *settings) { s.plans = maps.Clone(quotas) }
}

// Counter counts in c, which may be shared by many processes: any counter made for
// httprate. It is told the quota and the length at set-up.
func Counter(c httprate.LimitCounter) Option { return func(s *settings) { s.counter = c } }

// Timeout bounds how long a decision waits for a foreign counter. The default is
// 100 ms.
func Timeout(d time.Duration) Option { return func(s *settings) { s.timeout = d } }

// Fallback says who decides while the foreign counter is slow or away.
func Fallback(a Away) Option { return func(s *settings) { s.fallback = a } }

// Away is a policy for a counter that does not answer.
type Away uint8

// What happens without an answer.
const (
	Local  Away = iota // this process' own count decides
	Open               // every request passes
	Closed             // no request passes
)
