package overhead

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"
)

// group is what is measured against each other: all subjects of one bench over the
// same keys.
type group struct {
	*run
	bench   string
	keys    int
	made    []string // in the order their state is made
	asking  []string // in the order they ask
	entries []*entry
	heap    uint64 // when the latest had its state
}

// entry is a subject in a group.
type entry struct {
	*subject
	*instance
	want    int // the status of every answer while measured
	heapKey float64
	took    map[int]*series // by the number of cores
}

// ballast stands for the rest of a service. Without it the heap would be so small
// that the collector never rests.
const ballast = 64 << 20

// group builds all subjects, holds them to their premises, and measures them.
func (r *run) group(bench string, keys int) ([]Row, error) {
	rest := make([]byte, ballast)
	defer runtime.KeepAlive(rest)
	g := &group{run: r, bench: bench, keys: keys}
	g.made, g.asking = keyNames(keys)
	g.heap = liveHeap()
	defer g.close()
	for _, s := range r.subjects(bench) {
		e, err := g.enter(s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		g.entries = append(g.entries, e)
	}
	fmt.Fprintf(r.log, "%s, %d keys: %d subjects\n", bench, keys, len(g.entries))
	for _, cpus := range r.cpus {
		if err := g.measure(cpus); err != nil {
			return nil, err
		}
	}
	return g.rows(), nil
}

func (g *group) close() {
	for _, e := range g.entries {
		e.stop()
	}
	g.entries = nil
	runtime.GC()
}

// terms of a bench. No bucket fills up again while measured, so that all of a
// subject's state is there all the time.
func (g *group) terms() terms {
	t := terms{perSecond: 0.0001, burst: 1e9, window: time.Hour, slots: 512}
	switch g.bench {
	case refused429:
		t.perSecond, t.burst = 1.0/3600, 1
	case refused503:
		t.slots, t.full = 1, true
	}
	return t
}

func (g *group) enter(s *subject) (*entry, error) {
	e := &entry{subject: s, took: map[int]*series{}}
	var err error
	if e.instance, err = s.build(g.terms()); err != nil {
		return nil, err
	}
	if err := g.prove(e); err != nil {
		e.stop()
		return nil, err
	}
	before := g.heap
	g.heap = liveHeap()
	if e.instance.keys != nil || keyedName[s.name] {
		e.heapKey = float64(int64(g.heap-before)) / float64(g.keys)
	}
	return e, nil
}

// keyedName are the libraries that keep something per key.
var keyedName = func() map[string]bool {
	names := map[string]bool{}
	for _, s := range keyed() {
		names[s.name] = true
	}
	return names
}()

func liveHeap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// measure takes the repeats. In each, every subject has one turn, in another order
// each time, right after one of the base that it is compared with: whatever else
// the machine does hits both alike.
func (g *group) measure(cpus int) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cpus))
	callers := make([]*sender, cpus)
	for i := range callers {
		callers[i] = newCaller(g.asking, i*len(g.asking)/cpus)
	}
	for _, e := range g.entries {
		e.took[cpus] = new(series)
	}
	runtime.GC()
	for range g.repeats {
		for _, i := range rand.Perm(len(g.entries)) {
			base, err := g.turn(g.entries[0], callers)
			if err != nil {
				return err
			}
			e, t := g.entries[i], base
			if i > 0 {
				if t, err = g.turn(e, callers); err != nil {
					return err
				}
			}
			e.took[cpus].add(t, base)
		}
	}
	return nil
}

func (g *group) rows() (rows []Row) {
	for _, e := range g.entries {
		for _, cpus := range g.cpus {
			s := e.took[cpus]
			rows = append(rows, Row{
				Bench: g.bench, Subject: e.name, CPU: cpus, Keys: g.keys, Does: e.does, Bare: e.bare,
				NsOp: round(median(s.ns), 1), BytesOp: int(median(s.bytes)), Allocs: int(median(s.allocs)),
				Ratio: round(median(s.ratio), 3), Spread: spread(s.ns), HeapKey: e.heapKey,
			})
		}
	}
	return rows
}
