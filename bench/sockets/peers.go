package sockets

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	failsafepriority "github.com/failsafe-go/failsafe-go/priority"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/go-chi/httprate"
	"github.com/go-kratos/aegis/ratelimit"
	"github.com/go-kratos/aegis/ratelimit/bbr"
	"github.com/zeromicro/go-zero/core/load"
	"github.com/zeromicro/go-zero/core/logx"
	"github.com/zeromicro/go-zero/core/stat"

	"github.com/headgate-go/headgate/priority"
)

type builder = func(*Scenario, http.Handler) (http.Handler, error)

// peers are the libraries, each as its own documents wire it, and then as somebody
// would who knows the library and the backend.
func peers() []Subject {
	return []Subject{
		{"httprate", "5,000 requests a second, from last year's benchmark", middle(func(*Scenario) wrapper {
			return httprate.LimitBy(5000, time.Second, httprate.Key("all"))
		})},
		{"chi Throttle", "64 in flight", middle(func(*Scenario) wrapper { return middleware.Throttle(64) })},
		{"chi ThrottleBacklog", "64 in flight, 1,024 wait for up to 10 s", middle(func(*Scenario) wrapper {
			return middleware.ThrottleBacklog(64, 1024, 10*time.Second)
		})},
		{"chi Throttle, tuned", "the true width in flight", middle(func(s *Scenario) wrapper { return middleware.Throttle(s.slots()) })},
		{"chi ThrottleBacklog, tuned", "the true width, as many wait for up to half a second", middle(func(s *Scenario) wrapper {
			return middleware.ThrottleBacklog(s.slots(), s.slots(), Patience/2)
		})},
		{"channel, tuned", "a channel as wide as the backend; a full one refuses", middle(func(s *Scenario) wrapper { return channel(s.slots()) })},
		{"failsafe bulkhead, tuned", "the true width, and a wait of half a second", failsafeHandler(func(s *Scenario) failsafe.Policy[*http.Response] {
			return bulkhead.NewBuilder[*http.Response](uint(s.slots())).WithMaxWaitTime(Patience / 2).Build()
		})},
		{"failsafe adaptive", "its defaults", failsafeHandler(func(*Scenario) failsafe.Policy[*http.Response] {
			return adaptivelimiter.NewWithDefaults[*http.Response]()
		})},
		{"failsafe adaptive, queue", "its defaults, and two to three times the limit waits", failsafeHandler(func(*Scenario) failsafe.Policy[*http.Response] {
			return adaptivelimiter.NewBuilder[*http.Response]().WithQueueing(2, 3).Build()
		})},
		{"failsafe prioritized, 500 ms", "wired by hand, calibrated each 500 ms", prioritized(500 * time.Millisecond)},
		{"failsafe prioritized, 100 ms", "wired by hand, calibrated each 100 ms", prioritized(100 * time.Millisecond)},
		{"failsafe prioritized, 20 ms", "wired by hand, calibrated each 20 ms", prioritized(20 * time.Millisecond)},
		{"aegis BBR", "its defaults: sheds above 80 % of the CPU", withBBR()},
		{"aegis BBR, any CPU", "sheds whatever the CPU does", withBBR(bbr.WithCPUThreshold(0))},
		{"go-zero", "its defaults: sheds above 90 % of the CPU", withGoZero()},
		{"go-zero, any CPU", "sheds whatever the CPU does", withGoZero(load.WithCpuThreshold(0))},
	}
}

type wrapper = func(http.Handler) http.Handler

func middle(of func(*Scenario) wrapper) builder {
	return func(s *Scenario, routes http.Handler) (http.Handler, error) { return of(s)(routes), nil }
}

// channel is the semaphore that is written by hand everywhere.
func channel(width int) wrapper {
	slots := make(chan struct{}, width)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case slots <- struct{}{}:
				defer func() { <-slots }()
				next.ServeHTTP(w, r)
			default:
				unavailable(w)
			}
		})
	}
}

func failsafeHandler(policy func(*Scenario) failsafe.Policy[*http.Response]) builder {
	return func(s *Scenario, routes http.Handler) (http.Handler, error) {
		return failsafehttp.NewHandler(routes, policy(s)), nil
	}
}

// prioritized is wired by hand: the library's handler does not pass the level of a
// request on to its limiter. Work that missed its deadline is dropped, as its documents
// advise, so that its time is no sample.
func prioritized(every time.Duration) builder {
	return func(_ *Scenario, routes http.Handler) (http.Handler, error) {
		p := adaptivelimiter.NewPrioritizer()
		p.ScheduleCalibrations(context.Background(), every)
		limiter := adaptivelimiter.NewBuilder[*http.Response]().BuildPrioritized(p)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			permit, err := limiter.AcquirePermitWithPriority(r.Context(), rank(r))
			switch {
			case errors.Is(err, adaptivelimiter.ErrExceeded):
				unavailable(w)
				return
			case err != nil: // the client left
				return
			}
			routes.ServeHTTP(w, r)
			if r.Context().Err() != nil {
				permit.Drop()
				return
			}
			permit.Record()
		}), nil
	}
}

func rank(r *http.Request) failsafepriority.Priority {
	switch levelOf(r) {
	case priority.Critical:
		return failsafepriority.VeryHigh
	case priority.Batch:
		return failsafepriority.VeryLow
	}
	return failsafepriority.Medium
}

func withBBR(opts ...bbr.Option) builder {
	return func(_ *Scenario, routes http.Handler) (http.Handler, error) {
		l := bbr.NewLimiter(opts...)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			done, err := l.Allow()
			if err != nil {
				unavailable(w)
				return
			}
			defer done(ratelimit.DoneInfo{})
			routes.ServeHTTP(w, r)
		}), nil
	}
}

// withGoZero does as go-zero's own REST handler does: a 503 is a failure, all else is
// a pass.
func withGoZero(opts ...load.ShedderOption) builder {
	return func(_ *Scenario, routes http.Handler) (http.Handler, error) {
		logx.Disable()
		stat.SetReporter(nil)
		shedder := load.NewAdaptiveShedder(opts...)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			promise, err := shedder.Allow()
			if err != nil {
				unavailable(w)
				return
			}
			seen := &statusWriter{ResponseWriter: w}
			defer func() {
				if seen.status == http.StatusServiceUnavailable {
					promise.Fail()
					return
				}
				promise.Pass()
			}()
			routes.ServeHTTP(seen, r)
		}), nil
	}
}

type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func unavailable(w http.ResponseWriter) {
	http.Error(w, http.StatusText(http.StatusServiceUnavailable), http.StatusServiceUnavailable)
}
