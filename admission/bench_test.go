package admission_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

const benchKeys = 10_000

// barePieces is what a service would write by hand: a map of rate.Limiter under a
// mutex, then a channel as a semaphore.
type barePieces struct {
	mu       sync.Mutex
	limiters map[string]*rate.Limiter
	slots    chan struct{}
}

func newBarePieces() *barePieces {
	return &barePieces{limiters: map[string]*rate.Limiter{}, slots: make(chan struct{}, 512)}
}

func (b *barePieces) admit(key string) bool {
	b.mu.Lock()
	l := b.limiters[key]
	if l == nil {
		l = rate.NewLimiter(1e9, 1e9)
		b.limiters[key] = l
	}
	b.mu.Unlock()
	if !l.Allow() {
		return false
	}
	select {
	case b.slots <- struct{}{}:
		return true
	default:
		return false
	}
}

func (b *barePieces) release() { <-b.slots }

// keyNames returns the callers in the order they call: at random, since traffic is
// not sorted, and what lies side by side in memory must not be asked side by side.
func keyNames() []string {
	names := make([]string, benchKeys)
	for i := range names {
		names[i] = fmt.Sprintf("key-%05d", i)
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names
}

// created returns the names in the order their buckets are made.
func created(names []string) []string { return slices.Sorted(slices.Values(names)) }

// quickstartOptions are those of the README, with numbers no benchmark exhausts.
func quickstartOptions(known map[string]bool) admission.Options {
	return admission.Options{
		Identify: caller.APIKey("X-API-Key", func(_ context.Context, key string) (caller.Caller, bool) {
			return caller.Caller{}, known[key]
		}),
		Rate:     ratelimit.PerKey(1e9, 1e9),
		Pool:     admission.Pool{Limit: shed.Throughput{Max: 512}, MaxWait: 250 * time.Millisecond},
		Deadline: admission.TimeoutHeader("X-Timeout", 5*time.Second),
	}
}

func BenchmarkGate(b *testing.B) {
	names := keyNames()
	known := make(map[string]bool, len(names))
	for _, n := range names {
		known[n] = true
	}
	b.Run("pieces=bare", func(b *testing.B) {
		pieces := newBarePieces()
		for _, n := range created(names) {
			pieces.admit(n)
			pieces.release()
		}
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if !pieces.admit(names[i%benchKeys]) {
				b.Fatal("refused")
			}
			pieces.release()
		}
	})
	b.Run("pieces=admit-release", func(b *testing.B) {
		benchAdmit(b, admission.MustNew(quickstartOptions(known)), names)
	})
	b.Run("handler=bare", func(b *testing.B) { benchHandler(b, http.HandlerFunc(ok), names, "") })
	b.Run("handler=gate,deadline=none", func(b *testing.B) {
		opts := quickstartOptions(known)
		opts.Deadline = admission.Deadline{}
		benchHandler(b, admission.MustNew(opts).Handler(http.HandlerFunc(ok)), names, "")
	})
	b.Run("handler=gate,deadline=5s", func(b *testing.B) {
		benchHandler(b, admission.MustNew(quickstartOptions(known)).Handler(http.HandlerFunc(ok)), names, "")
	})
	b.Run("handler=gate,deadline=header", func(b *testing.B) {
		benchHandler(b, admission.MustNew(quickstartOptions(known)).Handler(http.HandlerFunc(ok)), names, "800")
	})
	b.Run("handler=gate,headers=x", func(b *testing.B) {
		benchHandler(b, telling(known, admission.XRateLimit), names, "")
	})
	b.Run("handler=gate,headers=both", func(b *testing.B) {
		benchHandler(b, telling(known, admission.XRateLimit|admission.IETFDraft11), names, "")
	})
}

func telling(known map[string]bool, fields admission.Headers) http.Handler {
	opts := quickstartOptions(known)
	opts.HTTP.RateLimitHeaders = fields
	return admission.MustNew(opts).Handler(http.HandlerFunc(ok))
}

// BenchmarkRefused refuses every request: for its rate, or for want of a slot.
func BenchmarkRefused(b *testing.B) {
	names := keyNames()
	opts := admission.Options{Identify: caller.APIKey("X-API-Key", anyKey), Rate: ratelimit.PerKey(0.005, 1)}
	b.Run("status=429", func(b *testing.B) {
		benchRefused(b, admission.MustNew(opts).Handler(http.HandlerFunc(ok)), names, http.StatusTooManyRequests)
	})
	b.Run("status=503", func(b *testing.B) {
		gate := fullGate(b)
		benchRefused(b, gate.Handler(http.HandlerFunc(ok)), names, http.StatusServiceUnavailable)
	})
}

func anyKey(context.Context, string) (caller.Caller, bool) { return caller.Caller{}, true }

