package sockets

import (
	"math"
	"time"

	"github.com/headgate-go/headgate/priority"
)

// A Scenario is a server's backend, what is sent to the server, and how both change.
type Scenario struct {
	Name  string
	Title string

	Width   int     // pieces of work that the backend does at once
	Obeys   bool    // it stops waiting and working for a client that left
	Knee    int     // pieces beyond which more at once slow all of them down; zero: none
	Drag    float64 // by which each of those makes a piece longer
	Kinds   []Kind
	Phases  []Phase
	Retries Retries
}

// A Kind of request has a route, a caller and a size.
type Kind struct {
	Name   string // in the table
	Route  string // checkout, browse or export
	Caller string
	Share  float64 // of the arrivals
	Size   float64 // of its work, in those of the phase
}

// Level is the priority of the kind's route.
func (k Kind) Level() priority.Level { return levels[k.Route] }

var levels = map[string]priority.Level{"checkout": priority.Critical, "browse": priority.Normal, "export": priority.Batch}

// A Phase is a stretch of time with one rate of arrivals and one length of work.
type Phase struct {
	Name   string
	Length time.Duration
	Rate   float64       // arrivals a second
	Work   time.Duration // mean of a piece of size 1
}

// Retries say what a client does when it is refused.
type Retries string

// The manners of clients. Each gives up after three more tries.
const (
	RetryNone  Retries = ""
	RetryNow   Retries = "now"   // at once
	RetryAfter Retries = "after" // as Retry-After says; at once without it
)

// Patience is how long a client waits for an answer, and says so in X-Timeout.
const Patience = time.Second

// sigma is the spread of the log-normal work.
const sigma = 0.3

var shop = []Kind{
	{Name: "checkout", Route: "checkout", Caller: "shop", Share: 0.1, Size: 1},
	{Name: "browse", Route: "browse", Caller: "shop", Share: 0.3, Size: 1},
	{Name: "export", Route: "export", Caller: "shop", Share: 0.6, Size: 1},
}

func slowdown(work time.Duration) []Phase {
	return []Phase{
		{"healthy", 4 * time.Second, 1500, 4 * time.Millisecond},
		{"slow", 10 * time.Second, 1500, work},
		{"healed", 4 * time.Second, 1500, 4 * time.Millisecond},
	}
}

// Scenarios returns all of them, in the order of the page.
func Scenarios() []Scenario {
	ms := time.Millisecond
	return []Scenario{
		{Name: "slow-90", Title: "The database slows down from 4 to 90 ms", Width: 16, Obeys: true, Kinds: shop, Phases: slowdown(90 * ms)},
		{Name: "slow-300", Title: "The database slows down from 4 to 300 ms: checkout alone is above its capacity", Width: 16, Obeys: true, Kinds: shop, Phases: slowdown(300 * ms)},
		{Name: "deaf", Title: "4 to 90 ms, and the database works on for clients that have left", Width: 16, Kinds: shop, Phases: slowdown(90 * ms)},
		{Name: "thrash", Title: "Each piece beyond eight at once makes all of them 2 % longer", Width: 1 << 20, Obeys: true, Knee: 8, Drag: 0.02, Kinds: shop, Phases: []Phase{
			{"healthy", 4 * time.Second, 400, 10 * ms}, {"overload", 10 * time.Second, 2000, 10 * ms}, {"after", 4 * time.Second, 400, 10 * ms},
		}},
		{Name: "bursts", Title: "Bursts of twenty times the usual traffic", Width: 16, Obeys: true, Kinds: shop, Phases: []Phase{
			{"calm", 4 * time.Second, 100, 8 * ms}, {"burst", time.Second, 2000, 8 * ms}, {"calm 2", 3 * time.Second, 100, 8 * ms},
			{"burst 2", time.Second, 2000, 8 * ms}, {"calm 3", 3 * time.Second, 100, 8 * ms},
		}},
		{Name: "storm-now", Title: "4 to 90 ms, and the refused come back at once, three times", Width: 16, Obeys: true, Kinds: shop, Phases: slowdown(90 * ms), Retries: RetryNow},
		{Name: "storm-after", Title: "4 to 90 ms, and the refused come back as Retry-After says, three times", Width: 16, Obeys: true, Kinds: shop, Phases: slowdown(90 * ms), Retries: RetryAfter},
		{Name: "greedy", Title: "4 to 90 ms, and one caller sends twenty times what the other does", Width: 16, Obeys: true, Phases: slowdown(90 * ms), Kinds: []Kind{
			{Name: "quiet", Route: "checkout", Caller: "quiet", Share: 0.03, Size: 1},
			{Name: "greedy", Route: "checkout", Caller: "greedy", Share: 0.6, Size: 1},
			{Name: "browse", Route: "browse", Caller: "shop", Share: 0.37, Size: 1},
		}},
		{Name: "long", Title: "One caller's work takes twenty times as long as the other's, on the same route", Width: 16, Obeys: true, Kinds: []Kind{
			{Name: "short", Route: "browse", Caller: "short", Share: 0.8, Size: 1},
			{Name: "long", Route: "browse", Caller: "long", Share: 0.2, Size: 20},
		}, Phases: []Phase{
			{"light", 4 * time.Second, 150, 10 * ms}, {"heavy", 10 * time.Second, 1000, 10 * ms}, {"after", 4 * time.Second, 150, 10 * ms},
		}},
	}
}

