package sockets

import (
	"fmt"
	"io"
	"strings"
)

// writeTables writes a table per scenario, of its hard phase: the one in which least
// of what arrives can be served.
func (b *board) writeTables(w io.Writer) error {
	for i := range b.scenarios {
		if err := b.writeTable(w, &b.scenarios[i]); err != nil {
			return err
		}
	}
	return nil
}

func (b *board) writeTable(w io.Writer, s *Scenario) error {
	var out strings.Builder
	hard, last := s.hard(), s.Phases[len(s.Phases)-1].Name
	fmt.Fprintf(&out, "%s: %s\n", s.Name, s.Title)
	fmt.Fprintf(&out, "%-30s", "in phase "+hard)
	for _, k := range s.Kinds {
		fmt.Fprintf(&out, " %9s", k.Name)
	}
	fmt.Fprintf(&out, " %8s %7s %7s %14s %7s %9s %7s %6s %6s\n", "goodput", "p50", "p99", "refusal", "wasted", "recovery", "heap", "gor.", "CPU")
	for _, subject := range b.subjects {
		cell := b.cell(s, subject)
		if cell == nil {
			continue
		}
		rows, after := inPhase(cell, hard), inPhase(cell, last)
		fmt.Fprintf(&out, "%-30s", subject.Name)
		for _, r := range rows {
			fmt.Fprintf(&out, " %7.1f %%", 100*r.Served)
		}
		first := rows[0]
		fmt.Fprintf(&out, " %8.2f %7.0f %7.0f %14s %5.0f %% %9s %4.0f MB %6.0f %4.1f s\n", first.Goodput,
			first.P50, first.P99, refusals(rows), 100*first.Wasted, recovered(after[0].Recovery), first.HeapMB, first.Goroutines, first.CPU)
	}
	fmt.Fprintln(&out)
	_, err := io.WriteString(w, out.String())
	return err
}

// hard is the phase in which the smallest part of the demand can be met.
func (s *Scenario) hard() string {
	name, most := "", 0.0
	for _, p := range s.Phases {
		demand := 0.0
		for _, k := range s.Kinds {
			demand += k.Share * k.Size
		}
		if load := demand * p.Rate * p.Work.Seconds() / float64(s.slots()); load > most {
			name, most = p.Name, load
		}
	}
	return name
}

func inPhase(cell []Row, phase string) (rows []Row) {
	for _, r := range cell {
		if r.Phase == phase {
			rows = append(rows, r)
		}
	}
	return rows
}

// refusals are the slowest class's 95th and 99th percentile, and the 99th of later on.
func refusals(rows []Row) string {
	var p95, p99, later float64
	for _, r := range rows {
		p95, p99, later = max(p95, r.Refused95), max(p99, r.RefusedIn), max(later, r.Later99)
	}
	return fmt.Sprintf("%.0f/%.0f/%.0f", p95, p99, later)
}

func recovered(seconds float64) string {
	if seconds < 0 {
		return "not"
	}
	return fmt.Sprintf("%.2g s", seconds)
}
