package admission_test

import (
	"context"
	"errors"
	"math"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/admissiontest"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

func TestOptionsThatMakeNoSenseNameTheField(t *testing.T) {
	for want, opts := range map[string]admission.Options{
		"MaxWait":                       {Pool: admission.Pool{MaxWait: -2}},
		"MaxWaiting":                    {Pool: admission.Pool{MaxWaiting: -1}},
		"MaxWaitingBytes":               {Pool: admission.Pool{MaxWaitingBytes: -1}},
		"CriticalReserve":               {Pool: admission.Pool{CriticalReserve: -1}},
		"CallerCap":                     {CallerCap: -1},
		"Deadline":                      {Deadline: admission.TimeoutHeader("X-Timeout", -1)},
		"Fixed":                         {Pool: admission.Pool{Limit: shed.Fixed(0)}},
		`Pools[""]`:                     {Pools: map[string]admission.Pool{"": {}}},
		`Pools["db"]`:                   {Pools: map[string]admission.Pool{"db": {MaxWaiting: -1}}},
		"Max = -1":                      {Pool: admission.Pool{Limit: shed.Throughput{Max: -1}}},
		"Rate":                          {Rate: ratelimit.PerKey(-1, 1)},
		"Options.Quota":                 {Quota: ratelimit.PerKey(1, -1)},
		"Options.Address":               {Address: ratelimit.PerKey(badNumber(), 1)},
		"Trusted":                       {ClientIP: caller.ClientIP{Trusted: []string{"banana"}}},
		"Options.HTTP.RateLimitHeaders": {HTTP: admission.HTTP{RateLimitHeaders: 1 << 7}},
		`Routes["/a"]`:                  {Routes: map[string]admission.Rule{"/a": admission.AtLevel(priority.Normal, nil)}},
	} {
		if _, err := admission.New(opts); err == nil || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), "admission:") != 1 {
			t.Errorf("%s: error = %v", want, err)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("MustNew did not panic")
		}
	}()
	admission.MustNew(admission.Options{Pool: admission.Pool{MaxWaiting: -1}})
}

func badNumber() rate.Limit { return rate.Limit(math.NaN()) }

func TestZeroOptionsMakeAWorkingGate(t *testing.T) {
	g := admission.MustNew(admission.Options{})
	if w := get(g.Handler(okHandler())); w.Code != http.StatusOK {
		t.Errorf("status = %d", w.Code)
	}
	s := g.Stats()
	if s.Name != "default" || s.Pools[0].Limit < 1 || s.Pools[0].Bound < 64 || s.Count(shed.Admitted) != 1 {
		t.Errorf("stats = %+v", s)
	}
	atRest(t, g)
}

func TestNilGatePassesThrough(t *testing.T) {
	var g *admission.Gate
	h := g.At(priority.Critical)(g.Handler(okHandler()))
	if w := get(h); w.Code != http.StatusOK {
		t.Errorf("status = %d", w.Code)
	}
	p, err := g.Admit(context.Background(), admission.Ticket{})
	if err != nil {
		t.Fatal(err)
	}
	p.Release(shed.Served)
	if g.Stats().Name != "" || g.Drain(context.Background()) != nil || g.Close() != nil {
		t.Error("a nil gate has no state and nothing to drain")
	}
}

func TestMisuseOfRoutesPanicsAtSetUp(t *testing.T) {
	g := capped(1)
	for name, misuse := range map[string]func(){
		"level":        func() { g.At(priority.Level(9)) },
		"Cost(0)":      func() { admission.Cost(0) },
		"Cap(-1)":      func() { admission.Cap(-1) },
		"Stream(0)":    func() { admission.Stream(0) },
		"Timeout(0)":   func() { admission.Timeout(0) },
		"Rate(nil)":    func() { admission.Rate(nil) },
		"Rate(-1)":     func() { admission.Rate(ratelimit.PerKey(-1, 1)) },
		"CostOf(nil)":  func() { admission.CostOf(nil) },
		"In":           func() { g.At(priority.Normal, admission.InPool("nowhere")) },
		"Exempt and":   func() { g.At(priority.Normal, admission.Exempt(), admission.Cost(2)) },
		"Cap + Stream": func() { g.At(priority.Normal, admission.Cap(1), admission.Stream(1)) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s did not panic", name)
				}
			}()
			misuse()
		}()
	}
}

// TestSlotComesBackOnEveryExit is the promise that a slot taken is given back
// exactly once, and that a panic goes up unchanged.
func TestSlotComesBackOnEveryExit(t *testing.T) {
	boom := errors.New("boom")
	exits := map[string]struct {
		handler http.HandlerFunc
		panics  any
	}{
		"return":  {handler: func(http.ResponseWriter, *http.Request) {}},
		"panic":   {handler: func(http.ResponseWriter, *http.Request) { panic(boom) }, panics: boom},
		"abort":   {handler: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, panics: http.ErrAbortHandler},
		"goexit":  {handler: func(http.ResponseWriter, *http.Request) { runtime.Goexit() }},
		"nil map": {handler: func(http.ResponseWriter, *http.Request) { panic("text") }, panics: "text"},
	}
	for name, exit := range exits {
		t.Run(name, func(t *testing.T) {
			g := capped(1)
			h := g.At(priority.Normal, admission.Cap(1))(exit.handler)
			for range 3 {
				var wg sync.WaitGroup
				wg.Go(func() {
					defer func() {
						if got := recover(); got != exit.panics {
							t.Errorf("recovered %v, want %v", got, exit.panics)
						}
					}()
					get(h)
				})
				wg.Wait()
			}
			if n := g.Stats().Count(shed.Admitted); n != 3 {
				t.Errorf("admitted %d of 3", n)
			}
			atRest(t, g)
		})
	}
}

