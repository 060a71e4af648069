package overhead

import (
	"net/http"
	"sync"

	"golang.org/x/time/rate"
)

// Names that others are compared with.
const (
	barePieces  = "bare/pieces"  // of admitted requests
	bareRefusal = "bare/refusal" // of refused ones
	bareSyncMap = "bare/sync.Map"
)

// bare is what a service would write by hand.
func bare() []*subject {
	return []*subject{
		{name: "bare/loop", does: "the measurement itself", bare: true, benches: []string{admitted},
			build: func(terms) (*instance, error) {
				return &instance{ask: func(*sender) int { return http.StatusNoContent }}, nil
			}},
		{name: "bare/handler", does: "the handler alone", bare: true, benches: []string{admitted},
			build: func(terms) (*instance, error) { return &instance{ask: over(served)}, nil }},
		{name: "bare/map+mutex", does: "`rate.Limiter`s in a map under a mutex", bare: true, benches: []string{admitted},
			build: func(t terms) (*instance, error) {
				l := newLocked(t)
				return &instance{ask: func(c *sender) int { return status(l.allow(c.key), http.StatusTooManyRequests) }, keys: l.len}, nil
			}},
		{name: bareSyncMap, does: "`rate.Limiter`s in a `sync.Map`", bare: true, benches: []string{admitted},
			build: func(t terms) (*instance, error) {
				l := &synced{terms: t}
				return &instance{ask: func(c *sender) int { return status(l.allow(c.key), http.StatusTooManyRequests) }, keys: l.len}, nil
			}},
		{name: "bare/semaphore", does: "a channel as a semaphore", bare: true, benches: []string{admitted},
			build: func(t terms) (*instance, error) {
				s := newSemaphore(t)
				return &instance{ask: func(*sender) int {
					if !s.enter() {
						return http.StatusServiceUnavailable
					}
					s.leave()
					return http.StatusNoContent
				}}, nil
			}},
		{name: barePieces, does: "map+mutex, then the semaphore", bare: true, benches: []string{admitted}, build: newPieces},
		{name: bareRefusal, does: "the pieces, then Retry-After and `http.Error`", benches: []string{refused429, refused503},
			headers: []string{"Retry-After"}, build: newHandWritten},
	}
}

func status(ok bool, refusal int) int {
	if ok {
		return http.StatusNoContent
	}
	return refusal
}

// locked is a map of limiters under a mutex.
type locked struct {
	terms
	mu       sync.Mutex
	limiters map[string]*rate.Limiter
}

func newLocked(t terms) *locked { return &locked{terms: t, limiters: map[string]*rate.Limiter{}} }

func (l *locked) allow(key string) bool {
	l.mu.Lock()
	limiter := l.limiters[key]
	if limiter == nil {
		limiter = rate.NewLimiter(rate.Limit(l.perSecond), l.burst)
		l.limiters[key] = limiter
	}
	l.mu.Unlock()
	return limiter.Allow()
}

func (l *locked) len() int { return len(l.limiters) }

// synced is the same in a sync.Map.
type synced struct {
	terms
	limiters sync.Map
}

func (s *synced) allow(key string) bool {
	l, ok := s.limiters.Load(key)
	if !ok {
		l, _ = s.limiters.LoadOrStore(key, rate.NewLimiter(rate.Limit(s.perSecond), s.burst))
	}
	return l.(*rate.Limiter).Allow()
}

func (s *synced) len() (n int) {
	s.limiters.Range(func(any, any) bool {
		n++
		return true
	})
	return n
}

type semaphore chan struct{}

func newSemaphore(t terms) semaphore {
	s := make(semaphore, t.slots)
	if t.full {
		for range t.slots {
			s <- struct{}{}
		}
	}
	return s
}

func (s semaphore) enter() bool {
	select {
	case s <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s semaphore) leave() { <-s }

func newPieces(t terms) (*instance, error) {
	limiters, slots := newLocked(t), newSemaphore(t)
	return &instance{keys: limiters.len, ask: func(c *sender) int {
		if !limiters.allow(c.key) {
			return http.StatusTooManyRequests
		}
		if !slots.enter() {
			return http.StatusServiceUnavailable
		}
		slots.leave()
		return http.StatusNoContent
	}}, nil
}

// newHandWritten answers the client as cheaply as a refusal that says when to come
// back can.
func newHandWritten(t terms) (*instance, error) {
	limiters, slots := newLocked(t), newSemaphore(t)
	refuse := func(w http.ResponseWriter, status int) {
		w.Header().Set("Retry-After", "1")
		http.Error(w, http.StatusText(status), status)
	}
	return &instance{keys: limiters.len, ask: over(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !limiters.allow(r.Header.Get(keyHeader)) {
			refuse(w, http.StatusTooManyRequests)
			return
		}
		if !slots.enter() {
			refuse(w, http.StatusServiceUnavailable)
			return
		}
		defer slots.leave()
		served.ServeHTTP(w, r)
	}))}, nil
}
