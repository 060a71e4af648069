package ratelimit

import "time"

// Feedback is implemented by limiters that pass on what one caller heard from the
// other side to everybody who shares the ceiling, such as one in a store. A caller
// that finds it leaves the adapting to the limiter: Take then refuses during a
// pause, and Policy returns the rate in force.
type Feedback interface {
	// Throttled tells that the service behind key asked, at now, for less. Nobody
	// takes from key before pause has passed, and the rate is multiplied by factor,
	// once per epoch of max(1 s, pause) however many callers tell it. It does not
	// block: a store is told in the background.
	Throttled(now time.Time, key Key, pause time.Duration, factor float64)
}
