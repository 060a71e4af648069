package gauntlet

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"

	"github.com/headgate-go/headgate/shed"
)

// The oracle of a phase is the fixed limit, held through the whole run, that
// scores best in it with the same queue. The search is long, so its outcome is
// kept; the scores are always run anew.

//go:embed oracle.json
var oracleFile []byte

// oracle is, per scenario, the best fixed limit of each phase.
type oracle map[string]map[string]int

func loadOracle() (oracle, error) { return parseOracle(oracleFile) }

func parseOracle(text []byte) (o oracle, err error) {
	if err := json.Unmarshal(text, &o); err != nil {
		return nil, fmt.Errorf("oracle.json: %w", err)
	}
	return o, nil
}

// candidates are the limits the search tries first: √2 apart.
func candidates() []int {
	var c []int
	for x := 1.0; x <= 1000; x *= math.Sqrt2 {
		c = append(c, int(math.Round(x)))
	}
	return c
}

// near are the limits between the neighbours of a candidate, 6 % apart at most.
func near(n int) []int {
	var c []int
	for x := max(n*10/14, 1); x <= n*14/10+1; x += max(1, n/16) {
		c = append(c, x)
	}
	return c
}

// FindOracle searches the best limits of the scenarios and writes them to a file, beside
// what that holds of others. When ctx ends it returns, with nothing written.
func FindOracle(ctx context.Context, path string, scenarios []Scenario, seeds []uint64) error {
	found := oracle{}
	if text, err := os.ReadFile(path); err == nil {
		if found, err = parseOracle(text); err != nil {
			return err
		}
	}
	for i := range scenarios {
		s := &scenarios[i]
		if s.Like != "" {
			continue
		}
		best, err := search(ctx, s, seeds)
		if err != nil {
			return err
		}
		found[s.ID] = best
		fmt.Fprintf(os.Stderr, "%s %v\n", s.ID, best)
	}
	text, err := json.MarshalIndent(found, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// search tries fixed limits: first coarsely, then around what was best for a phase.
func search(ctx context.Context, s *Scenario, seeds []uint64) (map[string]int, error) {
	trials := make(map[int]*trial)
	if err := try(ctx, trials, s, candidates(), seeds); err != nil {
		return nil, err
	}
	for p := range s.Phases {
		if err := try(ctx, trials, s, near(bestOf(trials, p)), seeds); err != nil {
			return nil, err
		}
	}
	best := make(map[string]int)
	for p, phase := range s.Phases {
		best[phase.Name] = bestOf(trials, p)
	}
	return best, nil
}

// try runs those of the limits that were not tried yet.
func try(ctx context.Context, trials map[int]*trial, s *Scenario, limits []int, seeds []uint64) error {
	var fresh []*trial
	for _, n := range limits {
		if trials[n] == nil {
			trials[n] = &trial{scenario: s, limit: shed.Fixed(n), seeds: seeds}
			fresh = append(fresh, trials[n])
		}
	}
	if err := runAll(ctx, fresh, false); err != nil {
		return err
	}
	return ctx.Err()
}

// bestOf returns the limit that was best for a phase.
func bestOf(trials map[int]*trial, phase int) int {
	limits := slices.Sorted(maps.Keys(trials))
	top := limits[0]
	for _, n := range limits[1:] {
		if better(trials[n].phases[phase], trials[top].phases[phase]) {
			top = n
		}
	}
	return top
}

// better prefers the higher score; among equals less late work, then the lower
// limit, which comes first.
func better(a, b Result) bool {
	if d := a.Score - b.Score; d > 0.001 || d < -0.001 {
		return d > 0
	}
	return a.Late < b.Late-0.01
}

// of returns the best limits of a scenario's phases.
func (o oracle) of(s *Scenario) map[string]int {
	if s.Like != "" {
		return o[s.Like]
	}
	return o[s.ID]
}

// trials returns the runs that give the oracle's figures, one for each
// different limit of a scenario.
func (o oracle) trials(s *Scenario, seeds []uint64) map[int]*trial {
	out := make(map[int]*trial)
	for _, n := range o.of(s) {
		if out[n] == nil {
			out[n] = &trial{scenario: s, limit: shed.Fixed(n), seeds: seeds}
		}
	}
	return out
}
