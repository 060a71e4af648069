package shed_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/headgate-go/headgate/shed"
)

func TestThroughputDefaults(t *testing.T) {
	for _, c := range []struct {
		limit shed.Limit
		want  int
	}{
		{shed.Throughput{}, 32},
		{shed.Throughput{Max: 512}, 32},
		{shed.Throughput{Max: 8}, 8},
		{shed.Throughput{Min: 100}, 100},
		{shed.Throughput{Min: 5000}, 5000},
		{shed.Throughput{Initial: 7}, 7},
	} {
		law, err := c.limit.New()
		if err != nil {
			t.Fatalf("%+v: %v", c.limit, err)
		}
		if law.Limit() != c.want {
			t.Errorf("%+v starts at %d, want %d", c.limit, law.Limit(), c.want)
		}
	}
}

func TestThroughputNamesTheBadField(t *testing.T) {
	for field, limit := range map[string]shed.Limit{
		"Min":           shed.Throughput{Min: -1},
		"Max":           shed.Throughput{Max: -1},
		"Max = 3":       shed.Throughput{Min: 4, Max: 3},
		"Initial":       shed.Throughput{Initial: 2000},
		"TargetLatency": shed.Throughput{TargetLatency: -time.Second},
	} {
		if _, err := limit.New(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%+v: error %v does not name %s", limit, err, field)
		}
	}
}

// Whatever it is fed, the law stays within its bounds and reports what it did.
func TestThroughputStaysWithinItsBounds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		law, err := shed.Throughput{Min: 3, Max: 60}.New()
		if err != nil {
			t.Fatal(err)
		}
		now, limit := time.Unix(0, 0), law.Limit()
		for range 5000 {
			now = now.Add(time.Duration(rng.ExpFloat64() * float64(10*time.Millisecond)))
			load := shed.Load{InFlight: rng.IntN(200), Waiting: rng.IntN(3)}
			step := law.Note(now, load)
			if rng.IntN(2) == 0 {
				step = law.Done(now, load, shed.Sample{
					Admitted: now.Add(-time.Duration(rng.IntN(1e9))),
					Deadline: now.Add(time.Duration(rng.IntN(2e9) - 1e9)),
					Outcome:  shed.Outcome(rng.IntN(4)),
				})
			}
			got := law.Limit()
			if got < 3 || got > 60 {
				t.Fatalf("limit %d left its bounds", got)
			}
			if step.Moved() && step.Limit != got {
				t.Fatalf("step says %d, limit is %d", step.Limit, got)
			}
			limit = got
		}
		_ = limit
	}
}