// length is how long the whole of it takes.
func (s *Scenario) length() (d time.Duration) {
	for _, p := range s.Phases {
		d += p.Length
	}
	return d
}

// slots is how many pieces at once give the most: what somebody who knows the backend
// would write down.
func (s *Scenario) slots() int {
	if s.Knee > 0 {
		return s.Knee
	}
	return s.Width
}

// lowest is the part of the capacity that the lowest waiting level gets in any case.
const lowest = 0.05

// possible returns how many requests of each kind could be served in a phase in which
// so many arrived: the slot time there is goes to the highest level first, but for the
// twentieth of the lowest that waits, and inside a level to the callers in equal parts.
func (s *Scenario) possible(p Phase, arrived []int) []float64 {
	supply := float64(s.slots()) * p.Length.Seconds() / p.Work.Seconds() // pieces of size 1
	need := make([]float64, len(arrived))
	var all float64
	for i, n := range arrived {
		need[i] = float64(n) * s.Kinds[i].Size
		all += need[i]
	}
	got := make([]float64, len(arrived))
	if all > supply {
		last := s.members(s.bottom(arrived))
		kept := min(sum(need, last), lowest*supply)
		share(got, need, last, kept)
		supply -= kept
	}
	for l := priority.Critical; l >= priority.Batch; l-- {
		supply -= share(got, need, s.members(l), supply)
	}
	for i := range got {
		got[i] /= s.Kinds[i].Size
	}
	return got
}

// bottom is the lowest level of which anything arrived.
func (s *Scenario) bottom(arrived []int) priority.Level {
	low := priority.Critical
	for i, n := range arrived {
		if n > 0 {
			low = min(low, s.Kinds[i].Level())
		}
	}
	return low
}

func (s *Scenario) members(l priority.Level) (at []int) {
	for i, k := range s.Kinds {
		if k.Level() == l {
			at = append(at, i)
		}
	}
	return at
}

// share gives out up to supply among members, in equal parts to those who need them,
// on top of what they have, and returns how much it gave.
func share(got, need []float64, members []int, supply float64) (given float64) {
	for supply > 1e-9 {
		var open []int
		least := math.Inf(1)
		for _, i := range members {
			if short := need[i] - got[i]; short > 1e-9 {
				open, least = append(open, i), min(least, short)
			}
		}
		if len(open) == 0 {
			break
		}
		part := min(least, supply/float64(len(open)))
		for _, i := range open {
			got[i] += part
		}
		given += part * float64(len(open))
		supply -= part * float64(len(open))
	}
	return given
}

func sum(of []float64, at []int) (total float64) {
	for _, i := range at {
		total += of[i]
	}
	return total
}

// start is when a phase begins.
func (s *Scenario) start(phase int) (at time.Duration) {
	for _, p := range s.Phases[:phase] {
		at += p.Length
	}
	return at
}
