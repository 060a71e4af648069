package gauntlet

import "context"

// Outcome is a whole gauntlet: the rows of the table, and what was recorded of the
// first seed, for plots.
type Outcome struct {
	Rows    []Row
	Records map[string]map[string]*Record // by scenario, then law
}

// Run runs every entrant through every scenario, over the seeds. When ctx ends, no
// further run begins, and the outcome holds the scenarios that are whole, in order.
func Run(ctx context.Context, scenarios []Scenario, entrants []Entrant, seeds []uint64) (Outcome, error) {
	o, err := loadOracle()
	if err != nil {
		return Outcome{}, err
	}
	var all []*trial
	best := make([]map[int]*trial, len(scenarios))
	entered := make([][]*trial, len(scenarios))
	for i := range scenarios {
		s := &scenarios[i]
		best[i] = o.trials(s, seeds)
		for _, t := range best[i] {
			all = append(all, t)
		}
		for _, e := range entrants {
			entered[i] = append(entered[i], &trial{scenario: s, limit: e.Limit, seeds: seeds})
		}
		all = append(all, entered[i]...)
	}
	if err := runAll(ctx, all, true); err != nil {
		return Outcome{}, err
	}
	out := Outcome{Records: make(map[string]map[string]*Record)}
	for i := range scenarios {
		s := &scenarios[i]
		if !whole(best[i], entered[i]) {
			continue
		}
		out.Records[s.ID] = make(map[string]*Record)
		for j, e := range entrants {
			t := entered[i][j]
			out.Records[s.ID][e.Name] = t.records[0]
			for p, phase := range s.Phases {
				var ref Result
				if b := best[i][o.of(s)[phase.Name]]; b != nil {
					ref = b.phases[p]
				}
				out.Rows = append(out.Rows, row(s, p, e, t.phases[p], ref, len(seeds)))
			}
		}
	}
	return out, nil
}

// whole reports whether every run of a scenario has been made.
func whole(best map[int]*trial, entered []*trial) bool {
	for _, t := range best {
		if !t.done {
			return false
		}
	}
	for _, t := range entered {
		if !t.done {
			return false
		}
	}
	return true
}
