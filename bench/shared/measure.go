package shared

import (
	"cmp"
	"slices"
	"time"

	"golang.org/x/time/rate"
)

// row is one line of the table.
type row struct {
	Subject     string        `json:"subject"`
	Load        string        `json:"load"`
	Instances   int           `json:"instances"`
	Rate        int           `json:"rate"`
	Burst       int           `json:"burst"`
	Offered     int           `json:"offered"`
	Admitted    int           `json:"admitted"`
	Errors      int           `json:"errors"`
	PerAdmitted float64       `json:"trips_per_admitted"`
	PerDecision float64       `json:"trips_per_decision"`
	PerSecond   float64       `json:"trips_per_second"`
	Over1s      float64       `json:"overshoot_1s"`    // worst second, against burst + rate
	Over100ms   float64       `json:"overshoot_100ms"` // worst tenth, against burst + rate/10
	Utilisation float64       `json:"utilisation"`     // of one bucket in memory, fed the same arrivals
	P50         time.Duration `json:"p50_ns"`
	P99         time.Duration `json:"p99_ns"`
	P999        time.Duration `json:"p999_ns"`
}

// measure counts what arrived after the warm-up. The bucket in memory that it is
// compared with has met the warm-up too.
func (r *run) measure(all []answer, trips int64) row {
	slices.SortFunc(all, func(a, b answer) int { return cmp.Compare(a.arrived, b.arrived) })
	out := row{Rate: r.rate, Burst: r.burst}
	var took, passed []time.Duration
	ideal := 0
	bucket, zero := rate.NewLimiter(rate.Limit(r.rate), r.burst), time.Unix(0, 0)
	for _, a := range all {
		would := bucket.AllowN(zero.Add(a.arrived), 1)
		if a.arrived < r.warm {
			continue
		}
		out.Offered++
		if would {
			ideal++
		}
		took = append(took, a.took)
		if a.ok {
			passed = append(passed, a.arrived+a.took)
		}
		if a.err {
			out.Errors++
		}
	}
	out.Admitted = len(passed)
	out.PerAdmitted = float64(trips) / float64(max(1, len(passed)))
	out.PerDecision = float64(trips) / float64(max(1, out.Offered))
	out.PerSecond = float64(trips) / r.length.Seconds()
	out.Utilisation = float64(len(passed)) / float64(max(1, ideal))
	slices.Sort(passed)
	out.Over1s = overshoot(passed, time.Second, float64(r.burst+r.rate))
	out.Over100ms = overshoot(passed, 100*time.Millisecond, float64(r.burst)+float64(r.rate)/10)
	slices.Sort(took)
	out.P50, out.P99, out.P999 = quantile(took, 0.5), quantile(took, 0.99), quantile(took, 0.999)
	return out
}

// overshoot compares the fullest window of length w with what is allowed in it.
func overshoot(passed []time.Duration, w time.Duration, allowed float64) float64 {
	most, from := 0, 0
	for to := range passed {
		for passed[to]-passed[from] >= w {
			from++
		}
		most = max(most, to-from+1)
	}
	return float64(most)/allowed - 1
}

func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(q*float64(len(sorted)-1))]
}
