package top

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

func TestRoutesAreCountedByPattern(t *testing.T) {
	var rs Routes
	rs.Of("GET /b").Refused(priority.High, shed.QueueFull)
	rs.Of("GET /a").Ended(priority.Batch, shed.Served, time.Second)
	rs.Of("GET /a").Ended(priority.Batch, shed.TimedOut, time.Second)
	all := rs.All()
	if len(all) != 2 || all[0].Pattern != "GET /a" || all[1].Pattern != "GET /b" {
		t.Fatalf("%+v", all)
	}
	a, b := all[0], all[1]
	if a.Visits[priority.Batch.Index()][shed.Admitted] != 2 || a.Outcomes[shed.Served] != 1 || a.Outcomes[shed.TimedOut] != 1 || a.Held != 2*time.Second {
		t.Errorf("%+v", a)
	}
	if b.Visits[priority.High.Index()][shed.QueueFull] != 1 || b.Held != 0 {
		t.Errorf("%+v", b)
	}
}

// However many patterns there are, and whoever adds them at once, the table is bounded
// and every visit is in it.
func TestRoutesBeyondTheBoundAreCountedTogether(t *testing.T) {
	var rs Routes
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 3 * routesMost {
				rs.Of(fmt.Sprint("/", i)).Refused(priority.Normal, shed.Capacity)
			}
		})
	}
	all.Wait()
	var n, rest uint64
	for _, c := range rs.All() {
		n += c.Visits[priority.Normal.Index()][shed.Capacity]
		if c.Pattern == Rest {
			rest = c.Visits[priority.Normal.Index()][shed.Capacity]
		}
	}
	if len(rs.All()) != routesMost+1 || n != 12*routesMost || rest != 8*routesMost {
		t.Errorf("%d routes with %d visits, %d of them beyond the bound", len(rs.All()), n, rest)
	}
}

func TestCountingForARouteAllocatesNothing(t *testing.T) {
	var rs Routes
	rs.Of("GET /")
	if n := testing.AllocsPerRun(100, func() { rs.Of("GET /").Ended(priority.Normal, shed.Served, 1) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
