package scenes

import (
	"cmp"
	"math"
	"slices"
	"time"

	"golang.org/x/time/rate"
)

// Row is one line of the table: one limit in one scene.
type Row struct {
	Scene, Limit  string
	Leased        bool
	Keys          int
	Rate          float64
	Burst         int
	Offered       int
	Admitted      int
	Bound         int           // of what may be admitted in the whole scene
	Over          float64       // admitted above burst + rate·t in the fullest window of one key
	May           float64       // what the scene's bound allows of that in the whole scene
	Beyond        float64       // admitted above the scene's bound, in the fullest window
	Used          float64       // of what one bucket in memory admits of the same arrivals
	P50, P99, Max time.Duration // of Take
	Local         float64       // part of the admitted that a process' own share decided
	Changes       uint64        // of state, all processes together
	Calls         float64       // for each admitted, probes included
	Away          time.Duration // how long the store was away; 0: never
	Again         time.Duration // from then until the ceiling was shared by all; -1: not before the end
}

// rows judges a record.
func (r *record) rows() (list []Row) {
	for i, f := range r.fleets {
		list = append(list, r.row(i, f))
	}
	return list
}

func (r *record) row(i int, f *fleet) Row {
	s, all := r.scene, r.all[i]
	slices.SortFunc(all, func(a, b answer) int { return cmp.Compare(a.arrived, b.arrived) })
	x := Row{Scene: s.Name, Limit: f.name, Leased: f.name == "leased", Keys: len(f.keys), Rate: f.rate, Burst: f.burst, Offered: len(all)}
	r.again(i, &x)
	x.Changes = r.after[i].changes
	r.spread(i, &x, all)
	perKey := make([][]answer, len(f.keys))
	for _, a := range all {
		perKey[a.key] = append(perKey[a.key], a)
	}
	ideal, real, forgotten := 0, 0, 0.0
	if s.Forgets {
		forgotten = float64(f.burst)
	}
	for _, one := range perKey {
		would, did := compare(one, f.limit)
		ideal, real = ideal+would, real+did
		x.Over = max(x.Over, excess(one, f.limit, &apart{}))
		x.Beyond = max(x.Beyond, excess(one, f.limit, &r.apart[i])-forgotten)
	}
	x.Used = float64(real) / float64(max(1, ideal))
	x.May = forgotten + f.rate*r.apart[i].upTo(r.length)
	each := float64(f.burst) + x.May + f.rate*r.length.Seconds()
	x.Bound = int(math.Ceil(each * float64(len(f.keys))))
	return x
}

// again fills in how long the store was away, and when the ceiling was shared by all.
func (r *record) again(i int, x *Row) {
	if r.scene.away == nil {
		return
	}
	x.Away = r.up - r.down
	x.Again = max(0, r.last[i]-r.up)
	if r.length-r.last[i] < 50*time.Millisecond {
		x.Again = -1
	}
}

// excess is the deepest debt of a bucket that everything admitted is taken from: the most
// that any window let through above the bound.
func excess(all []answer, l limit, more *apart) float64 {
	var due []time.Duration
	for _, a := range all {
		if a.ok {
			due = append(due, a.due)
		}
	}
	slices.Sort(due)
	level, lowest, last := float64(l.burst), 0.0, time.Duration(0)
	for _, at := range due {
		level = min(float64(l.burst), level+l.rate*((at-last).Seconds()+more.upTo(at)-more.upTo(last))) - 1
		last, lowest = at, min(lowest, level)
	}
	return -lowest
}

// compare says what one bucket in memory admits of the same arrivals after the warm-up,
// and what was admitted. The bucket has met the warm-up too.
func compare(all []answer, l limit) (would, did int) {
	b, zero := rate.NewLimiter(rate.Limit(l.rate), l.burst), time.Unix(0, 0)
	for _, a := range all {
		pass := b.AllowN(zero.Add(a.arrived), 1)
		if a.arrived < warmUp {
			continue
		}
		if pass {
			would++
		}
		if a.ok {
			did++
		}
	}
	return would, did
}

// spread fills in the percentiles, the part that was decided locally, and the calls.
func (r *record) spread(i int, x *Row, all []answer) {
	var took []time.Duration
	local, admitted := 0, 0
	for _, a := range all {
		if a.ok {
			x.Admitted++
		}
		if a.arrived < warmUp {
			continue
		}
		took = append(took, a.took)
		if a.ok {
			admitted++
			if a.local {
				local++
			}
		}
	}
	slices.Sort(took)
	x.P50, x.P99, x.Max = quantile(took, 0.5), quantile(took, 0.99), quantile(took, 1)
	x.Local = float64(local) / float64(max(1, admitted))
	x.Calls = float64(r.after[i].calls-r.before[i].calls) / float64(max(1, admitted))
}

func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(q*float64(len(sorted)-1))]
}
