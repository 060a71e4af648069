package admission_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

func TestRouteCapRefusesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.MustNew(admission.Options{Pool: admission.Pool{Limit: shed.Fixed(10)}})
		block := newHeld()
		h := g.At(priority.Normal, admission.Cap(2))(block)
		for range 2 {
			go get(h)
		}
		synctest.Wait()
		mustRefuse(t, get(h), http.StatusServiceUnavailable, shed.RouteCap)
		close(block.release)
		synctest.Wait()
		if w := get(h); w.Code != http.StatusOK {
			t.Errorf("after release: %d", w.Code)
		}
		atRest(t, g)
	})
}

func TestCallerCapIsPerCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.MustNew(admission.Options{
			Identify: caller.Header("X-Tenant"), CallerCap: 2, Pool: admission.Pool{Limit: shed.Fixed(10)},
		})
		block := newHeld()
		h := g.Handler(block)
		for range 2 {
			go do(h, request("GET", "/", "X-Tenant", "a"))
		}
		synctest.Wait()
		mustRefuse(t, do(h, request("GET", "/", "X-Tenant", "a")), http.StatusTooManyRequests, shed.CallerCap)
		go do(h, request("GET", "/", "X-Tenant", "b"))
		synctest.Wait()
		if n := block.inside.Load(); n != 3 {
			t.Errorf("inside = %d, want 3", n)
		}
		close(block.release)
		synctest.Wait()
		atRest(t, g)
	})
}

func TestCapacityRefusalKeepsTheTokenAndReturnsTheQuota(t *testing.T) {
	g := admission.MustNew(admission.Options{
		Pool: admission.Pool{Limit: shed.Fixed(1), MaxWait: admission.NoWait},
		Rate: ratelimit.PerKey(0, 3), Quota: ratelimit.PerKey(0, 3),
	})
	caller := admission.Ticket{Caller: caller.Caller{Key: "a", Verified: true}}
	p, err := g.Admit(context.Background(), caller)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Admit(context.Background(), caller); !errors.Is(err, shed.Capacity) {
		t.Fatalf("error = %v", err)
	}
	p.Release(shed.Served)
	p, err = g.Admit(context.Background(), caller) // third token, second unit of the quota
	if err != nil {
		t.Fatal(err)
	}
	p.Release(shed.Served)
	var rej *admission.Rejection
	if _, err := g.Admit(context.Background(), caller); !errors.As(err, &rej) || rej.Reason != shed.RateLimited && rej.Reason != shed.NotAdmissible {
		t.Errorf("fourth attempt: %v", err)
	}
}

func TestRefusalByOneLimitTakesNothingFromTheOthers(t *testing.T) {
	g := admission.MustNew(admission.Options{Rate: ratelimit.PerKey(0, 5), Pool: admission.Pool{Limit: shed.Fixed(10)}})
	narrow := g.At(priority.Normal, admission.Rate(ratelimit.PerKey(0, 1)))(okHandler())
	wide := g.Handler(okHandler())
	for range 10 {
		get(narrow) // one passes, nine are refused by the route's own limit
	}
	passed := 0
	for range 10 {
		if get(wide).Code == http.StatusOK {
			passed++
		}
	}
	if passed != 4 {
		t.Errorf("passed = %d, want 4: the refusals by the route took from the caller", passed)
	}
}

// deaf is a limit of one whose law counts what it is told.
type deaf struct{ told *int }

func (d deaf) New() (shed.Law, error) { return d, nil }
func (d deaf) Limit() int             { return 1 }
func (d deaf) Note(time.Time, shed.Load) shed.Step {
	*d.told++
	return shed.Step{}
}

func (d deaf) Done(now time.Time, load shed.Load, _ shed.Sample) shed.Step { return d.Note(now, load) }

func TestRefusalsMoveNoAdaptiveSignal(t *testing.T) {
	told := 0
	g := admission.MustNew(admission.Options{
		Pool: admission.Pool{Limit: deaf{&told}, MaxWait: admission.NoWait}, Identify: caller.Header("X-Tenant"), Rate: ratelimit.PerKey(1, 2), CallerCap: 1,
	})
	permit, err := g.Admit(t.Context(), admission.Ticket{Caller: caller.Caller{Key: "holder", Space: "header:X-Tenant", Verified: true}})
	if err != nil {
		t.Fatal(err)
	}
	before := told
	h := g.Handler(okHandler())
	for range 3 { // two by capacity, then by the rate
		do(h, request("GET", "/", "X-Tenant", "other"))
	}
	do(h, request("GET", "/", "X-Tenant", "holder")) // by its own cap
	s := g.Stats()
	if s.Count(shed.Capacity) != 2 || s.Count(shed.RateLimited) != 1 || s.Count(shed.CallerCap) != 1 {
		t.Errorf("refused: %v", s.Visits)
	}
	if told != before {
		t.Errorf("the law was told of %d of the refusals", told-before)
	}
	permit.Release(shed.Served)
	if told == before {
		t.Error("the law was not told of work that ended")
	}
}
