package sockets

import (
	"slices"
	"time"
)

// Row is one kind of request in one phase of one scenario under one subject: medians
// over the passes. The figures of the process are the same in all rows of a cell.
type Row struct {
	Subject   string  `json:"subject"`
	Scenario  string  `json:"scenario"`
	Phase     string  `json:"phase"`
	Class     string  `json:"class"`
	Served    float64 `json:"served"`               // share of the possible
	Possible  float64 `json:"possible"`             // requests: the highest level first, but for the twentieth of the lowest that waits
	Offered   float64 `json:"offered"`              // requests
	Goodput   float64 `json:"goodput"`              // slot time of what was served, of all classes, over what could have been used
	P50       float64 `json:"p50_ms"`               // of what was served
	P99       float64 `json:"p99_ms"`               // likewise
	RefusedIn float64 `json:"refused_p99_ms"`       // until a refusal
	Refused95 float64 `json:"refused_p95_ms"`       // likewise
	Later99   float64 `json:"refused_later_p99_ms"` // likewise, of what came after the phase's first two seconds
	Wasted    float64 `json:"wasted"`               // share of the backend's work that was for clients that had left
	Passes    int     `json:"passes"`

	Recovery   float64 `json:"recovery_s"` // into the phase, until 95 % are served; -1: never
	HeapMB     float64 `json:"heap_mb"`    // at most, of the process
	Goroutines float64 `json:"goroutines"` // likewise
	CPU        float64 `json:"cpu_s"`      // of the process in all phases
}

// rows sums up the passes of one subject in one scenario.
func rows(s Subject, scenario *Scenario, results []*result) (out []Row) {
	for i := range scenario.Phases {
		each := make([][]Row, len(scenario.Kinds))
		for _, r := range results {
			for k, row := range r.rows(scenario, i) {
				each[k] = append(each[k], row)
			}
		}
		for k, kind := range scenario.Kinds {
			row := medians(each[k])
			row.Subject, row.Scenario, row.Phase, row.Class = s.Name, scenario.Name, scenario.Phases[i].Name, kind.Name
			row.Passes = len(results)
			out = append(out, row)
		}
	}
	return out
}

// rows are those of one pass and one phase, by kind.
func (r *result) rows(s *Scenario, phase int) []Row {
	cells := r.tally.cells[phase]
	arrived := make([]int, len(cells))
	for k, c := range cells {
		arrived[k] = c.offered
	}
	possible := s.possible(s.Phases[phase], arrived)
	var served, could float64
	for k, c := range cells {
		served += float64(c.served) * s.Kinds[k].Size
		could += possible[k] * s.Kinds[k].Size
	}
	shared := Row{
		Goodput:  ratio(served, could),
		Wasted:   ratio(float64(r.vitals.Wasted[phase]), float64(r.vitals.Done[phase])),
		Recovery: max(r.tally.recovery(phase), -time.Second).Seconds(),
		HeapMB:   r.vitals.HeapMB, Goroutines: float64(r.vitals.Goroutines), CPU: r.vitals.CPUSeconds,
	}
	out := make([]Row, len(cells))
	for k, c := range cells {
		row := shared
		row.Served, row.Possible, row.Offered = ratio(float64(c.served), possible[k]), possible[k], float64(c.offered)
		row.P50, row.P99, row.RefusedIn = quantile(0.5, c.took), quantile(0.99, c.took), quantile(0.99, c.refused)
		row.Refused95, row.Later99 = quantile(0.95, c.refused), quantile(0.99, c.later)
		out[k] = row
	}
	return out
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// medians takes each figure's own.
func medians(of []Row) (m Row) {
	for _, field := range []func(*Row) *float64{
		func(r *Row) *float64 { return &r.Served }, func(r *Row) *float64 { return &r.Possible },
		func(r *Row) *float64 { return &r.Offered }, func(r *Row) *float64 { return &r.Goodput },
		func(r *Row) *float64 { return &r.P50 }, func(r *Row) *float64 { return &r.P99 },
		func(r *Row) *float64 { return &r.RefusedIn }, func(r *Row) *float64 { return &r.Refused95 },
		func(r *Row) *float64 { return &r.Later99 }, func(r *Row) *float64 { return &r.Wasted },
		func(r *Row) *float64 { return &r.Recovery }, func(r *Row) *float64 { return &r.HeapMB },
		func(r *Row) *float64 { return &r.Goroutines }, func(r *Row) *float64 { return &r.CPU },
	} {
		values := make([]float64, len(of))
		for i := range of {
			values[i] = *field(&of[i])
		}
		slices.Sort(values)
		*field(&m) = values[len(values)/2]
	}
	return m
}
