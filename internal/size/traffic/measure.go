package traffic

import (
	"container/heap"
	"math/bits"
	"slices"
	"time"
)

// Measure is what can be said of a stream without a gate. Feed it in order of
// arrival.
type Measure struct {
	First, Last time.Duration // of the arrivals, since the Unix epoch
	All         Flow
	Routes      []Flow              // by Record.Route
	Refused     int                 // answered 429 or 503 already
	Untimed     int                 // without a time taken
	ByLoad      [Octaves]Histogram  // time taken, by how many were in flight at the arrival: 1, 2–3, 4–7, …
	callers     map[uint64]*PerCall // bounded
	running     ends
}

// Octaves is how many powers of two of load are told apart.
const Octaves = 20

// Flow is one route, or all of them.
type Flow struct {
	Took    Histogram
	Count   int
	Busiest int // most arrivals in one second
	Peak    int // most in flight at once

	second   int64
	inSecond int
	inFlight int
}

// PerCall is one caller.
type PerCall struct {
	Count         int
	BusiestSecond int
	BusiestMinute int

	second, minute     int64
	inSecond, inMinute int
}

// NewMeasure returns an empty one.
func NewMeasure() *Measure { return &Measure{callers: map[uint64]*PerCall{}} }

// Add takes the next record.
func (m *Measure) Add(r Record) {
	if m.All.Count == 0 {
		m.First = r.Arrived
	}
	m.Last = r.Arrived
	if r.Status == 429 || r.Status == 503 {
		m.Refused++
	}
	for len(m.Routes) <= int(r.Route) {
		m.Routes = append(m.Routes, Flow{})
	}
	m.end(r.Arrived)
	m.All.arrive(r.Arrived)
	m.Routes[r.Route].arrive(r.Arrived)
	m.caller(r)
	if !r.Timed {
		m.Untimed++
		return
	}
	m.begin(r)
}

func (m *Measure) begin(r Record) {
	for _, f := range []*Flow{&m.All, &m.Routes[r.Route]} {
		f.Took.Add(r.Took)
		f.inFlight++
		f.Peak = max(f.Peak, f.inFlight)
	}
	m.ByLoad[min(bits.Len(uint(m.All.inFlight))-1, Octaves-1)].Add(r.Took)
	heap.Push(&m.running, ending{r.Arrived + r.Took, r.Route})
	if len(m.running) > mostRunning {
		m.endNext()
	}
}

// mostRunning bounds what is remembered of the requests in flight; nothing that one
// process serves comes near it.
const mostRunning = 1 << 20

func (m *Measure) end(now time.Duration) {
	for len(m.running) > 0 && m.running[0].at <= now {
		m.endNext()
	}
}

func (m *Measure) endNext() {
	e := heap.Pop(&m.running).(ending)
	m.All.inFlight--
	m.Routes[e.route].inFlight--
}

func (m *Measure) caller(r Record) {
	c := m.callers[r.Caller]
	if c == nil {
		if len(m.callers) >= MostCallers {
			return
		}
		c = &PerCall{}
		m.callers[r.Caller] = c
	}
	c.arrive(r.Arrived)
}

// Span returns the time from the first arrival to the last, at least a second.
func (m *Measure) Span() time.Duration { return max(m.Last-m.First, time.Second) }

// Rate returns a flow's arrivals per second over the whole log.
func (m *Measure) Rate(f *Flow) float64 { return float64(f.Count) / m.Span().Seconds() }

// Concurrency returns λ·W of a flow: how many of its requests were in flight on
// average (Little's law).
func (m *Measure) Concurrency(f *Flow) float64 { return f.Took.Seconds() / m.Span().Seconds() }

// Callers returns how many callers were told apart.
func (m *Measure) Callers() int { return len(m.callers) }

// CallerQuantile returns what the part q of the callers does not exceed, each in
// its own busiest minute and second.
func (m *Measure) CallerQuantile(q float64) (perMinute, perSecond int) {
	minutes, seconds := make([]int, 0, len(m.callers)), make([]int, 0, len(m.callers))
	for _, c := range m.callers {
		minutes, seconds = append(minutes, c.BusiestMinute), append(seconds, c.BusiestSecond)
	}
	if len(minutes) == 0 {
		return 0, 0
	}
	slices.Sort(minutes)
	slices.Sort(seconds)
	i := min(int(q*float64(len(minutes))), len(minutes)-1)
	return minutes[i], seconds[i]
}

func (f *Flow) arrive(at time.Duration) {
	f.Count++
	if s := int64(at / time.Second); s != f.second {
		f.second, f.inSecond = s, 0
	}
	f.inSecond++
	f.Busiest = max(f.Busiest, f.inSecond)
}

func (c *PerCall) arrive(at time.Duration) {
	c.Count++
	if s := int64(at / time.Second); s != c.second {
		c.second, c.inSecond = s, 0
	}
	if m := int64(at / time.Minute); m != c.minute {
		c.minute, c.inMinute = m, 0
	}
	c.inSecond++
	c.inMinute++
	c.BusiestSecond = max(c.BusiestSecond, c.inSecond)
	c.BusiestMinute = max(c.BusiestMinute, c.inMinute)
}

// ending is when a request ends.
type ending struct {
	at    time.Duration
	route uint16
}

type ends []ending

func (h ends) Len() int           { return len(h) }
func (h ends) Less(i, j int) bool { return h[i].at < h[j].at }
func (h ends) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *ends) Push(x any)        { *h = append(*h, x.(ending)) }
func (h *ends) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	*h = (*h)[:last]
	return e
}
