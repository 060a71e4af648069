package outbound_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/outbound/pacer"
	"github.com/headgate-go/headgate/outbound/verdict"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// recorder keeps the events.
type recorder struct {
	mu       sync.Mutex
	events   []outbound.Event
	name     string
	snapshot func() pacer.Stats
}

func (r *recorder) Observe(e outbound.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *recorder) Attach(name string, snapshot func() pacer.Stats) {
	r.name, r.snapshot = name, snapshot
}

// types returns what happened, in order.
func (r *recorder) types() []outbound.EventType {
	r.mu.Lock()
	defer r.mu.Unlock()
	var types []outbound.EventType
	for _, e := range r.events {
		types = append(types, e.Type)
	}
	return types
}

func TestAnObserverGetsEveryEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := &recorder{}
		s := &script{steps: []http.HandlerFunc{says(429, "Retry-After", "2"), says(200), says(404)}}
		rt := outbound.MustNew(outbound.Options{
			Name: "push", Base: serve(t, s.ServeHTTP), Observer: seen, Rate: ratelimit.PerKey(10, 1),
		})
		for range 2 {
			if _, _, err := get(t, t.Context(), rt); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := get(t, shortly(t, time.Millisecond), rt); err == nil {
			t.Fatal("no refusal")
		}
		want := []outbound.EventType{
			outbound.EventAnswered, outbound.EventSlowed, outbound.EventRetried, // 429
			outbound.EventAnswered,                        // 200
			outbound.EventAnswered, outbound.EventStopped, // 404
			outbound.EventRefused, outbound.EventStopped,
		}
		if got := seen.types(); !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		slowed, retried, refused := seen.events[1], seen.events[2], seen.events[6]
		if slowed.Kind != verdict.Throttled || slowed.Multiplier != 0.7 || slowed.Rate != rate.Limit(7) || slowed.Wait < 2*time.Second {
			t.Errorf("slowed: %+v", slowed)
		}
		if retried.Attempt != 1 || retried.Wait < 2*time.Second {
			t.Errorf("retried: %+v", retried)
		}
		if refused.Reason != pacer.WaitTooLong || refused.Wait <= time.Millisecond {
			t.Errorf("refused: %+v", refused)
		}
		for _, e := range seen.events {
			if e.Transport != "push" || e.Key.Space != "service.test" {
				t.Errorf("%v from %q about %q", e.Type, e.Transport, e.Key.Space)
			}
		}
		o := seen.snapshot().Operations[0]
		if seen.name != "push" || o.Attempts != 3 || o.Cuts != 1 || o.Pauses != 1 || o.Refused[pacer.WaitTooLong] != 1 || o.RetryLeft < 99 {
			t.Errorf("%s: %+v", seen.name, o)
		}
		if s := rt.Pacer().Stats(); len(s.Services) != 1 || s.Services[0].Name != "service.test" {
			t.Errorf("services: %+v", s.Services)
		}
	})
}

func TestHostsAreOneWhateverTheirCase(t *testing.T) {
	a, _ := http.NewRequest(http.MethodGet, "http://API.test:8080/", nil)
	b, _ := http.NewRequest(http.MethodGet, "http://api.test:8080/x", nil)
	if outbound.ByHost(a) != outbound.ByHost(b) {
		t.Errorf("%v and %v", outbound.ByHost(a), outbound.ByHost(b))
	}
}

// A gate's 503 speaks for the whole service, its 429 for one caller's rate: the
// first is answered with a deeper cut and a longer backoff.
func TestAGates503IsBackedOffHarderThanIts429(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		after := func(status int, reason string) (float64, time.Duration) {
			var total time.Duration
			const runs = 40
			multiplier := 0.0
			for range runs {
				s := &script{steps: []http.HandlerFunc{says(status, "Headgate-Reason", reason), says(200)}}
				base := tripper(func(r *http.Request) (*http.Response, error) {
					w := &bare{header: http.Header{}}
					r.Body = http.NoBody
					s.ServeHTTP(w, r)
					if w.status == 200 {
						return answer(r, 200), nil
					}
					return answer(r, w.status, "Headgate-Reason", reason), nil
				})
				seen := &recorder{}
				rt := outbound.MustNew(outbound.Options{Base: base, Observer: seen, Rate: ratelimit.PerKey(1000, 10)})
				if _, _, err := get(t, t.Context(), rt); err != nil {
					t.Fatal(err)
				}
				total += s.gaps()[0]
				multiplier = seen.events[1].Multiplier
			}
			return multiplier, total / runs
		}
		m429, d429 := after(429, "rate-limited")
		m503, d503 := after(503, "queue-full")
		if m503 >= m429 || d503 <= d429 {
			t.Errorf("429: ×%v after %v; 503: ×%v after %v", m429, d429, m503, d503)
		}
	})
}

// bare is a ResponseWriter that keeps the status only.
type bare struct {
	header http.Header
	status int
}

func (b *bare) Header() http.Header         { return b.header }
func (b *bare) WriteHeader(status int)      { b.status = status }
func (b *bare) Write(p []byte) (int, error) { return len(p), nil }

func TestMaxWaitCoversTokenAndSlotTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		block := make(chan struct{})
		rt := outbound.MustNew(outbound.Options{
			InFlight: shed.Fixed(1), MaxWait: 3 * time.Second, Rate: ratelimit.PerKey(1, 1),
			Base: tripper(func(r *http.Request) (*http.Response, error) {
				<-block
				return answer(r, 200), nil
			}),
		})
		var wg sync.WaitGroup
		wg.Go(func() { _, _, _ = get(t, t.Context(), rt) })
		synctest.Wait()
		start := time.Now()
		_, _, err := get(t, t.Context(), rt)
		if took := time.Since(start); err == nil || took > 3*time.Second || !strings.Contains(err.Error(), "no-slot") {
			t.Errorf("%v after %v", err, took)
		}
		close(block)
		wg.Wait()
	})
}
