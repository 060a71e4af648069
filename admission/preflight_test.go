package admission_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/admissiontest"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// preflightFrom is a preflight of the given address, with a credential and a body that
// no browser would send.
func preflightFrom(addr string) *http.Request {
	r := arriving(addr, "Origin", "https://app.example", "Access-Control-Request-Method", "POST", "X-Key", "paying")
	r.Method, r.Body, r.ContentLength = http.MethodOptions, http.NoBody, 2
	return r
}

// paid identifies callers by X-Key and counts the look-ups.
func paid(asked *atomic.Int64) caller.Identify {
	return caller.APIKey("X-Key", func(_ context.Context, key string) (caller.Caller, bool) {
		asked.Add(1)
		return caller.Caller{}, strings.HasPrefix(key, "paying")
	})
}

// A preflight costs no caller's token and no look-up, and has a limit of its own per
// address; a caller over its rate gains nothing by it.
//
// Case GA-08: tried on the product
func TestPreflightsHaveALimitOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		g := admission.MustNew(admission.Options{Identify: paid(&asked), Rate: ratelimit.PerKey(0, 1), Quota: ratelimit.PerKey(0, 1)})
		h := g.At(priority.Critical)(okHandler())
		for i := range 150 {
			w := do(h, preflightFrom("203.0.113.9:4000"))
			if i < 100 {
				if w.Code != http.StatusOK {
					t.Fatalf("preflight %d: %d", i+1, w.Code)
				}
				continue
			}
			mustRefuse(t, w, http.StatusTooManyRequests, shed.RateLimited)
		}
		if w := do(h, preflightFrom("198.51.100.1:4000")); w.Code != http.StatusOK {
			t.Errorf("another address: %d", w.Code)
		}
		time.Sleep(time.Second)
		mustCountPreflights(t, h, "203.0.113.9:4000", 30, 10)
		if w := do(h, arriving("203.0.113.9:4000", "X-Key", "paying")); w.Code != http.StatusOK || asked.Load() != 1 {
			t.Errorf("the caller's own request: %d after %d look-ups", w.Code, asked.Load())
		}
	})
}

func mustCountPreflights(t *testing.T, h http.Handler, from string, sent, want int) {
	t.Helper()
	passed := 0
	for range sent {
		if do(h, preflightFrom(from)).Code == http.StatusOK {
			passed++
		}
	}
	if passed != want {
		t.Errorf("%d of %d preflights passed, want %d", passed, sent, want)
	}
}

// Sixteen connections that send preflights leave the paying callers of a critical route what they had.
//
// Case GA-08: tried on the product
func TestPreflightsDoNotCrowdOutPayingCallers(t *testing.T) {
	served := func(t *testing.T, senders int) (paying int) {
		synctest.Test(t, func(t *testing.T) {
			var asked, n atomic.Int64
			g := admission.MustNew(admission.Options{
				Identify: paid(&asked), Rate: ratelimit.PerKey(100, 100), Pool: admission.Pool{Limit: shed.Fixed(4), MaxWait: 200 * time.Millisecond},
			})
			h := g.At(priority.Critical)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				time.Sleep(20 * time.Millisecond)
				if r.Method == http.MethodGet {
					n.Add(1)
				}
			}))
			ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
			defer stop()
			for i := range 3 {
				go func() {
					for ctx.Err() == nil {
						do(h, arriving(fmt.Sprintf("192.0.2.%d:1", i+1), "X-Key", fmt.Sprint("paying", i)))
						time.Sleep(10 * time.Millisecond)
					}
				}()
			}
			for range senders {
				go func() {
					for ctx.Err() == nil {
						do(h, preflightFrom("203.0.113.9:4000"))
						time.Sleep(time.Millisecond)
					}
				}()
			}
			<-ctx.Done()
			time.Sleep(time.Second)
			paying = int(n.Load())
		})
		return paying
	}
	alone, crowded := served(t, 0), served(t, 16)
	if float64(crowded) < 0.95*float64(alone) {
		t.Errorf("%d requests of paying callers were served beside 16 senders of preflights, %d without", crowded, alone)
	}
}

func TestPreflightsRankNormalAtMost(t *testing.T) {
	for route, want := range map[priority.Level]priority.Level{
		priority.Critical: priority.Normal, priority.High: priority.Normal, priority.Normal: priority.Normal, priority.Batch: priority.Batch,
	} {
		heard := &recorder{}
		g := admission.MustNew(admission.Options{Observer: heard})
		do(g.At(route)(okHandler()), preflightFrom("203.0.113.9:4000"))
		if e := heard.all()[0]; e.Level != want || e.Reason != shed.Admitted {
			t.Errorf("on a %v route: %v, %v", route, e.Level, e.Reason)
		}
	}
}

func TestPreflightsAreCountedAsTheOptionSays(t *testing.T) {
	for name, c := range map[string]struct {
		http         admission.HTTP
		first, later int // what a preflight gets without slots: the first, and one beyond its limit
	}{
		"uncharged":           {admission.HTTP{PreflightRate: ratelimit.PerKey(0, 1)}, 503, 429},
		"as others":           {admission.HTTP{Preflights: admission.PreflightsAsOthers}, 503, 429},
		"answered":            {admission.HTTP{Preflights: admission.PreflightsAnswered, PreflightRate: ratelimit.PerKey(0, 1)}, 200, 429},
		"answered, unlimited": {admission.HTTP{Preflights: admission.PreflightsAnswered, PreflightRate: ratelimit.Unlimited}, 200, 200},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			g := admission.MustNew(admission.Options{
				Identify: paid(&asked), Rate: ratelimit.PerKey(0, 1), HTTP: c.http, Pool: admission.Pool{Limit: shed.Fixed(1), MaxWait: admission.NoWait},
			})
			held, _ := g.Admit(t.Context(), admission.Ticket{Caller: caller.Caller{Key: "other", Verified: true}})
			defer held.Release(shed.Served)
			h := g.At(priority.Critical)(okHandler())
			for i, want := range []int{c.first, c.later} {
				if w := do(h, preflightFrom("203.0.113.9:4000")); w.Code != want {
					t.Errorf("preflight %d: %d, want %d", i+1, w.Code, want)
				}
			}
			if looked := asked.Load() > 0; looked != (c.http.Preflights == admission.PreflightsAsOthers) {
				t.Errorf("%d look-ups", asked.Load())
			}
			if n := g.Stats().Count(shed.Exempt); (n > 0) != (c.http.Preflights == admission.PreflightsAnswered) {
				t.Errorf("%d exempt", n)
			}
		})
	}
}

func TestPreflightLimitKeepsItsBalanceInAReload(t *testing.T) {
	opts := admission.Options{HTTP: admission.HTTP{PreflightRate: ratelimit.PerKey(0, 2)}}
	g := admission.MustNew(opts)
	h := g.Handler(okHandler())
	mustCountPreflights(t, h, "203.0.113.9:4000", 1, 1)
	opts.HTTP.PreflightRate = ratelimit.PerKey(0, 2)
	mustUpdate(t, g, opts)
	mustCountPreflights(t, h, "203.0.113.9:4000", 5, 1)
}

func TestRefusingGatesRefusePreflightsToo(t *testing.T) {
	w := do(admissiontest.Refuse(shed.QueueFull).Handler(okHandler()), preflightFrom("203.0.113.9:4000"))
	mustRefuse(t, w, http.StatusServiceUnavailable, shed.QueueFull)
}
