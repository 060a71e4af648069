package dashboard_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/dashboard"
	"github.com/headgate-go/headgate/outbound/pacer"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// data is the part of a frame that the tests look at.
type data struct {
	Title   string
	Runbook string
	InForce bool
	Gates   []struct {
		Name     string
		Admitted [priority.Count]int
		Refused  [priority.Count]int
		Reasons  map[string][priority.Count]int
		Pools    []struct {
			Name            string
			Limit, InFlight int
			Waiting         [priority.Count]int
			Waits           []int
			Held            [priority.Count]float64
		}
		Limits []struct{ Name string }
		Routes []struct {
			Route           string
			Served, Limited int
			Shed            [priority.Count]int
			Held            float64
		}
		Turned, Busiest, Served []struct {
			Alias string
			Count float64
		}
		Limited []struct {
			Alias   string
			Refused int
		}
	}
	Calls []struct {
		Operations []struct {
			Service, Operation string
			Rate               *float64
		}
		More int
	}
	Queues []struct {
		Name    string
		Waiting [priority.Count]int
	}
	Stores []struct {
		Name     string
		Degraded bool
	}
}

func frame(t *testing.T, h http.Handler) (d data) {
	t.Helper()
	w := get(h, "/headgate/data.json")
	if err := json.Unmarshal(w.Body.Bytes(), &d); err != nil || w.Code != 200 {
		t.Fatalf("answer %d %q: %v", w.Code, w.Body, err)
	}
	return d
}

func TestAFrameShowsEverythingItIsGiven(t *testing.T) {
	gate := admission.MustNew(admission.Options{
		Name: "edge", Pool: admission.Pool{Limit: shed.Fixed(1), MaxWait: admission.NoWait}, Rate: fleet{ratelimit.PerKey(50, 100)},
	})
	held, err := gate.Admit(t.Context(), admission.Ticket{})
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release(shed.Served)
	_, _ = gate.Admit(t.Context(), admission.Ticket{Level: priority.High})
	q, err := queue.NewQueue(queue.WorkConfig[int]{})
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Push(time.Now(), 1, queue.Ticket{Level: priority.Critical}); err != nil {
		t.Fatal(err)
	}
	d := frame(t, dashboard.Handler(
		dashboard.Gate(gate), dashboard.Queue("mail", q), dashboard.Store(fleet{}), dashboard.Outbound("billing", manyOperations{})))
	g := d.Gates[0]
	if g.Name != "edge" || g.Admitted != [4]int{0, 1, 0, 0} || g.Refused != [4]int{0, 0, 1, 0} || g.Reasons["capacity"] != g.Refused {
		t.Errorf("gate %+v", g)
	}
	if len(g.Limits) != 2 || g.Limits[0].Name != "rate" || len(g.Pools[0].Waits) != 14 {
		t.Errorf("gate %+v", g)
	}
	if len(d.Stores) != 1 || !d.Stores[0].Degraded {
		t.Errorf("stores %+v, want the fleet once", d.Stores)
	}
	if len(d.Queues) != 1 || d.Queues[0].Waiting != [4]int{0, 0, 0, 1} {
		t.Errorf("queues %+v", d.Queues)
	}
	ops := d.Calls[0].Operations
	if len(ops) != 12 || d.Calls[0].More != 28 || ops[0].Operation != "paused" || ops[0].Rate != nil {
		t.Errorf("%d operations, %d more, the first %+v", len(ops), d.Calls[0].More, ops[0])
	}
}

func TestAFrameNamesRoutesAndCallers(t *testing.T) {
	gate := admission.MustNew(admission.Options{
		Pool:     admission.Pool{Limit: shed.Fixed(1), MaxWait: admission.NoWait},
		Identify: caller.Header("X-Caller"),
	})
	inside := make(chan struct{})
	leave := make(chan struct{})
	mux := http.NewServeMux()
	mux.Handle("GET /slow", gate.At(priority.High)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(inside); <-leave })))
	send := func(name string) {
		r := httptest.NewRequest("GET", "/slow", nil)
		r.Header.Set("X-Caller", name)
		mux.ServeHTTP(httptest.NewRecorder(), r)
	}
	done := make(chan struct{})
	go func() { defer close(done); send("holds") }()
	<-inside
	send("waits")
	close(leave)
	<-done
	g := frame(t, dashboard.Handler(dashboard.Gate(gate))).Gates[0]
	if len(g.Routes) != 1 || g.Routes[0].Route != "GET /slow" || g.Routes[0].Served != 1 || g.Routes[0].Shed != [4]int{2: 1} {
		t.Errorf("routes %+v", g.Routes)
	}
	if len(g.Turned) != 1 || g.Turned[0].Count != 1 || len(g.Busiest) != 1 || g.Busiest[0].Count <= 0 || g.Busiest[0].Alias == g.Turned[0].Alias {
		t.Errorf("turned away %+v, busiest %+v", g.Turned, g.Busiest)
	}
	if len(g.Served) != 1 || g.Served[0].Count != 1 || g.Served[0].Alias != g.Busiest[0].Alias {
		t.Errorf("served most %+v, busiest %+v", g.Served, g.Busiest)
	}
	if held := g.Pools[0].Held; held[2] <= 0 || held[0]+held[1]+held[3] != 0 {
		t.Errorf("slot time by level %v, want that of high work alone", held)
	}
}

type fleet struct{ ratelimit.Limiter }

func (fleet) StoreStats() ratelimit.StoreStats {
	return ratelimit.StoreStats{Name: "fleet", State: "degraded", Degraded: true}
}

type manyOperations struct{}

func (manyOperations) Stats() (s pacer.Stats) {
	for range 40 {
		s.Operations = append(s.Operations, pacer.OperationStats{Multiplier: 1, Attempts: 9, Rate: 1})
	}
	s.Operations[30].Key.ID, s.Operations[30].PauseLeft = "paused", time.Second
	s.Operations[30].Rate = ratelimit.Unlimited.Policy(ratelimit.Key{}).Rate
	return s
}

func TestFiguresAreReadOnceForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &countingGate{}
		h := dashboard.Handler(dashboard.Gate(c))
		for range 100 {
			get(h, "/data.json")
		}
		if c.read != 1 {
			t.Errorf("read %d times for a hundred readers", c.read)
		}
		time.Sleep(time.Second)
		if get(h, "/data.json"); c.read != 2 {
			t.Errorf("read %d times a second later", c.read)
		}
	})
}

type countingGate struct{ read int }

func (c *countingGate) Stats() admission.Stats { c.read++; return admission.Stats{} }
