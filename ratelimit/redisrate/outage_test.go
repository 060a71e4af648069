package redisrate

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/account/accounttest"
	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/redistest"
)

// outage runs eight processes at twice the ceiling while the store is away from
// 1.5 s to 5.5 s, and for 5 s after.
func outage(t *testing.T, s *redistest.Server, away, back func(), o ...option) {
	const from, to, end = 1500 * time.Millisecond, 5500 * time.Millisecond, 10500 * time.Millisecond
	fleet := newCrowd(t, 8, func() redis.UniversalClient { return s.Client(t) }, 1000, 100, append(o, shipped)...)
	fleet.meet(t, "other")
	took := make(chan [2]time.Duration, 1)
	begin := time.Now()
	go func() {
		time.Sleep(from)
		a := time.Since(begin)
		away()
		time.Sleep(to - from)
		b := time.Since(begin)
		back()
		took <- [2]time.Duration{a, b}
	}()
	all, stalled := fleet.load(end, func(int) float64 { return 250 }, nil)
	real := <-took
	down, up, length := real[0], real[1], real[1]-real[0]

	during, late, added := 0, []answer{}, []time.Duration{}
	for _, a := range all {
		if a.arrived >= down && a.arrived < up {
			if a.OK {
				during++
			}
			added = append(added, a.took)
			if a.took > 10*time.Millisecond {
				late = append(late, a)
			}
		}
	}
	bound := 1.05 * (100 + 1000*length.Seconds())
	over := accounttest.Excess(admittedOf(all), 1000, 100)
	slices.Sort(added)
	t.Logf("%d admitted in an outage of %v, bound %.0f; %d waited, longest %v; then p50 %v; excess over the whole run %.1f; stalled %v",
		during, length, bound, len(late), added[len(added)-1], added[len(added)/2], over, stalled)
	if float64(during) > bound || float64(during) < 0.9*1000*length.Seconds()-1000*stalled.total.Seconds() {
		t.Errorf("%d admitted in the outage", during)
	}
	if over > 20 { // nothing, but for what a stall of the machine hides from the processes
		t.Errorf("in some window %.0f above burst + rate·t passed", over)
	}
	if d := added[len(added)-1]; d > 25*time.Millisecond+2*stalled.worst {
		t.Errorf("a request waited %v", d)
	}
	if d := added[len(added)/2]; d > 20*time.Microsecond+stalled.worst/1000 {
		t.Errorf("median in the outage %v", d)
	}
	again := slices.DeleteFunc(late, func(a answer) bool { return a.arrived < down+500*time.Millisecond })
	if len(again) > len(added)/200 && stalled.worst < 10*time.Millisecond { // waits are for the store only once; the rest is the machine's
		t.Errorf("%d requests waited long after the outage was met, the first %v", len(again), again[0].took)
	}
	sharedAgain(t, fleet)
	for _, a := range all {
		if a.arrived > up+5*time.Second+2*stalled.worst && a.OK && a.Source == ratelimit.SourceShare {
			t.Errorf("the share decided %v after the store was back", a.arrived-up)
			break
		}
	}
}

// sharedAgain waits until nobody of the fleet decides by its share any more.
func sharedAgain(t *testing.T, fleet crowd) {
	t.Helper()
	for _, l := range fleet {
		redistest.Eventually(t, 5*time.Second, "shared again", func() bool {
			return take(l, "all", 1, 0).Source != ratelimit.SourceShare
		})
		if l.Snapshot().Degraded {
			t.Errorf("%+v", l.Snapshot())
		}
	}
}

func TestStoppedServer(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	outage(t, s, func() { s.Suspend() }, func() { s.Resume() })
}

func TestKilledServerThatComesBackEmpty(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	outage(t, s, s.Kill, s.Start)
}

func TestKilledServerWithoutLeases(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	outage(t, s, s.Kill, s.Start, ahead(0))
}
