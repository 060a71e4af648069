// Package gauntlet tries control laws on some thirty kinds of overload, in virtual
// time, against the best fixed limit there is for each.
//
// Every request goes through the real core of package queue and the real law; only
// the clients and the backend are models. A run is the same every time for a seed.
package gauntlet

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/headgate-go/headgate/shed"
)

// Entrant is a law that runs the gauntlet.
type Entrant struct {
	Name    string
	Limit   shed.Limit
	Default bool // the kit's own default
}

// Entrants returns the laws that are compared, the default first.
func Entrants() []Entrant {
	return []Entrant{
		{"throughput", shed.Throughput{}, true},
		{"aimd", shed.AIMD{}, false},
		{"vegas", shed.Vegas{}, false},
		{"gradient2", shed.Gradient2{}, false},
		{"fixed-64", shed.Fixed(64), false},
	}
}

// The seeds that constants were picked on, and the first of those that are reported.
// The two are disjoint, so that no figure in the table was tuned for.
const (
	TuningSeeds   = 100 // 1 to 100
	ReportedSeeds = 1001
)

// Seeds returns n seeds from the given one on.
func Seeds(first uint64, n int) []uint64 {
	s := make([]uint64, n)
	for i := range s {
		s[i] = first + uint64(i)
	}
	return s
}

// trial is one scenario under one limit, over some seeds.
type trial struct {
	scenario *Scenario
	limit    shed.Limit
	seeds    []uint64
	phases   []Result // medians over the seeds
	worst    []Result // of the first seed that scored least, per phase
	records  []*Record
	done     bool // all its seeds have been run
	err      error
}

// runAll runs trials on as many cores as there are, and fills in their results.
// Records are kept for the first seed only, and only where asked for. When ctx ends, no
// further run begins, and a trial that lacks a seed stays without results.
func runAll(ctx context.Context, trials []*trial, keep bool) error {
	type job struct {
		t    *trial
		seed int
	}
	jobs := make(chan job)
	results := make(map[*trial][][]Result)
	for _, t := range trials {
		results[t] = make([][]Result, len(t.seeds))
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for j := range jobs {
				rec, err := Simulate(j.t.scenario, j.t.limit, j.t.seeds[j.seed])
				mu.Lock()
				if err != nil {
					j.t.err = err
				} else {
					results[j.t][j.seed] = judge(j.t.scenario, rec)
					if keep && j.seed == 0 {
						j.t.records = append(j.t.records, rec)
					}
				}
				mu.Unlock()
			}
		})
	}
	for _, t := range trials {
		for i := range t.seeds {
			if ctx.Err() == nil {
				jobs <- job{t, i}
			}
		}
	}
	close(jobs)
	wg.Wait()
	for _, t := range trials {
		if t.err != nil {
			return fmt.Errorf("%s: %w", t.scenario.ID, t.err)
		}
		if t.done = !slices.ContainsFunc(results[t], func(r []Result) bool { return r == nil }); t.done {
			t.settle(results[t])
		}
	}
	return nil
}

// settle takes the medians, phase by phase.
func (t *trial) settle(runs [][]Result) {
	for p := range t.scenario.Phases {
		of := make([]Result, len(runs))
		for i := range runs {
			of[i] = runs[i][p]
		}
		t.phases = append(t.phases, median(of))
		t.worst = append(t.worst, slices.MinFunc(of, func(a, b Result) int {
			return int(1e6 * (a.Score - b.Score))
		}))
	}
}
