package overhead

import "fmt"

// Better says where somebody else's library is better than the whole gate, which
// does more than any of them. Hand-written pieces are no library.
func (r *Result) Better() (lines []string) {
	for _, x := range r.Rows {
		if isKit(x.Subject) || x.Bare || x.CPU != 1 || x.Subject == bareRefusal {
			continue
		}
		mine := r.row(x.Bench, mineFor(x), x.CPU, x.Keys)
		if mine == nil {
			continue
		}
		where := fmt.Sprintf("%s, %s: %s (%s)", x.Bench, keyWord(x.Keys), x.Subject, x.Does)
		if x.NsOp < mine.NsOp {
			lines = append(lines, fmt.Sprintf("%s takes %.0f ns where `%s` takes %.0f.", where, x.NsOp, mine.Subject, mine.NsOp))
		}
		if x.Allocs < mine.Allocs {
			lines = append(lines, fmt.Sprintf("%s makes %d allocations where `%s` makes %d.", where, x.Allocs, mine.Subject, mine.Allocs))
		}
		if heapWord(x) != "" && x.HeapKey < mine.HeapKey {
			lines = append(lines, fmt.Sprintf("%s keeps %.0f B a key where `%s` keeps %.0f.", where, x.HeapKey, mine.Subject, mine.HeapKey))
		}
	}
	return lines
}

// mineFor compares like with like: those that write rate headers with the gate
// that does.
func mineFor(x Row) string {
	if x.Bench != admitted {
		return kitWhole
	}
	for _, s := range keyed() {
		if s.name == x.Subject {
			return kitHeaders
		}
	}
	return kitNoDeadline
}
