package replay

import (
	"time"

	"github.com/headgate-go/headgate/internal/size/traffic"
	"github.com/headgate-go/headgate/shed"
)

// Result is what the gate would have done.
type Result struct {
	Reasons [shed.ReasonCount]int
	Routes  []RouteResult // by Record.Route
	Waits   traffic.Histogram
	Callers map[uint64]int // refused for their rate; bounded

	FirstLimit, LastLimit, LeastLimit, MostLimit int
	MostInFlight, MostWaiting                    int
}

// RouteResult is what became of one route.
type RouteResult struct {
	Reasons [shed.ReasonCount]int
}

func newResult(limit int) Result {
	return Result{
		Callers:    map[uint64]int{},
		FirstLimit: limit, LastLimit: limit, LeastLimit: limit, MostLimit: limit,
	}
}

// Refused returns how many a gate would have turned away: for a rate (429), and for
// lack of capacity (503).
func (r *Result) Refused() (rate, capacity int) { return split(&r.Reasons) }

// Refused is the same for one route.
func (r *RouteResult) Refused() (rate, capacity int) { return split(&r.Reasons) }

func split(reasons *[shed.ReasonCount]int) (rate, capacity int) {
	for i, n := range reasons {
		switch reason := shed.Reason(i); {
		case reason == shed.RateLimited || reason == shed.NotAdmissible:
			rate += n
		case reason.Refused():
			capacity += n
		}
	}
	return rate, capacity
}

func (r *Result) admitted(rec *traffic.Record, waited time.Duration) {
	r.count(rec, shed.Admitted)
	if waited > 0 {
		r.Waits.Add(waited)
	}
}

func (r *Result) refused(rec *traffic.Record, reason shed.Reason) {
	r.count(rec, reason)
	if reason != shed.RateLimited && reason != shed.NotAdmissible {
		return
	}
	if _, known := r.Callers[rec.Caller]; known || len(r.Callers) < traffic.MostCallers {
		r.Callers[rec.Caller]++
	}
}

func (r *Result) count(rec *traffic.Record, reason shed.Reason) {
	for len(r.Routes) <= int(rec.Route) {
		r.Routes = append(r.Routes, RouteResult{})
	}
	r.Reasons[reason]++
	r.Routes[rec.Route].Reasons[reason]++
}

func (r *Result) moved(limit int) {
	r.LastLimit = limit
	r.LeastLimit, r.MostLimit = min(r.LeastLimit, limit), max(r.MostLimit, limit)
}

func (r *Result) ran(inFlight int)   { r.MostInFlight = max(r.MostInFlight, inFlight) }
func (r *Result) queued(waiting int) { r.MostWaiting = max(r.MostWaiting, waiting) }
