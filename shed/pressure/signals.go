package pressure

import (
	"database/sql"
	"math"
	"os"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"
)

// Heap is the live heap as a share of the memory limit: GOMEMLIMIT or the cgroup's,
// whichever is lower, as they are when Heap is called. High at 85 %, low again at
// 80 %. Without a limit it is never high.
func Heap() Signal {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	limit := memoryLimit()
	return Signal{Name: "heap", High: 0.85, Low: 0.80, Read: func() float64 {
		metrics.Read(sample)
		return float64(sample[0].Value.Uint64()) / limit
	}}
}

func memoryLimit() float64 {
	sample := []metrics.Sample{{Name: "/gc/gomemlimit:bytes"}}
	metrics.Read(sample)
	limit := float64(sample[0].Value.Uint64())
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if n, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 64); err == nil && n > 0 {
			limit = min(limit, n)
		}
	}
	return limit
}

// SchedulerLatency is the 99th percentile, in seconds, of how long goroutines were
// ready before they ran, since it was last read. High at 20 ms, low again at 15 ms:
// the process has more to do than processors to do it on.
func SchedulerLatency() Signal {
	sample := []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	var before []uint64
	return Signal{Name: "scheduler", High: 0.020, Low: 0.015, Read: func() float64 {
		metrics.Read(sample)
		h := sample[0].Value.Float64Histogram()
		p99 := quantile(h, before, 0.99)
		before = append(before[:0], h.Counts...)
		return p99
	}}
}

// quantile returns the upper edge of the bucket that holds the q-th part of what
// was counted since before; NaN when nothing was.
func quantile(h *metrics.Float64Histogram, before []uint64, q float64) float64 {
	since := func(i int) uint64 {
		if i < len(before) {
			return h.Counts[i] - before[i]
		}
		return h.Counts[i]
	}
	var total, seen uint64
	for i := range h.Counts {
		total += since(i)
	}
	for i := range h.Counts {
		if seen += since(i); total > 0 && float64(seen) >= q*float64(total) {
			if edge := h.Buckets[i+1]; !math.IsInf(edge, 1) {
				return edge
			}
			return h.Buckets[i]
		}
	}
	return math.NaN()
}

// PoolWait is the mean wait for a database connection since it was last read, in
// seconds: pass db.Stats. High at the given wait, low again at half of it; zero or
// less means 50 ms. When no call had to wait, the reading is 0.
func PoolWait(stats func() sql.DBStats, high time.Duration) Signal {
	if high <= 0 {
		high = 50 * time.Millisecond
	}
	last := stats()
	return Signal{Name: "pool", High: high.Seconds(), Low: high.Seconds() / 2, Read: func() float64 {
		now := stats()
		waits, waited := now.WaitCount-last.WaitCount, now.WaitDuration-last.WaitDuration
		last = now
		if waits <= 0 {
			return 0
		}
		return waited.Seconds() / float64(waits)
	}}
}

// Depth is how much waits in a work queue, such as a queue.Queue's Len. High at the
// given number, low again at three quarters of it.
func Depth(length func() int, high int) Signal {
	return Signal{Name: "depth", High: float64(high), Low: 0.75 * float64(high), Read: func() float64 {
		return float64(length())
	}}
}
