package measure

import (
	"slices"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/outbound/pacer"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
)

// Emit is handed one value of a Counter or Gauge family, with its labels' values.
type Emit func(f *Family, value float64, labels ...string)

// Read hands out everything that is read from snapshots. Each series is handed out
// once. It takes the locks that the snapshots take, each for a moment.
func (o *Observer) Read(emit Emit) {
	gates := o.readGates()
	stores := o.readStores()
	for _, g := range gates {
		emitGate(emit, g)
		for _, p := range g.Pools {
			o.visitsOf(g.Name, p.Name)
			emitPool(emit, g.Name, p)
		}
		for _, r := range g.Routes {
			emitRoute(emit, g.Name, r)
		}
		if o.callers.Load() {
			emitCallers(emit, g)
		}
		for _, l := range g.Limits {
			emitLimit(emit, g.Name, l)
			stores = append(stores, l.Stores...)
		}
	}
	emitStores(emit, stores)
	o.emitTransports(emit)
	o.emitQueues(emit)
}

// readGates returns a snapshot of every gate, those of one name summed. A gate that
// was attached again is forgotten the second time.
func (o *Observer) readGates() (gates []admission.Stats) {
	o.mu.Lock()
	attached := slices.Clone(o.gates)
	o.mu.Unlock()
	seen := make(map[uint64]bool, len(attached))
	var again []int
	for i, snapshot := range attached {
		s := snapshot()
		switch at := slices.IndexFunc(gates, func(g admission.Stats) bool { return g.Name == s.Name }); {
		case seen[s.ID]:
			again = append(again, i)
		case at >= 0:
			addGate(&gates[at], s)
		default:
			gates = append(gates, s)
		}
		seen[s.ID] = true
	}
	o.forget(again)
	return gates
}

// forget drops gates by their index; Attach only appends, so it still holds.
func (o *Observer) forget(indices []int) {
	if len(indices) == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, i := range slices.Backward(indices) {
		o.gates = slices.Delete(o.gates, i, i+1)
	}
}

func (o *Observer) readStores() (all []ratelimit.StoreStats) {
	o.mu.Lock()
	stores := slices.Clone(o.stores)
	o.mu.Unlock()
	for _, s := range stores {
		all = append(all, s.StoreStats())
	}
	return all
}

// Store adds a limiter shared through a store that no gate and no transport was
// given. Those of gates are found without it.
func (o *Observer) Store(s ratelimit.Stored) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stores = append(o.stores, s)
}

// Work is a work queue: a *queue.Queue of anything.
type Work interface {
	Waiting() [priority.Count]int       // by level
	Oldest(now time.Time) time.Duration // how long the oldest has waited
	Dropped() uint64                    // accepted and not delivered
}

type namedQueue struct {
	name string
	Work
}

// Queue adds a work queue under a name of its own. A second one of the same name
// takes the place of the first.
func (o *Observer) Queue(name string, q Work) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.queues = slices.DeleteFunc(o.queues, func(known namedQueue) bool { return known.name == name })
	o.queues = append(o.queues, namedQueue{name, q})
}

func (o *Observer) emitQueues(emit Emit) {
	o.mu.Lock()
	queues := slices.Clone(o.queues)
	o.mu.Unlock()
	now := time.Now()
	for _, q := range queues {
		for l, n := range q.Waiting() {
			emit(WorkDepth, float64(n), q.name, priority.All()[l].String())
		}
		emit(WorkOldest, q.Oldest(now).Seconds(), q.name)
		emit(WorkDropped, float64(q.Dropped()), q.name)
	}
}

func (o *Observer) emitTransports(emit Emit) {
	o.mu.Lock()
	names, snapshots := slices.Clone(o.names), slices.Clone(o.transports)
	o.mu.Unlock()
	sums := map[string]transportGauges{}
	for i, snapshot := range snapshots {
		sum, ok := sums[names[i]]
		if !ok {
			sum.multiplier, sum.budget = 1, -1
		}
		sum.add(snapshot())
		sums[names[i]] = sum
	}
	for name, g := range sums {
		emit(OutboundInFlight, float64(g.inFlight), name)
		emit(OutboundWaiting, float64(g.waiting), name)
		emit(OutboundMultiplier, g.multiplier, name)
		emit(OutboundPause, g.pause.Seconds(), name)
		if g.budget >= 0 {
			emit(RetryBudget, g.budget, name)
		}
	}
}

// transportGauges is a transport as a whole: sums, and the worst of its operations.
type transportGauges struct {
	inFlight, waiting int
	multiplier        float64
	pause             time.Duration
	budget            float64 // -1: no operation yet
}

func (g *transportGauges) add(s pacer.Stats) {
	for _, op := range s.Operations {
		g.inFlight += op.InFlight
		g.waiting += op.Waiting
		g.multiplier = min(g.multiplier, op.Multiplier)
		g.pause = max(g.pause, op.PauseLeft)
		if g.budget < 0 || op.RetryLeft < g.budget {
			g.budget = op.RetryLeft
		}
	}
	for _, svc := range s.Services {
		g.pause = max(g.pause, svc.PauseLeft)
	}
}