// fullGate is one whose slots are all taken and where nobody waits.
func fullGate(t testing.TB) *admission.Gate {
	gate := admission.MustNew(admission.Options{
		Identify: caller.APIKey("X-API-Key", anyKey), Rate: ratelimit.PerKey(1e9, 1<<30),
		Pool: admission.Pool{Limit: shed.Throughput{Max: 4, Initial: 4}, MaxWait: admission.NoWait},
	})
	for range 4 {
		if _, err := gate.Admit(t.Context(), admission.Ticket{}); err != nil {
			t.Fatal(err)
		}
	}
	return gate
}

func benchRefused(b *testing.B, h http.Handler, names []string, want int) {
	r, _ := http.NewRequest("GET", "http://example.com/search", nil)
	r.Header.Set("X-API-Key", "")
	key, w := r.Header["X-Api-Key"], &nullWriter{h: http.Header{}}
	for _, key[0] = range created(names) {
		h.ServeHTTP(w, r)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		key[0] = names[i%benchKeys]
		clear(w.h)
		h.ServeHTTP(w, r)
	}
	if w.last != want {
		b.Fatalf("answered %d", w.last)
	}
}

func benchAdmit(b *testing.B, gate *admission.Gate, names []string) {
	ctx := context.Background()
	t := admission.Ticket{Caller: caller.Caller{Space: "key", Verified: true}, Level: priority.High}
	for _, t.Caller.Key = range created(names) {
		p, _ := gate.Admit(ctx, t)
		p.Release(shed.Served)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		t.Caller.Key = names[i%benchKeys]
		p, err := gate.Admit(ctx, t)
		if err != nil {
			b.Fatal(err)
		}
		p.Release(shed.Served)
	}
	if got := gate.Stats().Count(shed.Admitted); got < uint64(b.N) {
		b.Fatalf("admitted %d of %d", got, b.N)
	}
}

// benchHandler sends one request over and over under changing keys, so that it
// measures the handler and not the cache misses of ten thousand requests.
func benchHandler(b *testing.B, h http.Handler, names []string, timeout string) {
	r, _ := http.NewRequest("GET", "http://example.com/search", nil)
	r.RemoteAddr = "192.0.2.1:1234"
	r.Header.Set("X-API-Key", "")
	if timeout != "" {
		r.Header.Set("X-Timeout", timeout)
	}
	key := r.Header["X-Api-Key"]
	w := &nullWriter{h: http.Header{}}
	for _, key[0] = range created(names) {
		h.ServeHTTP(w, r)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		key[0] = names[i%benchKeys]
		h.ServeHTTP(w, r)
	}
	if w.last != http.StatusNoContent {
		b.Fatalf("answered %d", w.last)
	}
}

func ok(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }

// nullWriter is the cheapest ResponseWriter.
type nullWriter struct {
	h    http.Header
	last int
}

func (w *nullWriter) Header() http.Header         { return w.h }
func (w *nullWriter) Write(b []byte) (int, error) { return len(b), nil }
func (w *nullWriter) WriteHeader(status int)      { w.last = status }

// The handler's request, its context and the gate's own state of it are one object.
func TestAnAdmittedRequestCostsOneAllocation(t *testing.T) {
	for name, header := range map[string]string{"no deadline": "", "a deadline": "250ms"} {
		h := admission.MustNew(admission.Options{
			Rate:     ratelimit.PerKey(1e9, 1<<30),
			Deadline: admission.TimeoutHeader("X-Timeout", 5*time.Second),
		}).At(priority.Normal)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		r, w := request("GET", "/"), httptest.NewRecorder()
		if header != "" {
			r.Header.Set("X-Timeout", header)
		}
		if n := testing.AllocsPerRun(500, func() { h.ServeHTTP(w, r) }); n > 1 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// A refusal is one object: the values of its header fields.
func TestARefusalCostsOneAllocation(t *testing.T) {
	opts := admission.Options{Identify: caller.APIKey("X-API-Key", anyKey), Rate: ratelimit.PerKey(0.005, 1)}
	for want, gate := range map[int]*admission.Gate{http.StatusTooManyRequests: admission.MustNew(opts), http.StatusServiceUnavailable: fullGate(t)} {
		h, r, w := gate.Handler(http.HandlerFunc(ok)), request("GET", "/"), &nullWriter{h: http.Header{}}
		r.Header.Set("X-API-Key", "one")
		h.ServeHTTP(w, r)
		n := testing.AllocsPerRun(500, func() {
			clear(w.h)
			h.ServeHTTP(w, r)
		})
		if n > 1 || w.last != want {
			t.Errorf("%v allocations for a %d, want a %d", n, w.last, want)
		}
	}
}
