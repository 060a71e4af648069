package overhead

import (
	"net/http"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/go-kratos/aegis/ratelimit"
	"github.com/go-kratos/aegis/ratelimit/bbr"
	"github.com/zeromicro/go-zero/core/load"
	"github.com/zeromicro/go-zero/core/logx"
	"github.com/zeromicro/go-zero/core/stat"
)

// shedders are the libraries that bound work in flight. None knows a key.
func shedders() []*subject {
	slots := []string{admitted, refused503}
	return []*subject{
		{name: "chi Throttle", does: "a fixed number in flight; no caller, no rate", benches: slots, build: newThrottle},
		{name: "failsafe-go bulkhead", does: "a fixed number in flight; no caller, no rate", benches: slots, status: http.StatusTooManyRequests, build: newBulkhead},
		{name: "failsafe-go adaptive", does: "an adaptive number in flight; no caller, no rate", benches: slots, status: http.StatusTooManyRequests, build: newAdaptive},
		{name: "aegis BBR", does: "sheds when the CPU is busy; no caller, no rate", benches: slots, build: newBBR},
		{name: "go-zero shedder", does: "sheds when the CPU is busy; no caller, no rate", benches: slots, build: newGoZero},
	}
}

func newThrottle(t terms) (*instance, error) {
	begun, end := make(chan struct{}), make(chan struct{})
	handler := served
	if t.full {
		handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			begun <- struct{}{}
			<-end
		})
	}
	h := middleware.ThrottleWithOpts(middleware.ThrottleOpts{
		Limit: t.slots, StatusCode: http.StatusServiceUnavailable,
		RetryAfterFn: func(bool) time.Duration { return time.Second },
	})(handler)
	if t.full {
		for range t.slots {
			c := newCaller([]string{"held"}, 0)
			go h.ServeHTTP(&c.w, c.r)
			<-begun
		}
	}
	return &instance{ask: over(h), close: func() { close(end) }}, nil
}

func newBulkhead(t terms) (*instance, error) {
	b := bulkhead.New[*http.Response](uint(t.slots))
	if t.full {
		for range t.slots {
			b.TryAcquirePermit()
		}
	}
	return newFailsafe(b), nil
}

func newAdaptive(t terms) (*instance, error) {
	n := uint(t.slots)
	l := adaptivelimiter.NewBuilder[*http.Response]().WithLimits(min(n, 20), n, min(n, 20)).Build()
	if t.full {
		for range t.slots {
			l.TryAcquirePermit()
		}
	}
	return newFailsafe(l), nil
}

func newFailsafe(p failsafe.Policy[*http.Response]) *instance {
	return &instance{ask: over(failsafehttp.NewHandler(served, p))}
}

// How busy the CPU has to be before the shedders that look at it do anything, in
// thousandths: never, so that requests are admitted on a busy machine too; or always.
const never, always = 1_000_000, 0

// heldBySignal is how much work is in flight when the shedders that look at the CPU
// are to refuse: more than they believe can be finished.
const heldBySignal = 1000

func newBBR(t terms) (*instance, error) {
	threshold := int64(never)
	if t.full {
		threshold = always
	}
	l := bbr.NewLimiter(bbr.WithCPUThreshold(threshold))
	if t.full {
		for range heldBySignal {
			_, _ = l.Allow() // those after the first few are refused, which is enough
		}
	}
	return &instance{ask: over(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		done, err := l.Allow()
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		defer done(ratelimit.DoneInfo{})
		served.ServeHTTP(w, r)
	}))}, nil
}

// go-zero writes a line about the machine to standard output every minute, from the
// moment it is linked in: into whatever another command prints there.
func init() { logx.Disable() }

// newGoZero wraps the shedder as go-zero's own REST handler does, without the log
// line of each refusal.
func newGoZero(t terms) (*instance, error) {
	stat.SetReporter(nil)
	threshold := int64(never)
	if t.full {
		threshold = always
	}
	s := load.NewAdaptiveShedder(load.WithCpuThreshold(threshold))
	if t.full {
		crowd(s)
	}
	return &instance{ask: over(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		promise, err := s.Allow()
		if err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		defer promise.Pass()
		served.ServeHTTP(w, r)
	}))}, nil
}

// crowd makes the shedder believe in a crowd: its average follows work that ends.
func crowd(s load.Shedder) {
	var all []load.Promise
	for range 2 * heldBySignal {
		if p, err := s.Allow(); err == nil {
			all = append(all, p)
		}
	}
	for _, p := range all[:len(all)/2] {
		p.Fail()
	}
}
