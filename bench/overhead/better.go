package overhead

import (
	"fmt"
	"strings"
)

// Better says where somebody else's library is better than the gate that does at
// least as much, a line for each library and bench. Hand-written pieces are no
// library.
func (r *Result) Better() (lines []string) {
	for _, bench := range benches {
		for _, s := range all() {
			if isKit(s.name) || s.bare || s.name == bareRefusal || !s.takesPart(bench) {
				continue
			}
			mine := mineFor(bench, s)
			var facts []string
			for _, keys := range r.keysOf(bench) {
				facts = append(facts, better(r.row(bench, s.name, 1, keys), r.row(bench, mine, 1, keys))...)
			}
			if len(facts) > 0 {
				lines = append(lines, fmt.Sprintf("%s: %s (%s) than %s: %s", bench, s.name, s.does, mine, strings.Join(facts, "; ")))
			}
		}
	}
	return lines
}

// mineFor compares like with like: those that write rate headers with the gate that does,
// and those that know neither caller nor rate with the gate whose rate step is off.
func mineFor(bench string, s *subject) string {
	switch {
	case !s.takesPart(refused429): // it knows no caller and no rate
		return kitNoRate
	case bench != admitted:
		return kitWhole
	case len(s.headers) > 0:
		return kitHeaders
	}
	return kitNoDeadline
}

// better says in what one row is better than another.
func better(x, mine *Row) (facts []string) {
	if x == nil || mine == nil {
		return nil
	}
	if x.NsOp < mine.NsOp {
		facts = append(facts, fmt.Sprintf("%.0f ns to %.0f at %s", x.NsOp, mine.NsOp, keyWord(x.Keys)))
	}
	if x.Allocs < mine.Allocs && x.Keys == 1 {
		facts = append(facts, fmt.Sprintf("allocations %d to %d", x.Allocs, mine.Allocs))
	}
	if heapWord(*x) != "" && x.HeapKey < mine.HeapKey {
		facts = append(facts, fmt.Sprintf("%.0f B a key to %.0f at %s", x.HeapKey, mine.HeapKey, keyWord(x.Keys)))
	}
	return facts
}
