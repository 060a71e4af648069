package admission_test

import (
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
	"github.com/headgate-go/headgate/shed/pressure"
)

// signal is one that a test sets.
type signal struct{ bits atomic.Uint64 }

func (s *signal) set(v float64) { s.bits.Store(math.Float64bits(v)) }
func (s *signal) read() float64 { return math.Float64frombits(s.bits.Load()) }

func TestPressureShedsTheLowestLevelsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var heap signal
		heap.set(0.9)
		heard := &recorder{}
		g := admission.MustNew(admission.Options{
			Pool: admission.Pool{Limit: shed.Fixed(100)}, Observer: heard,
			Pressure: pressure.Guard{Signals: []pressure.Signal{{Name: "heap", Read: heap.read, High: 0.85, Low: 0.80}}},
		})
		codes := func() (all [priority.Count]int) {
			for i, l := range priority.All() {
				all[i] = get(g.At(l)(okHandler())).Code
			}
			return all
		}
		for _, c := range []struct {
			heap float64
			want [priority.Count]int
		}{
			{0.9, [priority.Count]int{503, 200, 200, 200}},
			{0.9, [priority.Count]int{503, 503, 200, 200}},
			{0.9, [priority.Count]int{503, 503, 503, 200}},
			{0.9, [priority.Count]int{503, 503, 503, 200}},  // never Critical
			{0.83, [priority.Count]int{503, 503, 503, 200}}, // not low yet
			{0.7, [priority.Count]int{503, 503, 200, 200}},
			{0.7, [priority.Count]int{503, 200, 200, 200}},
			{0.7, [priority.Count]int{200, 200, 200, 200}},
		} {
			heap.set(c.heap)
			if got := codes(); got != c.want {
				t.Errorf("at %v: %v, want %v", c.heap, got, c.want)
			}
			time.Sleep(time.Second)
		}
		if g.Stats().Count(shed.Pressure) == 0 {
			t.Error("nothing was counted under pressure")
		}
		atRest(t, g)
	})
}

func TestPressureInShadowRefusesNobody(t *testing.T) {
	g := admission.MustNew(admission.Options{
		Shadow:   admission.ShadowCapacity,
		Pressure: pressure.Guard{Signals: []pressure.Signal{{Name: "always", Read: func() float64 { return 1 }, High: 1}}},
	})
	if w := get(g.At(priority.Batch)(okHandler())); w.Code != 200 {
		t.Errorf("answer = %d", w.Code)
	}
	if s := g.Stats(); s.Shadowed[priority.Batch.Index()][shed.Pressure] != 1 || s.Lowest == priority.Batch {
		t.Errorf("shadowed %v, lowest %v", s.Shadowed, s.Lowest)
	}
}

func TestPressureThatMakesNoSenseNamesTheField(t *testing.T) {
	_, err := admission.New(admission.Options{Pressure: pressure.Guard{Signals: []pressure.Signal{{Name: "deaf"}}}})
	if err == nil || !strings.Contains(err.Error(), "Options.Pressure") {
		t.Errorf("error = %v", err)
	}
}