func TestPermitIsGivenBackOnce(t *testing.T) {
	heard := &recorder{}
	g := admission.MustNew(admission.Options{Pool: admission.Pool{Limit: shed.Fixed(2)}, CallerCap: 2, Observer: heard})
	p, err := g.Admit(context.Background(), admission.Ticket{})
	if err != nil {
		t.Fatal(err)
	}
	other, _ := g.Admit(context.Background(), admission.Ticket{})
	twin := p
	p.Release(shed.Served)
	p.Release(shed.Served)
	twin.Release(shed.Failed)
	if n := g.Stats().InFlight(); n != 1 {
		t.Errorf("in flight = %d, want 1", n)
	}
	other.Release(shed.Served)
	if len(heard.all()) != 2 {
		t.Errorf("observed %d ends of 2 permits", len(heard.all()))
	}
	atRest(t, g)
	var zero admission.Permit
	zero.Release(shed.Served)
}

func TestAdmitRefusesWithARejection(t *testing.T) {
	g := capped(1)
	p, _ := g.Admit(context.Background(), admission.Ticket{})
	defer p.Release(shed.Served)
	_, err := g.Admit(context.Background(), admission.Ticket{Level: priority.Critical})
	var rej *admission.Rejection
	if !errors.As(err, &rej) || !errors.Is(err, shed.Capacity) || rej.RetryAfter < time.Second {
		t.Errorf("error = %#v", err)
	}
}

func TestSameGateMetTwiceDecidesOnce(t *testing.T) {
	heard := &recorder{}
	g := admission.MustNew(admission.Options{
		Pool: admission.Pool{Limit: shed.Fixed(1), MaxWait: admission.NoWait}, Rate: ratelimit.PerKey(0, 1), Observer: heard,
	})
	other := capped(1)
	h := g.Handler(other.Handler(g.At(priority.Critical, admission.Cost(5))(other.Handler(okHandler()))))
	if w := get(h); w.Code != http.StatusOK {
		t.Errorf("status = %d", w.Code)
	}
	if n := len(heard.all()); n != 1 {
		t.Errorf("observed %d visits of one request", n)
	}
	if a, b := g.Stats().Count(shed.Admitted), other.Stats().Count(shed.Admitted); a != 1 || b != 1 {
		t.Errorf("admitted %d and %d", a, b)
	}
	atRest(t, g)
	atRest(t, other)
}

func TestPoolsAreSeparate(t *testing.T) {
	g := admission.MustNew(admission.Options{
		Pool:  admission.Pool{Limit: shed.Fixed(1), MaxWait: admission.NoWait},
		Pools: map[string]admission.Pool{"db": {Limit: shed.Fixed(1), MaxWait: admission.NoWait}},
	})
	block := newHeld()
	db := g.At(priority.Normal, admission.InPool("db"))(block)
	done := make(chan struct{})
	go func() { defer close(done); get(db) }()
	for block.inside.Load() == 0 {
		runtime.Gosched()
	}
	mustRefuse(t, get(db), http.StatusServiceUnavailable, shed.Capacity)
	if w := get(g.Handler(okHandler())); w.Code != http.StatusOK {
		t.Errorf("the unnamed pool answered %d", w.Code)
	}
	close(block.release)
	<-done
	if s := g.Stats(); len(s.Pools) != 2 || s.Pools[1].Name != "db" || s.Pools[1].Limit != 1 {
		t.Errorf("pools = %+v", s.Pools)
	}
	atRest(t, g)
}

func TestSameOptionsBuildTwoGatesThatShareNothing(t *testing.T) {
	opts := admission.Options{Rate: ratelimit.PerKey(0, 1), Pool: admission.Pool{Limit: shed.Fixed(1), MaxWait: admission.NoWait}}
	for range 2 {
		g := admission.MustNew(opts)
		h := g.Handler(okHandler())
		if w := get(h); w.Code != http.StatusOK {
			t.Errorf("status = %d", w.Code)
		}
		if w := get(h); w.Code != http.StatusTooManyRequests {
			t.Errorf("status = %d, want 429", w.Code)
		}
	}
}

func TestTestGates(t *testing.T) {
	if w := get(admissiontest.Open().Handler(okHandler())); w.Code != http.StatusOK {
		t.Errorf("open: %d", w.Code)
	}
	mustRefuse(t, get(admissiontest.Refuse(shed.QueueFull).Handler(okHandler())), 503, shed.QueueFull)
	mustRefuse(t, get(admissiontest.Refuse(shed.RateLimited).Handler(okHandler())), 429, shed.RateLimited)
	defer func() {
		if recover() == nil {
			t.Error("Refuse(Admitted) did not panic")
		}
	}()
	admissiontest.Refuse(shed.Admitted)
}
