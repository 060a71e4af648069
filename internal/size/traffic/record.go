// Package traffic turns the requests of an access log into a stream in order of
// arrival, in bounded memory, and measures it: how many, how fast, how many at once.
package traffic

import (
	"container/heap"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"time"

	"github.com/headgate-go/headgate/internal/size/accesslog"
)

// Record is one request as the stream keeps it.
type Record struct {
	Arrived time.Duration // since the Unix epoch
	Took    time.Duration
	Caller  uint64 // a hash of the name
	Route   uint16 // an index into the table of names
	Status  uint16
	Timed   bool // Took is known
}

// Stream puts requests in order of arrival. A log is written as requests end, so
// that each line's arrival may be anywhere before it; Stream holds back the latest
// Window lines and lets the earliest go. Memory is bounded by the window and the
// two tables of names.
type Stream struct {
	Late int // lines that were earlier than the window can mend; they count as of the line before

	routes  names
	callers map[uint64]string
	waiting byArrival
	window  int
	last    time.Duration
	random  *rand.Rand
	assume  *Latency
	emit    func(Record) error
}

// The bounds of what a Stream remembers.
const (
	Window      = 1 << 16
	MostRoutes  = 512
	MostCallers = 100_000
)

// Other is the route of everything beyond the first MostRoutes.
const Other = "(other)"

// NewStream returns a stream that hands its records to emit. When assume is not
// nil, requests that do not say how long they took are given a time drawn from it.
func NewStream(window int, assume *Latency, emit func(Record) error) *Stream {
	return &Stream{
		routes: names{index: map[string]uint16{}, names: []string{Other}}, callers: map[uint64]string{},
		window: window, random: rand.New(rand.NewPCG(1, 2)), assume: assume, emit: emit,
	}
}

// Add takes one request.
func (s *Stream) Add(r *accesslog.Request) error {
	rec := Record{
		Took: r.Took, Timed: r.Timed, Status: uint16(r.Status),
		Route: s.routes.of(r.Route), Caller: s.caller(r.Caller),
	}
	if !rec.Timed && s.assume != nil {
		rec.Took, rec.Timed = s.assume.Draw(s.random), true
	}
	rec.Arrived = time.Duration(r.Stamp.UnixNano())
	if r.Coarse {
		// Arrivals that do not know of each other are spread evenly over their second.
		rec.Arrived += time.Duration(s.random.Int64N(int64(time.Second)))
	}
	if r.AtEnd {
		rec.Arrived -= rec.Took
	}
	heap.Push(&s.waiting, rec)
	if len(s.waiting) > s.window {
		return s.next()
	}
	return nil
}

// Flush lets everything go that is still held back.
func (s *Stream) Flush() error {
	for len(s.waiting) > 0 {
		if err := s.next(); err != nil {
			return err
		}
	}
	return nil
}

func (s *Stream) next() error {
	r := heap.Pop(&s.waiting).(Record)
	if s.last != 0 && r.Arrived < s.last {
		s.Late++
		r.Arrived = s.last
	}
	s.last = r.Arrived
	return s.emit(r)
}

// Routes returns the names of the routes; Record.Route is an index into it.
func (s *Stream) Routes() []string { return s.routes.names }

// CallerName returns the name behind a hash, as far as it is remembered.
func (s *Stream) CallerName(h uint64) string {
	if name, ok := s.callers[h]; ok {
		return name
	}
	return "(not remembered)"
}

func (s *Stream) caller(name string) uint64 {
	f := fnv.New64a()
	f.Write([]byte(name))
	h := f.Sum64()
	if _, known := s.callers[h]; !known && len(s.callers) < MostCallers {
		s.callers[h] = name
	}
	return h
}

// names numbers the routes.
type names struct {
	index map[string]uint16
	names []string
}

func (n *names) of(name string) uint16 {
	i, known := n.index[name]
	if !known && len(n.names) < MostRoutes {
		i = uint16(len(n.names))
		n.index[name] = i
		n.names = append(n.names, name)
	}
	return i
}

type byArrival []Record

func (h byArrival) Len() int           { return len(h) }
func (h byArrival) Less(i, j int) bool { return h[i].Arrived < h[j].Arrived }
func (h byArrival) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *byArrival) Push(x any)        { *h = append(*h, x.(Record)) }
func (h *byArrival) Pop() any {
	last := len(*h) - 1
	r := (*h)[last]
	*h = (*h)[:last]
	return r
}

// Latency is a log-normal distribution told by its median and 99th percentile,
// which is how latencies of healthy services are commonly shaped.
type Latency struct{ mu, sigma float64 }

const z99 = 2.3263478740408408 // the 99th percentile of the normal distribution

// NewLatency makes one. P99 must be at least p50, and p50 positive.
func NewLatency(p50, p99 time.Duration) Latency {
	return Latency{mu: math.Log(float64(p50)), sigma: math.Log(float64(p99)/float64(p50)) / z99}
}

// Mean returns exp(μ + σ²/2).
func (l Latency) Mean() time.Duration { return time.Duration(math.Exp(l.mu + l.sigma*l.sigma/2)) }

// Draw returns one latency.
func (l Latency) Draw(r *rand.Rand) time.Duration {
	return time.Duration(math.Exp(l.mu + l.sigma*r.NormFloat64()))
}
