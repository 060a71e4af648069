package gauntlet

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"

	"github.com/headgate-go/headgate/shed"
)

// The oracle of a phase is the fixed limit, held through the whole run, that
// scores best in it with the same queue. The search is long, so its outcome is
// kept; the scores are always run anew.

//go:embed oracle.json
var oracleFile []byte

// oracle is, per scenario, the best fixed limit of each phase.
type oracle map[string]map[string]int

func loadOracle() (oracle, error) {
	var o oracle
	if err := json.Unmarshal(oracleFile, &o); err != nil {
		return nil, fmt.Errorf("oracle.json: %w", err)
	}
	return o, nil
}

// candidates are the limits the search tries: all small ones, then 8 % apart.
func candidates() []int {
	var c []int
	for n := 1; n <= 1000; n += max(1, n/12) {
		c = append(c, n)
	}
	return c
}

// FindOracle searches the best limits and writes them to a file.
func FindOracle(path string, scenarios []Scenario, seeds []uint64) error {
	found := oracle{}
	for i := range scenarios {
		s := &scenarios[i]
		if s.Like != "" {
			continue
		}
		best, err := search(s, seeds)
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

func search(s *Scenario, seeds []uint64) (map[string]int, error) {
	var trials []*trial
	for _, n := range candidates() {
		trials = append(trials, &trial{scenario: s, limit: shed.Fixed(n), seeds: seeds})
	}
	if err := runAll(trials, false); err != nil {
		return nil, err
	}
	best := make(map[string]int)
	for p, phase := range s.Phases {
		top := trials[0]
		for _, t := range trials[1:] {
			if better(t.phases[p], top.phases[p]) {
				top = t
			}
		}
		best[phase.Name] = int(top.limit.(shed.Fixed))
	}
	return best, nil
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
