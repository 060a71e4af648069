package measure

import (
	"cmp"
	"slices"

	"github.com/headgate-go/headgate/admission"
)

// Callers is shown where it was asked for.
var Callers = gauge("callers",
	"What callers had in the last half to one minute, by alias, of those that had most: what is served, refused (capacity), limited (their own limits) or slot_seconds. At most twenty aliases of a gate, and other for those that a gate knows beyond.",
	"gate", "caller", "what")

// mostCallers bounds the aliases of one gate.
const mostCallers = 20

// other is the alias of those beyond. An alias of that name is counted there too.
const other = "other"

// ShowCallers turns on the family of callers; it is off until then.
func (o *Observer) ShowCallers() { o.callers.Store(true) }

// emitCallers shows those that have most of anything, the first of each list first, up
// to the bound.
func emitCallers(emit Emit, g admission.Stats) {
	lists := []struct {
		what string
		per  float64
		all  []admission.CallerCount
	}{{"served", 1, g.Served}, {"refused", 1, g.Refused}, {"limited", 1, g.Limited}, {"slot_seconds", 1e6, g.Busiest}}
	shown := []string{other}
	for rank := range max(len(g.Served), len(g.Refused), len(g.Limited), len(g.Busiest)) {
		for _, l := range lists {
			if rank < len(l.all) && len(shown) <= mostCallers && !slices.Contains(shown, l.all[rank].Alias) {
				shown = append(shown, l.all[rank].Alias)
			}
		}
	}
	for _, l := range lists {
		sums := make([]uint64, len(shown))
		for _, c := range l.all {
			sums[max(slices.Index(shown, c.Alias), 0)] += c.Count
		}
		for i, n := range sums {
			if n > 0 {
				emit(Callers, float64(n)/l.per, g.Name, shown[i], l.what)
			}
		}
	}
}

// addCallers joins the lists of two gates of one name, the most first.
func addCallers(sum, more []admission.CallerCount) []admission.CallerCount {
	sum = slices.Clone(sum)
	for _, c := range more {
		at := slices.IndexFunc(sum, func(known admission.CallerCount) bool { return known.Alias == c.Alias })
		if at < 0 {
			sum = append(sum, c)
			continue
		}
		sum[at].Count += c.Count
	}
	slices.SortStableFunc(sum, func(a, b admission.CallerCount) int { return cmp.Compare(b.Count, a.Count) })
	return sum
}
