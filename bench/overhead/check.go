package overhead

import (
	"fmt"
	"math"
	"time"
)

// Check is one line of what must hold, and what was measured.
type Check struct {
	What, Must, Got string
	OK              bool
}

// Word says whether it holds.
func (c Check) Word() string {
	if c.OK {
		return "met"
	}
	return "MISSED"
}

// The figures that must hold. Ratios are to the bare pieces of the same bench, in
// the same turns.
const (
	admitMost   = 1.5
	wholeMost   = 3.3
	headersLead = 1.25 // times as fast as httprate and chi Throttle
	most429     = 1.0
	most503     = 0.9
	hotMost     = 1.3  // of one core's time, on two
	manyMost    = 0.65 // the same with many keys
	keyMost     = 64   // bytes of heap
	syncMost    = 1.0  // of a sync.Map's time
	cancelMost  = 2.0  // of the time among a hundredth of the waiters
	runningMost = 100 * time.Microsecond
)

// Checks holds the result to what must be, as far as it was measured.
func (r *Result) Checks() (all []Check) {
	const keys = 10_000
	all = append(all, r.cost(admitted, kitAdmit, keys, 0, admitMost)...)
	for _, whole := range []string{kitNoDeadline, kitWhole, kitTimeout} {
		all = append(all, r.cost(admitted, whole, keys, 1, wholeMost)...)
	}
	all = append(all, r.lead(keys)...)
	all = append(all, r.cost(refused429, kitWhole, keys, 1, most429)...)
	all = append(all, r.cost(refused503, kitWhole, keys, 1, most503)...)
	all = append(all, r.scaling(kitAdmit, 1, hotMost)...)
	all = append(all, r.scaling(kitAdmit, keys, manyMost)...)
	all = append(all, r.million()...)
	return append(all, r.queueing()...)
}

func (r *Result) cost(bench, subject string, keys, allocs int, most float64) []Check {
	x := r.row(bench, subject, 1, keys)
	if x == nil {
		return nil
	}
	return []Check{{
		What: fmt.Sprintf("%s, %s, %s", subject, bench, keyWord(keys)),
		Must: fmt.Sprintf("≤ %d allocs, ≤ %.1f × bare", allocs, most),
		Got:  fmt.Sprintf("%d allocs, %.2f × bare", x.Allocs, x.Ratio),
		OK:   x.Allocs <= allocs && x.Ratio <= most,
	}}
}

// lead compares like with like: rate headers on both sides.
func (r *Result) lead(keys int) []Check {
	x, peer := r.row(admitted, kitHeaders, 1, keys), r.row(admitted, stacked, 1, keys)
	if x == nil || peer == nil {
		return nil
	}
	return []Check{{
		What: fmt.Sprintf("%s, %s", kitHeaders, keyWord(keys)),
		Must: fmt.Sprintf("≤ 3 allocs, ≥ %.2f × as fast as %s", headersLead, stacked),
		Got:  fmt.Sprintf("%d allocs, %.2f × as fast", x.Allocs, peer.Ratio/x.Ratio),
		OK:   x.Allocs <= 3 && peer.Ratio/x.Ratio >= headersLead,
	}}
}

func (r *Result) scaling(subject string, keys int, most float64) []Check {
	one, two := r.row(admitted, subject, 1, keys), r.row(admitted, subject, 2, keys)
	if one == nil || two == nil {
		return nil
	}
	return []Check{{
		What: fmt.Sprintf("%s, 1 → 2 cores, %s", subject, keyWord(keys)),
		Must: fmt.Sprintf("≤ %.2f × the time per request", most),
		Got:  fmt.Sprintf("%.2f ×", two.NsOp/one.NsOp),
		OK:   two.NsOp <= most*one.NsOp,
	}}
}

// million is the price of many keys.
func (r *Result) million() []Check {
	const keys = 1_000_000
	x, peer := r.row(admitted, kitRate, 1, keys), r.row(admitted, bareSyncMap, 1, keys)
	if x == nil || peer == nil {
		return nil
	}
	return []Check{
		{
			What: "heap per key, " + keyWord(keys),
			Must: fmt.Sprintf("≤ %d B", keyMost),
			Got:  fmt.Sprintf("%.0f B (sync.Map: %.0f B)", x.HeapKey, peer.HeapKey),
			OK:   x.HeapKey <= keyMost,
		}, {
			What: "a decision of the buckets, " + keyWord(keys),
			Must: fmt.Sprintf("≤ %.1f × sync.Map", syncMost),
			Got:  fmt.Sprintf("%.2f ×", x.Ratio/peer.Ratio),
			OK:   x.Ratio <= syncMost*peer.Ratio,
		},
	}
}

func (r *Result) queueing() (all []Check) {
	for _, q := range r.Queues {
		if q.Waiting == 1000 || q.Waiting == 100_000 {
			all = append(all, Check{
				What: fmt.Sprintf("release → running, %d waiting", q.Waiting),
				Must: fmt.Sprintf("p99 ≤ %v", runningMost),
				Got:  fmt.Sprintf("p99 %v (channel: %v)", tenth(q.P99), tenth(q.ChannelP99)),
				OK:   q.P99 <= runningMost,
			})
		}
	}
	if len(r.Queues) > 1 {
		all = append(all, growth(r.Queues[0], r.Queues[len(r.Queues)-1]))
	}
	return all
}

// growth compares the operations of a short and a long queue.
func growth(few, many QueueRow) Check {
	most := math.Log(float64(many.Waiting)) / math.Log(float64(few.Waiting))
	got := max(many.Dispatch/few.Dispatch, many.Cancel/few.Cancel, many.Evict/few.Evict)
	return Check{
		What: fmt.Sprintf("an operation, %d → %d waiting", few.Waiting, many.Waiting),
		Must: fmt.Sprintf("≤ %.2f × (log n), cancel ≤ %.0f ×", most, cancelMost),
		Got:  fmt.Sprintf("%.2f × (dispatch %.2f, cancel %.2f, evict %.2f)", got, many.Dispatch/few.Dispatch, many.Cancel/few.Cancel, many.Evict/few.Evict),
		OK:   got <= most && many.Cancel <= cancelMost*few.Cancel,
	}
}
