package admission_test

import (
	"context"
	"errors"
	"fmt"
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

func refusedAs(t *testing.T, err error, want shed.Reason) {
	t.Helper()
	rej := (*admission.Rejection)(nil)
	if !errors.As(err, &rej) || rej.Reason != want {
		t.Errorf("got %v, want %v", err, want)
	}
}

func TestAdmitRequestReadsARequestAsHandlerDoes(t *testing.T) {
	heard := &recorder{}
	g := admission.MustNew(admission.Options{
		Identify: caller.APIKey("X-API-Key", anyCaller), Rate: ratelimit.PerKey(0.001, 5),
		Deadline: admission.TimeoutHeader("X-Timeout", time.Minute), Observer: heard,
		Routes: map[string]admission.Rule{
			"/shop.Export/":      admission.AtLevel(priority.High, admission.Cost(4)),
			"POST /probe":        admission.AtLevel(priority.Normal, admission.Exempt()),
			"/shop.Export/Small": admission.AtLevel(priority.Batch),
		},
	})
	ctx, permit, err := g.AdmitRequest(request("POST", "/shop.Export/Start", "X-API-Key", "ann", "X-Timeout", "5s"))
	if err != nil {
		t.Fatal(err)
	}
	v, ok := admission.FromContext(ctx)
	left := time.Until(v.Deadline)
	if !ok || v.Caller.Key != "ann" || v.Level != priority.High || left > 5*time.Second || left < 4*time.Second {
		t.Errorf("the context knows %+v, %v", v, ok)
	}
	if n := g.Stats().InFlight(); n != 1 {
		t.Errorf("%d in flight, want 1", n)
	}
	permit.Release(shed.Served)
	permit.Release(shed.Failed)
	if _, _, err := g.AdmitRequest(request("POST", "/shop.Export/Start", "X-API-Key", "ann")); err == nil {
		t.Error("a cost of 4 twice within a burst of 5")
	} else {
		refusedAs(t, err, shed.RateLimited)
	}
	for range 3 { // no token is left for more than one
		if ctx, permit, err := g.AdmitRequest(request("POST", "/probe", "X-API-Key", "ann")); err != nil || permit != (admission.Permit{}) {
			t.Errorf("an exempt request: %v %v %v", ctx, permit, err)
		}
	}
	events := heard.all()
	if len(events) != 5 || events[0].Route != "/shop.Export/" || events[0].Outcome != shed.Served || events[1].Reason != shed.RateLimited || events[4].Reason != shed.Exempt {
		t.Errorf("observed %+v", events)
	}
	atRest(t, g)
}

func anyCaller(context.Context, string) (caller.Caller, bool) { return caller.Caller{}, true }

func TestAdmitRequestDecidesOncePerRequest(t *testing.T) {
	g := admission.MustNew(admission.Options{Rate: ratelimit.PerKey(0.001, 1)})
	w := get(g.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, permit, err := g.AdmitRequest(r)
		if err != nil || ctx != r.Context() || permit.Charge(3) {
			t.Errorf("met twice: %v, charged", err)
		}
		permit.Release(shed.Served)
		if n := g.Stats().InFlight(); n != 1 {
			t.Errorf("%d in flight, want the one that Handler admitted", n)
		}
	})))
	if w.Code != http.StatusOK {
		t.Errorf("answer %d", w.Code)
	}
}

func TestAPermitOfARequestSettlesItsCostOnce(t *testing.T) {
	g := admission.MustNew(admission.Options{Rate: ratelimit.PerKey(0.001, 5)})
	ctx, permit, err := g.AdmitRequest(request("POST", "/x"))
	if err != nil {
		t.Fatal(err)
	}
	if !permit.Charge(5) || admission.Charge(ctx, 1) || permit.ChargeIn("bytes", 1) {
		t.Error("want the first charge to count, and no other")
	}
	permit.Release(shed.Served)
	_, _, err = g.AdmitRequest(request("POST", "/x"))
	refusedAs(t, err, shed.RateLimited)
}

