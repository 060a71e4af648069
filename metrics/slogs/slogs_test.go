package slogs_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/metrics/slogs"
	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/outbound/verdict"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// noTime leaves the time out, so that lines can be compared.
func noTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// watched is a log of one gate whose stats the test sets.
type watched struct {
	*slogs.Log
	out   bytes.Buffer
	stats admission.Stats
}

func watch() *watched {
	w := &watched{stats: admission.Stats{Name: "edge", Pools: []admission.PoolStats{{Stats: queue.Stats{Limit: 64, Bound: 128}}}}}
	w.Log = slogs.New(slog.New(slog.NewTextHandler(&w.out, &slog.HandlerOptions{ReplaceAttr: noTime})), slogs.Options{})
	w.Attach("edge", func() admission.Stats { return w.stats })
	return w
}

// after lets a request end d later and returns what was written.
func (w *watched) after(d time.Duration) string {
	time.Sleep(d)
	w.out.Reset()
	w.Observe(admission.Event{Gate: "edge"})
	return w.out.String()
}

func (w *watched) want(t *testing.T, d time.Duration, parts ...string) {
	t.Helper()
	got := w.after(d)
	if len(parts) == 0 && got != "" || strings.Count(got, "\n") > 1 {
		t.Errorf("wrote %q", got)
	}
	for _, p := range parts {
		if !strings.Contains(got, p) {
			t.Errorf("wrote %q, want %q in it", got, p)
		}
	}
}

func TestACutIsToldWithTheNumbersInForce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch()
		pool := &w.stats.Pools[0]
		w.want(t, 0)
		pool.Limit, pool.Cause, pool.InFlight, pool.DrainRate = 40, shed.CauseLatency, 38, 170
		w.want(t, 500*time.Millisecond) // not looked at yet
		w.want(t, time.Second, "limit cut", "from=64", "limit=40", "cause=latency", "in_flight=38", "drain_rate=170", "gate=edge")
		pool.Limit = 30
		w.want(t, time.Second) // too soon for another line
		w.want(t, 10*time.Second, "from=40", "limit=30")
		pool.Limit = 50
		w.want(t, 10*time.Second)
		pool.Limit = 45
		w.want(t, 10*time.Second, "from=50", "limit=45")
	})
}

func TestTheFirstRefusalOfALevelIsNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch()
		refuse := func(l priority.Level, r shed.Reason) { w.stats.Visits[l.Index()][r] += 5 }
		w.want(t, 0)
		refuse(priority.Batch, shed.QueueFull)
		w.want(t, time.Second, "level=WARN", "shedding", "level=batch", "refused=5", "reason=queue-full", "limit=64")
		for range 70 { // it goes on: no news
			refuse(priority.Batch, shed.QueueFull)
			w.want(t, time.Second)
		}
		refuse(priority.Normal, shed.RateLimited) // the caller's doing
		w.want(t, time.Second)
		refuse(priority.Critical, shed.Evicted)
		w.want(t, time.Second, "level=ERROR", "level=critical", "reason=evicted")
		w.want(t, 2*time.Minute)
		refuse(priority.Batch, shed.DeadlineUnmeetable)
		w.want(t, time.Second, "level=batch")
	})
}

func TestDrainingAndStoresAreToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch()
		w.want(t, 0)
		w.stats.Draining = true
		w.want(t, time.Second, "draining", "in_flight=0")
		w.want(t, time.Minute)
		store := ratelimit.StoreStats{Name: "fleet", Degraded: true, Why: "timeout", Peers: 3, ShareRate: 30}
		w.stats.Limits = []admission.LimitStats{{Name: "rate", Stats: ratelimit.Stats{Stores: []ratelimit.StoreStats{store}}}}
		w.want(t, time.Second, "shared limit degraded", "store=fleet", "why=timeout", "share=30")
		w.want(t, time.Minute)
		w.stats.Limits[0].Stores[0].Degraded = false
		w.want(t, time.Second, "shared limit restored")
	})
}

func TestThrottlesAreRationed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch()
		o := w.Outbound()
		slowed := outbound.Event{Transport: "billing", Type: outbound.EventSlowed, Kind: verdict.Throttled, Rate: 50, Multiplier: 0.5}
		for range 100 {
			o.Observe(slowed)
		}
		o.Observe(outbound.Event{Transport: "billing", Type: outbound.EventStopped, Stop: outbound.StopBudgetSpent})
		o.Observe(outbound.Event{Transport: "billing", Type: outbound.EventAnswered})
		lines := strings.Split(strings.TrimSpace(w.out.String()), "\n")
		if len(lines) != 2 || !strings.Contains(lines[0], "multiplier=0.5") || !strings.Contains(lines[1], "retry budget spent") {
			t.Errorf("wrote %q", lines)
		}
		w.out.Reset()
		time.Sleep(10 * time.Second)
		o.Observe(slowed)
		if !strings.Contains(w.out.String(), "times=100") {
			t.Errorf("wrote %q, want it to say how often it happened", w.out.String())
		}
	})
}

func TestARealGateIsLoggedAndUnloggedRequestsAllocateNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch()
		gate := admission.MustNew(admission.Options{Name: "real", Pool: admission.Pool{Limit: shed.Fixed(1), MaxWait: admission.NoWait}, Observer: w})
		held, err := gate.Admit(t.Context(), admission.Ticket{})
		if err != nil {
			t.Fatal(err)
		}
		defer held.Release(shed.Served)
		_, err = gate.Admit(t.Context(), admission.Ticket{Level: priority.High})
		if err == nil || !strings.Contains(w.out.String(), "shedding") {
			t.Errorf("after %v: %q", err, w.out.String())
		}
		e := admission.Event{Gate: "real"}
		if n := testing.AllocsPerRun(100, func() { w.Observe(e) }); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

func ExampleNew() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: noTime}))
	gate := admission.MustNew(admission.Options{
		Name: "edge", Pool: admission.Pool{Limit: shed.Fixed(1), MaxWait: admission.NoWait}, Observer: slogs.New(logger, slogs.Options{}),
	})
	first, _ := gate.Admit(context.Background(), admission.Ticket{})
	defer first.Release(shed.Served)
	_, _ = gate.Admit(context.Background(), admission.Ticket{Level: priority.Batch})
	// Output:
	// level=WARN msg=shedding level=batch refused=1 reason=capacity limit=1 in_flight=1 waiting=0 bound=2048 drain_rate=0 gate=edge
}
