package size

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/headgate-go/headgate/internal/size/traffic"
)

// advice is a set of numbers for admission.Options and the reason for each.
type advice struct {
	rate     float64 // 0: none
	burst    int
	rateWhy  string
	max      int // 0: none
	limitWhy string
	wait     time.Duration
	waitWhy  string
	least    time.Duration // that a deadline should leave
}

func (a *advice) setWait(p99 time.Duration) {
	a.wait = min(max(2*p99, 50*time.Millisecond), time.Second).Round(10 * time.Millisecond)
	a.waitWhy = fmt.Sprintf("about twice the p99 of %v, from 50 ms to 1 s: a longer wait is a queue that does not drain", short(p99))
	a.least = a.wait + p99
}

func (a *advice) print(w io.Writer) {
	fmt.Fprintf(w, "suggested for admission.Options\n")
	if a.rate > 0 {
		fmt.Fprintf(w, "  Rate:     ratelimit.PerKey(%s, %d)\n", plain(a.rate), a.burst)
	} else {
		fmt.Fprintf(w, "  Rate:     none from these figures\n")
	}
	fmt.Fprintf(w, "            %s\n", a.rateWhy)
	if a.max == 0 {
		fmt.Fprintf(w, "  Limit:    none from these figures\n            %s\n", a.limitWhy)
		return
	}
	fmt.Fprintf(w, "  Limit:    shed.Throughput{Max: %d}\n            %s\n", a.max, a.limitWhy)
	fmt.Fprintf(w, "  MaxWait:  %v\n            %s\n", a.wait, a.waitWhy)
	fmt.Fprintf(w, "  Deadline: what your clients wait, at least %v\n            the longest wait and the p99 have to fit\n", short(a.least))
}

// advise reads the numbers off a log.
func advise(m *traffic.Measure) advice {
	var a advice
	a.perCaller(m)
	if m.All.Took.Count() == 0 {
		a.limitWhy = "no latency could be read: say where it is (-latency FIELD:UNIT), log it ($request_time, %D), or give -p50 and -p99"
		return a
	}
	a.setWait(m.All.Took.Quantile(0.99))
	if k, ok := kneeOf(m); ok {
		a.max = k.slots
		a.limitWhy = fmt.Sprintf("up to %d in flight the median is %v, beyond that %v and more: something queues below", k.slots, short(k.under), short(k.over))
		return a
	}
	a.max = max(int(math.Ceil(1.5*float64(m.All.Peak))), 8)
	a.limitWhy = fmt.Sprintf("λ·W is %.1f on average and %d were in flight at most; half as much again is room for a slower backend", m.Concurrency(&m.All), m.All.Peak)
	return a
}

// withhold takes back what rests on latencies that cannot be right.
func (a *advice) withhold() {
	a.max, a.limitWhy = 0, "the latencies cannot be right (see above): -latency FIELD:UNIT says how to read them"
}

func (a *advice) perCaller(m *traffic.Measure) {
	if m.Callers() < 2 {
		a.rateWhy = "all lines come from one caller; -caller names the JSON field that tells callers apart"
		return
	}
	minute, second := m.CallerQuantile(0.99)
	a.rate = nice(2 * float64(minute) / 60)
	a.burst = max(int(math.Ceil(2*a.rate)), second)
	a.rateWhy = fmt.Sprintf("99 %% of %d callers sent at most %d in their busiest minute and %d in their busiest second: twice the one, not less than the other", m.Callers(), minute, second)
}

// knee is the load at which latency starts to tell that work queues below.
type knee struct {
	slots       int
	under, over time.Duration // medians
}

const (
	kneeFactor = 1.5
	kneeLeast  = 200 // requests that make an octave of load tell something
)

// kneeOf looks for the octave of load whose median is well above that of the
// lightest load.
func kneeOf(m *traffic.Measure) (knee, bool) {
	var k knee
	for i := range m.ByLoad {
		h := &m.ByLoad[i]
		if h.Count() < kneeLeast {
			continue
		}
		median := h.Quantile(0.5)
		if k.slots > 0 && float64(median) > kneeFactor*float64(k.under) {
			k.over = median
			return k, true
		}
		if k.slots == 0 {
			k.under = median
		}
		k.slots = 2<<i - 1
	}
	return k, false
}

// nice rounds up to a number one would write down.
func nice(n float64) float64 {
	if n <= 1 {
		return 1
	}
	step := math.Pow(10, math.Floor(math.Log10(n))) / 2
	return math.Ceil(math.Round(n/step*1e6)/1e6) * step
}

func plain(n float64) string { return strconv.FormatFloat(math.Round(n*10)/10, 'f', -1, 64) }

// short rounds to what a person wants to read.
func short(d time.Duration) time.Duration {
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond)
	case d < 10*time.Millisecond:
		return d.Round(100 * time.Microsecond)
	case d < 10*time.Second:
		return d.Round(time.Millisecond)
	}
	return d.Round(time.Second)
}
