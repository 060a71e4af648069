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
	Like     string // whose oracle limits it shares, being the same but longer
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
			return request{}, false
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
		if a.s.Tenant != nil {
			r.tenant = a.s.Tenant(r.class, u)
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
}
