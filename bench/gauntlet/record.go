package gauntlet

import (
	"time"

	"github.com/headgate-go/headgate/shed"
)

// Record is what one run did.
type Record struct {
	Tallies []Tally   // one per phase
	Bins    []Bin     // one per binWidth of time
	Moves   []Move    // of the limit
	arrived []int     // attempts per second
	shares  []int     // served by each instance
	peaks   []float64 // per phase, the highest limit over what it may be with nothing to learn
}

// Tally counts the requests that arrived in one phase.
type Tally struct {
	Offered      [Classes]int
	Served       [Classes]int // within the deadline
	Refused      [Classes]int
	Early        int // refused in the phase's first second
	FirstSecond  int // offered in it
	Admitted     int // judged for late work
	Late         int // work that ended after its client's deadline
	Hopeless     int // admitted with less than the median service time left
	QuietOffered int
	QuietServed  int
	Held         time.Duration                  // Σ time in the backend of work that came in the phase's second half
	Alone        time.Duration                  // Σ time it takes when nothing queues
	Told         waits                          // how long the refused had waited
	ToldLater    waits                          // of those who came after the phase's first two seconds
	Reasons      [Classes][shed.ReasonCount]int // of the refusals
}

// Bin is a tenth of a second of a run, for plots, recovery and drift.
type Bin struct {
	Limit, InFlight, Depth float64 // means over the bin, by the load at events
	Served                 [Classes]int
	Offered, Good          int // by arrival: what came, and what of it was served
	span                   float64
}

// load is what there is at one instant.
type load struct{ limit, inFlight, depth int }

const binWidth = 100 * time.Millisecond

func newRecord(s *Scenario) *Record {
	return &Record{
		Tallies: make([]Tally, len(s.Phases)),
		Bins:    make([]Bin, int(s.Length()/binWidth)+1),
		arrived: make([]int, int(s.Length()/time.Second)+1),
		peaks:   make([]float64, len(s.Phases)),
	}
}

// recorder files what happens under the right phase and bin.
type recorder struct {
	s    *Scenario
	r    *Record
	last time.Duration
	most int // in use at once so far
}

func (c *recorder) bin(t time.Duration) *Bin {
	return &c.r.Bins[min(int(t/binWidth), len(c.r.Bins)-1)]
}

func (c *recorder) tally(r *request) (*Tally, *Phase) {
	i := c.s.phase(r.arrived)
	if i < 0 {
		return new(Tally), new(Phase)
	}
	return &c.r.Tallies[i], &c.s.Phases[i]
}

// elapse spreads the load in force since the last event over the bins.
func (c *recorder) elapse(t time.Duration, l load) {
	c.most = max(c.most, l.inFlight)
	if i := c.s.phase(c.last); i >= 0 && c.last < t {
		bound := max(32*float64(max(c.s.Instances, 1)), 1.5*float64(c.most))
		c.r.peaks[i] = max(c.r.peaks[i], float64(l.limit)/bound)
	}
	for c.last < t {
		b := c.bin(c.last)
		end := min(t, (c.last/binWidth+1)*binWidth)
		d := float64(end - c.last)
		b.Limit += d * float64(l.limit)
		b.InFlight += d * float64(l.inFlight)
		b.Depth += d * float64(l.depth)
		b.span += d
		c.last = end
	}
}

func (c *recorder) offered(r *request) {
	tally, phase := c.tally(r)
	tally.Offered[r.class]++
	if r.arrived < phase.Start+time.Second {
		tally.FirstSecond++
	}
	if r.tenant == quiet {
		tally.QuietOffered++
	}
	c.bin(r.arrived).Offered++
	c.r.arrived[min(int(r.arrived/time.Second), len(c.r.arrived)-1)]++
}

func (c *recorder) refused(t time.Duration, r *request, why shed.Reason) {
	tally, phase := c.tally(r)
	tally.Told.add(t - r.arrived)
	if r.arrived >= phase.Start+2*time.Second {
		tally.ToldLater.add(t - r.arrived)
	}
	tally.Reasons[r.class][why]++
	tally.Refused[r.class]++
	if r.arrived < phase.Start+time.Second {
		tally.Early++
	}
}

func (c *recorder) admitted(r *request, median time.Duration) {
	tally, _ := c.tally(r)
	if r.deadline-r.admitted < median {
		tally.Hopeless++
	}
}

func (c *recorder) finished(t time.Duration, r *request) {
	tally, phase := c.tally(r)
	judged := r.arrived >= phase.Start+phase.Lenient
	if judged {
		tally.Admitted++
	}
	if r.arrived >= (phase.Start+phase.End)/2 {
		tally.Held += t - r.admitted
		tally.Alone += r.alone
	}
	if t > r.deadline {
		if judged {
			tally.Late++
		}
		return
	}
	tally.Served[r.class]++
	if r.tenant == quiet {
		tally.QuietServed++
	}
	c.bin(t).Served[r.class]++
	c.bin(r.arrived).Good++
}

// finish turns the bins' sums into means.
func (r *Record) finish() {
	for i := range r.Bins {
		if b := &r.Bins[i]; b.span > 0 {
			b.Limit /= b.span
			b.InFlight /= b.span
			b.Depth /= b.span
		}
	}
}