func TestAStreamThatIsAdmittedByHandLeavesItsSlot(t *testing.T) {
	g := admission.MustNew(admission.Options{
		Pool:   admission.Pool{Limit: shed.Fixed(1), MaxWait: admission.NoWait},
		Routes: map[string]admission.Rule{"/feed": admission.AtLevel(priority.Normal, admission.Stream(2))},
	})
	var open []admission.Permit
	for range 2 {
		_, permit, err := g.AdmitRequest(request("POST", "/feed"))
		if err != nil {
			t.Fatal(err)
		}
		permit.Streaming()
		permit.Streaming()
		open = append(open, permit)
	}
	if s := g.Stats(); s.InFlight() != 0 || s.Streams != 2 {
		t.Errorf("%d in flight and %d streams, want 0 and 2", s.InFlight(), s.Streams)
	}
	_, _, err := g.AdmitRequest(request("POST", "/feed"))
	refusedAs(t, err, shed.StreamCap)
	_, other, err := g.AdmitRequest(request("POST", "/other"))
	if err != nil {
		t.Fatal(err)
	}
	if other.Streaming(); g.Stats().InFlight() != 1 {
		t.Error("work that is no stream left its slot")
	}
	for _, permit := range append(open, other) {
		permit.Release(shed.Served)
	}
	atRest(t, g)
}

func TestTimeAndClientGoBeforeTheReportedOutcome(t *testing.T) {
	for name, c := range map[string]struct {
		after time.Duration
		leave bool
		say   shed.Outcome
		want  shed.Outcome
	}{
		"served":               {0, false, shed.Served, shed.Served},
		"failed":               {0, false, shed.Failed, shed.Failed},
		"too late":             {2 * time.Second, false, shed.Served, shed.TimedOut},
		"the client left":      {0, true, shed.Failed, shed.Ignored},
		"a mistake of another": {0, false, shed.Ignored, shed.Ignored},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				heard := &recorder{}
				g := admission.MustNew(admission.Options{Deadline: admission.Within(time.Second), Observer: heard})
				outer, leave := context.WithCancel(t.Context())
				defer leave()
				ctx, permit, err := g.AdmitRequest(request("POST", "/x").WithContext(outer))
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(c.after)
				if c.leave {
					leave()
				}
				permit.Release(c.say)
				if e := heard.all(); len(e) != 1 || e[0].Outcome != c.want {
					t.Errorf("%+v, want %v", e, c.want)
				}
				if _, open := <-ctx.Done(); open || admission.Charge(ctx, 1) {
					t.Error("the context goes on after the release")
				}
				atRest(t, g)
			})
		})
	}
}

func TestRoutesOfCallsFollowAReload(t *testing.T) {
	level := func(g *admission.Gate, path string) priority.Level {
		ctx, permit, err := g.AdmitRequest(request("POST", path))
		if err != nil {
			t.Fatal(err)
		}
		defer permit.Release(shed.Served)
		v, _ := admission.FromContext(ctx)
		return v.Level
	}
	rules := func(l priority.Level) admission.Options {
		return admission.Options{Routes: map[string]admission.Rule{"/shop.Checkout/": admission.AtLevel(l)}}
	}
	g := admission.MustNew(rules(priority.High))
	for i := range 3000 { // more than are remembered
		if got := level(g, fmt.Sprintf("/shop.Checkout/%d", i)); got != priority.High {
			t.Fatalf("path %d is at %v", i, got)
		}
	}
	if got := level(g, "/shop.Other/Pay"); got != priority.Normal {
		t.Errorf("a path of no rule is at %v", got)
	}
	if err := g.Update(rules(priority.Critical)); err != nil {
		t.Fatal(err)
	}
	if got := level(g, "/shop.Checkout/1"); got != priority.Critical {
		t.Errorf("after the reload it is at %v", got)
	}
	if got := level(g, "//shop.Checkout/1"); got != priority.Normal {
		t.Errorf("a path that is not plain is at %v", got)
	}
}

func TestANilGateAdmitsEveryRequest(t *testing.T) {
	r := request("POST", "/x")
	ctx, permit, err := (*admission.Gate)(nil).AdmitRequest(r)
	if err != nil || ctx != r.Context() {
		t.Errorf("%v %v", ctx, err)
	}
	permit.Streaming()
	permit.Release(shed.Served)
}

func TestAdmitRequestAllocatesTheContextAlone(t *testing.T) {
	g := admission.MustNew(admission.Options{Identify: caller.APIKey("X-API-Key", anyCaller), Routes: map[string]admission.Rule{"/x": admission.AtLevel(priority.High)}})
	r := request("POST", "/x", "X-API-Key", "ann")
	n := testing.AllocsPerRun(1000, func() {
		_, permit, err := g.AdmitRequest(r)
		if err != nil {
			t.Fatal(err)
		}
		permit.Release(shed.Served)
	})
	if n > 1 {
		t.Errorf("%v allocations, want 1", n)
	}
}
