package replay

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/internal/size/traffic"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

const ms = time.Millisecond

// random returns records in order of arrival, some 200 a second.
func random(n int, seed uint64) []traffic.Record {
	rng := rand.New(rand.NewPCG(seed, seed))
	records := make([]traffic.Record, n)
	at := time.Duration(0)
	for i := range records {
		at += time.Duration(rng.ExpFloat64() * float64(5*ms))
		records[i] = traffic.Record{
			Arrived: at, Took: time.Duration(rng.IntN(60_000)+1000) * time.Microsecond, Timed: true,
			Caller: uint64(rng.IntN(5)), Route: uint16(rng.IntN(3)), Status: 200,
		}
	}
	return records
}

func replayed(t *testing.T, o Options, records []traffic.Record) *Result {
	t.Helper()
	g, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		g.Arrive(r)
	}
	return g.Finish()
}

// TestReplayIsWhatTheGateDoes runs the same requests through an admission.Gate,
// each on a goroutine of its own in fake time, and compares every reason.
func TestReplayIsWhatTheGateDoes(t *testing.T) {
	records := random(600, 7)
	level := func(route uint16) priority.Level { return priority.All()[int(route)] }
	for name, o := range map[string]Options{
		"open":     {Limit: shed.Fixed(100), MaxWait: 50 * ms},
		"rates":    {Rate: ratelimit.PerKey(20, 10), Limit: shed.Fixed(100), MaxWait: 50 * ms},
		"capacity": {Limit: shed.Fixed(4), MaxWait: 40 * ms},
		"levels":   {Limit: shed.Fixed(3), MaxWait: 100 * ms, Level: level, Deadline: 90 * ms},
		"all":      {Rate: ratelimit.PerKey(30, 5), Limit: shed.Throughput{Max: 6}, MaxWait: 60 * ms, Level: level},
	} {
		t.Run(name, func(t *testing.T) {
			got := replayed(t, o, records).Reasons
			synctest.Test(t, func(t *testing.T) {
				if want := lived(t, o, records); got != want {
					t.Errorf("replay %v\ngate   %v", got, want)
				}
			})
			if total := sum(got); total != len(records) {
				t.Errorf("%d requests ended in %d reasons", len(records), total)
			}
		})
	}
}

func lived(t *testing.T, o Options, records []traffic.Record) (reasons [shed.ReasonCount]int) {
	gate, err := admission.New(admission.Options{Rate: o.Rate, Pool: admission.Pool{Limit: o.Limit, MaxWait: o.MaxWait}})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	epoch := time.Now()
	for _, r := range records {
		wg.Go(func() {
			time.Sleep(r.Arrived)
			ticket := admission.Ticket{Caller: caller.Caller{Key: key(r.Caller).ID, Space: "log", Verified: true}}
			if o.Level != nil {
				ticket.Level = o.Level(r.Route)
			}
			if o.Deadline > 0 {
				ticket.Deadline = epoch.Add(r.Arrived + o.Deadline)
			}
			permit, err := gate.Admit(context.Background(), ticket)
			mu.Lock()
			reasons[reasonOf(err)]++
			mu.Unlock()
			if err == nil {
				time.Sleep(r.Took)
				permit.Release(outcome(ticket.Deadline))
			}
		})
	}
	wg.Wait()
	return reasons
}

func outcome(deadline time.Time) shed.Outcome {
	if !deadline.IsZero() && time.Now().After(deadline) {
		return shed.TimedOut
	}
	return shed.Served
}

func reasonOf(err error) shed.Reason {
	if err == nil {
		return shed.Admitted
	}
	return err.(*admission.Rejection).Reason
}

func sum(reasons [shed.ReasonCount]int) (n int) {
	for _, r := range reasons {
		n += r
	}
	return n
}

func TestOneSlotServesOneAtATime(t *testing.T) {
	var records []traffic.Record
	for i := range 4 { // together; each takes 10 ms, and nobody waits longer than 25 ms
		records = append(records, traffic.Record{Took: 10 * ms, Timed: true, Caller: uint64(i), Status: 200})
	}
	r := replayed(t, Options{Limit: shed.Fixed(1), MaxWait: 25 * ms}, records)
	if r.Reasons[shed.Admitted] != 3 || r.Reasons[shed.WaitedTooLong] != 1 || r.MostInFlight != 1 || r.MostWaiting != 3 {
		t.Errorf("%+v", r)
	}
	if r.Waits.Count() != 2 || r.Waits.Seconds() != 0.03 {
		t.Errorf("%d waited %v in all, want 2 and 30ms", r.Waits.Count(), r.Waits.Mean()*2)
	}
}

func TestRatesAreCountedByCaller(t *testing.T) {
	var records []traffic.Record
	for range 5 {
		records = append(records, traffic.Record{Caller: 1, Route: 2})
	}
	records = append(records, traffic.Record{Caller: 2, Route: 1})
	r := replayed(t, Options{Rate: ratelimit.PerKey(1, 2), Limit: shed.Fixed(1)}, records)
	limited, full := r.Refused()
	if limited != 3 || full != 0 || r.Callers[1] != 3 || len(r.Callers) != 1 {
		t.Errorf("%d with 429, %d with 503, callers %v", limited, full, r.Callers)
	}
	if limited, _ := r.Routes[2].Refused(); limited != 3 || r.Routes[1].Reasons[shed.Admitted] != 1 {
		t.Errorf("by route: %+v", r.Routes)
	}
}

func TestTheLawMovesAndIsTold(t *testing.T) {
	r := replayed(t, Options{Limit: shed.Throughput{Max: 64, Initial: 2}, MaxWait: 200 * ms}, random(4000, 9))
	if r.FirstLimit != 2 || r.MostLimit <= 2 || r.LastLimit > r.MostLimit || r.LeastLimit > 2 {
		t.Errorf("limits %d, %d to %d, %d", r.FirstLimit, r.LeastLimit, r.MostLimit, r.LastLimit)
	}
}

func TestNumbersThatMakeNoSenseAreNamed(t *testing.T) {
	for want, o := range map[string]Options{
		"Fixed":   {Limit: shed.Fixed(0)},
		"MaxWait": {Limit: shed.Fixed(1), MaxWait: -time.Second},
		"burst":   {Rate: ratelimit.PerKey(1, 0)},
	} {
		if _, err := New(o); err == nil || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(want)) {
			t.Errorf("error %v does not name %s", err, want)
		}
	}
}

func TestOutcomesAreReadAsTheGateReadsThem(t *testing.T) {
	statuses := []int{200, 304, 404, 499, 500, 502, 503, 504, 101}
	want := []shed.Outcome{
		shed.Served, shed.Served, shed.Ignored, shed.Ignored, shed.Failed, shed.Failed,
		shed.TimedOut, shed.TimedOut, shed.Ignored,
	}
	var got []shed.Outcome
	for _, s := range statuses {
		got = append(got, outcomeOf(s))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
