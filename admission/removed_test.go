package admission_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// removable is a gate whose pool "db" only Routes and tickets name. To identify takes a second.
func removable(slots int) (*admission.Gate, admission.Options) {
	opts := admission.Options{
		Identify: func(*http.Request) (caller.Caller, error) { time.Sleep(time.Second); return caller.Caller{}, nil },
		Pools:    map[string]admission.Pool{"db": {Limit: shed.Fixed(slots), MaxWait: time.Minute}},
		Routes:   map[string]admission.Rule{"/db": admission.AtLevel(priority.Normal, admission.InPool("db"))},
	}
	g := admission.MustNew(opts)
	opts.Pools, opts.Routes = nil, nil
	return g, opts
}

// A pool that a reload removes while a request is on its way to it still counts: Drain
// waits for the request, and Stats show it.
//
// Case GA-03: tried on the product
func TestRequestsOnTheirWayToARemovedPoolAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, without := removable(1)
		h := g.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(10 * time.Second) }))
		answers := make(chan int, 2)
		for range 2 { // one runs, one waits
			go func() { answers <- do(h, request("GET", "/db")).Code }()
		}
		synctest.Wait()
		mustUpdate(t, g, without)
		time.Sleep(2 * time.Second)
		s := g.Stats()
		if last := s.Pools[len(s.Pools)-1]; s.InFlight() != 1 || last.Name != "db" || last.Waiting[priority.Normal.Index()] != 1 {
			t.Errorf("%d in flight, pools %+v", s.InFlight(), s.Pools)
		}
		begun := time.Now()
		if err := g.Drain(t.Context()); err != nil || time.Since(begun) != 9*time.Second {
			t.Errorf("drain: %v after %v, want the rest of the work's 10 s", err, time.Since(begun))
		}
		if a, b := <-answers, <-answers; a+b != 200+503 {
			t.Errorf("answers %d and %d, want 200 and 503", a, b)
		}
		atRest(t, g)
		if n := len(g.Stats().Pools); n != 1 {
			t.Errorf("%d pools at the end, want the removed one forgotten", n)
		}
	})
}

// A request that comes to a removed pool of a gate that is shut meanwhile is refused:
// Drain has looked already.
//
// Case GA-03: tried on the product
func TestNoRequestEntersARemovedPoolOfAShutGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, without := removable(1)
		h := g.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler ran after the drain") }))
		answer := make(chan *httptest.ResponseRecorder, 1)
		go func() { answer <- do(h, request("GET", "/db")) }()
		synctest.Wait()
		mustUpdate(t, g, without)
		if err := g.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		mustRefuse(t, <-answer, http.StatusServiceUnavailable, shed.Draining)
		atRest(t, g)
	})
}

// Work without HTTP whose limiter takes its time is on its way as well.
func TestWorkOnItsWayToARemovedPoolIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.MustNew(admission.Options{
			Rate: slow{ratelimit.PerKey(1000, 1000), time.Second}, Pools: map[string]admission.Pool{"db": {Limit: shed.Fixed(1)}},
		})
		go func() {
			p, err := g.Admit(t.Context(), admission.Ticket{Pool: "db"})
			if err != nil {
				t.Error(err)
				return
			}
			time.Sleep(10 * time.Second)
			p.Release(shed.Served)
		}()
		synctest.Wait()
		mustUpdate(t, g, admission.Options{})
		time.Sleep(2 * time.Second)
		begun := time.Now()
		if err := g.Drain(t.Context()); err != nil || time.Since(begun) != 9*time.Second {
			t.Errorf("drain: %v after %v, want the rest of the work's 10 s", err, time.Since(begun))
		}
	})
}

// The gate may also be shut while a limiter takes its time.
func TestNoWorkEntersARemovedPoolOfAShutGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.MustNew(admission.Options{
			Rate: slow{ratelimit.PerKey(1000, 1000), time.Second}, Pools: map[string]admission.Pool{"db": {Limit: shed.Fixed(1)}},
		})
		refused := make(chan error, 1)
		go func() {
			_, err := g.Admit(t.Context(), admission.Ticket{Pool: "db"})
			refused <- err
		}()
		synctest.Wait()
		mustUpdate(t, g, admission.Options{})
		if err := g.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-refused; !errors.Is(err, shed.Draining) {
			t.Errorf("error %v, want draining", err)
		}
		atRest(t, g)
	})
}
