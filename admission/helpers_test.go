package admission_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/shed"
)

// held is a handler that blocks until told, and counts who is inside.
type held struct {
	release chan struct{}
	inside  atomic.Int64
	most    atomic.Int64
	served  atomic.Int64
}

func newHeld() *held { return &held{release: make(chan struct{})} }

func (h *held) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := h.inside.Add(1)
	defer h.inside.Add(-1)
	for most := h.most.Load(); n > most && !h.most.CompareAndSwap(most, n); most = h.most.Load() {
	}
	select {
	case <-h.release:
	case <-r.Context().Done():
	}
	h.served.Add(1)
}

func request(method, target string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

func do(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func get(h http.Handler) *httptest.ResponseRecorder { return do(h, request("GET", "/")) }

func okHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
}

// capped returns a gate with n slots and no queue.
func capped(n int) *admission.Gate {
	return admission.MustNew(admission.Options{Pool: admission.Pool{Limit: shed.Fixed(n), MaxWait: admission.NoWait}})
}

func mustRefuse(t *testing.T, w *httptest.ResponseRecorder, status int, reason shed.Reason) {
	t.Helper()
	if w.Code != status || w.Header().Get("Headgate-Reason") != reason.String() {
		t.Errorf("answer = %d %q, want %d %q", w.Code, w.Header().Get("Headgate-Reason"), status, reason)
	}
	if n, err := strconv.Atoi(w.Header().Get("Retry-After")); err != nil || n < 1 {
		t.Errorf("Retry-After = %q, want whole seconds of at least 1", w.Header().Get("Retry-After"))
	}
	if got := w.Header().Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control = %q", got)
	}
}

func atRest(t *testing.T, g *admission.Gate) {
	t.Helper()
	s := g.Stats()
	waiting := 0
	for _, p := range s.Pools {
		for _, n := range p.Waiting {
			waiting += n
		}
	}
	if s.InFlight() != 0 || waiting != 0 || s.Streams != 0 {
		t.Errorf("at rest: %d in flight, %d waiting, %d streams", s.InFlight(), waiting, s.Streams)
	}
}

// recorder keeps the events it hears.
type recorder struct {
	mu       sync.Mutex
	events   []admission.Event
	snapshot func() admission.Stats
	attached int
}

func (o *recorder) Observe(e admission.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.events = append(o.events, e)
}

func (o *recorder) Attach(_ string, snapshot func() admission.Stats) {
	o.snapshot = snapshot
	o.attached++
}

func (o *recorder) all() []admission.Event {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]admission.Event(nil), o.events...)
}
