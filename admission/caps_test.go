package admission_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

func TestRouteCapRefusesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.MustNew(admission.Options{Limit: shed.Fixed(10)})
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

func TestTenantCapIsPerCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.MustNew(admission.Options{
			Tenant: admission.Header("X-Tenant"), TenantCap: 2, Limit: shed.Fixed(10),
		})
		block := newHeld()
		h := g.Handler(block)
		for range 2 {
			go do(h, request("GET", "/", "X-Tenant", "a"))
		}
		synctest.Wait()
		mustRefuse(t, do(h, request("GET", "/", "X-Tenant", "a")), http.StatusTooManyRequests, shed.TenantCap)
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
		Limit: shed.Fixed(1), MaxWait: admission.NoWait,
		Rate: ratelimit.PerKey(0, 3), Quota: ratelimit.PerKey(0, 3),
	})
	caller := admission.Ticket{Caller: admission.Caller{Key: "a", Verified: true}}
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
	if _, err := g.Admit(context.Background(), caller); !errors.As(err, &rej) || rej.Reason != shed.RateLimited && rej.Reason != shed.Never {
		t.Errorf("fourth attempt: %v", err)
	}
}

func TestRefusalByOneLimitTakesNothingFromTheOthers(t *testing.T) {
	g := admission.MustNew(admission.Options{Rate: ratelimit.PerKey(0, 5), Limit: shed.Fixed(10)})
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
