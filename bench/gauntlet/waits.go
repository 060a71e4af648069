package gauntlet

import "time"

// waits counts durations by the millisecond; the last count is of all longer ones.
type waits struct {
	n     int
	count [waitsMost + 1]int32
}

const waitsMost = 4000 // ms

func (w *waits) add(d time.Duration) {
	w.n++
	w.count[min(max(int(d/time.Millisecond), 0), waitsMost)]++
}

// over returns the percentage that was longer than so many milliseconds.
func (w *waits) over(ms int) float64 {
	n := 0
	for _, c := range w.count[ms:] {
		n += int(c)
	}
	return share(n, w.n)
}

// quantile returns a duration in milliseconds, zero when nothing was counted.
func (w *waits) quantile(q float64) float64 {
	seen := 0
	for ms, c := range w.count {
		if seen += int(c); w.n > 0 && float64(seen) >= q*float64(w.n) {
			return float64(ms)
		}
	}
	return 0
}
