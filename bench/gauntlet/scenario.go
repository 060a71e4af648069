package gauntlet

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/headgate-go/headgate/priority"
)

// Scenario is one trial: who comes, what the backend does, and what is judged.
type Scenario struct {
	ID       string
	Title    string
	Deadline time.Duration // of every client
	Traffic  []Traffic     // in order; the last entry's End is the scenario's
	Phases   []Phase
	Backend  func() backend
	Tenant   func(class int, u float64) string // nil: everybody is one tenant
	Retry    Retry
	MaxWait  time.Duration // longest stay in the queue; zero: the default
	// Unannounced clients do not tell their deadline; they leave when it passes.
	Unannounced bool
	Instances   int // of the service, on one backend, each with a law of its own; 0: 1
	// Fails says after what time work that was let in at t ends in a fast error
	// instead of reaching the backend, if it does; nil: it never does. The answer
	// counts as served: the gate can do no more.
	Fails func(t time.Duration, r *request) (time.Duration, bool)
	Slots func(r *request) int // that a request takes, of the gate and of the backend; nil: one
	Like  string               // whose oracle limits it shares, being the same but longer
}

// Traffic is the arrival rate of each class until End.
type Traffic struct {
	End  time.Duration
	Rate [Classes]float64 // arrivals per second
}

// Phase is a stretch that is scored by itself. A request counts in the phase of
// its arrival.
type Phase struct {
	Name       string
	Start, End time.Duration
	Overload   bool          // somebody has to be turned away
	Floor      float64       // the oracle is never less than this
	Critical   bool          // critical demand fits: 99.5 % of it must be served
	Healed     bool          // recovery is judged
	Lenient    time.Duration // late work is judged after this much of the phase
	Ratio      float64       // share of the oracle's score that is the bar; 0: 0.95
	NoRefusal  bool          // nobody is refused, not even in the first second
	Refusals   bool          // how fast the refused are told is judged
	Settled    bool          // time in the backend is judged over the second half
	Capacity   float64       // critical work a second that the backend can do: 90 % of it must be served; 0: not judged
}

// Retry is what clients do that were turned away.
type Retry struct {
	Times  int           // how often one comes back
	Obey   bool          // waits as Retry-After says
	Delay  time.Duration // else comes back after this
	Jitter time.Duration
}

// Classes is the number of classes of traffic: critical, normal, batch.
const Classes = 3

// The classes' levels, names and worth.
var (
	Levels     = [Classes]priority.Level{priority.Critical, priority.Normal, priority.Batch}
	ClassNames = [Classes]string{"critical", "normal", "batch"}
	Weights    = [Classes]float64{10, 3, 1}
)

// fails says whether work ends in a fast error.
func (s *Scenario) fails(t time.Duration, r *request) (time.Duration, bool) {
	if s.Fails == nil {
		return 0, false
	}
	return s.Fails(t, r)
}

// Length is how long the scenario lasts.
func (s *Scenario) Length() time.Duration { return s.Traffic[len(s.Traffic)-1].End }

// phase returns the index of the phase that holds t, or -1.
func (s *Scenario) phase(t time.Duration) int {
	for i := range s.Phases {
		if t >= s.Phases[i].Start && t < s.Phases[i].End {
			return i
		}
	}
	return -1
}

// traffic returns the rates in force at t.
func (s *Scenario) traffic(t time.Duration) Traffic {
	for _, tr := range s.Traffic {
		if t < tr.End {
			return tr
		}
	}
	return Traffic{End: math.MaxInt64}
}

// arrivals is a Poisson process through a scenario's traffic. It draws the same
// numbers whatever the law does, so that laws meet the same requests.
type arrivals struct {
	s   *Scenario
	rng *rand.Rand
	at  time.Duration
}

// next moves to the next arrival and returns its request, or false at the end.
func (a *arrivals) next() (request, bool) {
	for {
		tr := a.s.traffic(a.at)
		total := tr.Rate[0] + tr.Rate[1] + tr.Rate[2]
		if total == 0 {
			if tr.End == math.MaxInt64 {
				return request{}, false
			}
			a.at = tr.End
			continue
		}
		next := a.at + time.Duration(a.rng.ExpFloat64()/total*float64(time.Second))
		if next >= tr.End { // memoryless: draw again from the boundary
			a.at = tr.End
			continue
		}
		a.at = next
		r := request{arrived: next, deadline: next + a.s.Deadline, size: a.rng.NormFloat64(), kind: a.rng.Float64()}
		r.class = pick(a.rng.Float64()*total, tr.Rate)
		u := a.rng.Float64()
		if a.s.Instances > 1 {
			r.instance = a.rng.Float64()
		}
		if a.s.Tenant != nil {
			r.tenant = a.s.Tenant(r.class, u)
		}
		r.slots = 1
		if a.s.Slots != nil {
			r.slots = a.s.Slots(&r)
		}
		return r, true
	}
}

func pick(u float64, rates [Classes]float64) int {
	for c := range rates[:Classes-1] {
		if u < rates[c] {
			return c
		}
		u -= rates[c]
	}
	return Classes - 1
}

// request is one client's attempt.
type request struct {
	arrived  time.Duration
	deadline time.Duration
	admitted time.Duration
	class    int
	tries    int
	size     float64 // standard normal: how heavy its work is
	kind     float64 // uniform: which kind of work it is
	tenant   string
	slots    int
	instance float64       // uniform: which instance of the service it meets
	alone    time.Duration // what its work takes when nothing queues; filed by the backend
	failed   bool          // it ended in a fast error
}
