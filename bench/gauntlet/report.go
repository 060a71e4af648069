package gauntlet

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/headgate-go/headgate/shed"
)

// Row is one phase of one scenario under one law, beside the oracle.
type Row struct {
	Scenario       string   `json:"scenario"`
	Phase          string   `json:"phase"`
	Law            string   `json:"law"`
	Default        bool     `json:"default"`
	Score          float64  `json:"score"`
	Oracle         float64  `json:"oracle"`
	Ratio          float64  `json:"ratio"`
	Critical       float64  `json:"critical"`
	CriticalOracle float64  `json:"critical_oracle"`
	Late           float64  `json:"late"`
	LateOracle     float64  `json:"late_oracle"`
	FalseRefusals  float64  `json:"false_refusals"`
	RecoveryS      float64  `json:"recovery_s"`
	RecoveryOracle float64  `json:"recovery_oracle_s"`
	Backend        float64  `json:"backend_over_unqueued"`
	RefusalP95MS   float64  `json:"refusal_p95_ms"`
	RefusalP99MS   float64  `json:"refusal_p99_ms"` // of those who came after the phase's first two seconds
	RefusedLate    float64  `json:"refused_after_100ms"`
	Peak           float64  `json:"peak"`
	Seeds          int      `json:"seeds"`
	Misses         []string `json:"misses"`
}

// row puts a phase's result beside its oracle and judges it.
func row(s *Scenario, p int, e Entrant, r, best Result, seeds int) Row {
	phase := &s.Phases[p]
	out := Row{
		Scenario: s.ID, Phase: phase.Name, Law: e.Name, Default: e.Default, Seeds: seeds,
		Score: round(r.Score), Oracle: round(max(best.Score, phase.Floor)),
		Critical: round(r.Critical), CriticalOracle: round(best.Critical),
		Late: round(r.Late), LateOracle: round(best.Late), RecoveryS: round(r.Recovery), RecoveryOracle: round(best.Recovery),
		Backend: round(r.Backend), RefusalP95MS: r.Told95, RefusalP99MS: r.Told99, RefusedLate: round(r.Waited),
		Peak: round(r.Peak),
	}
	if !phase.Overload {
		out.FalseRefusals = round(max(r.Early, r.After))
	}
	out.Ratio = math.Round(1e4*r.Score/max(best.Score, phase.Floor, 1e-9)) / 1e4
	out.Misses = misses(s, phase, r, best, out.Ratio)
	return out
}

// misses says in which lines of the bar a result falls short. Recovery is no slower than
// the oracle's, by one step of its measure: with seven arrivals in half a second, one
// that finds the pool full by chance is less than 95 % served, with the best fixed limit
// as well. Two seconds are within the bar in any case.
func misses(s *Scenario, p *Phase, r, best Result, ratio float64) []string {
	var m []string
	miss := func(bad bool, format string, args ...any) {
		if bad {
			m = append(m, fmt.Sprintf(format, args...))
		}
	}
	bar := 0.95
	if p.Ratio > 0 {
		bar = p.Ratio
	}
	miss(ratio < bar, "score %.1f%% of oracle", 100*ratio)
	miss(!p.Overload && r.Early > 6, "refused %.1f%% in the first second", r.Early)
	miss(p.NoRefusal && max(r.Early, r.After) > 0, "refused %.3f%%, want none", max(r.Early, r.After))
	miss(p.NoRefusal && ratio < 0.99, "score %.1f%% of oracle, want 99", 100*ratio)
	miss(!p.Overload && r.After > 0, "refused %.3f%% after the first second", r.After)
	miss(r.Critical < best.Critical-0.5, "critical %.2f, oracle %.2f", r.Critical, best.Critical)
	miss(p.Critical && r.Critical < 99.5, "critical %.2f", r.Critical)
	miss(r.Late > best.Late+1, "late %.2f, oracle %.2f", r.Late, best.Late)
	miss(r.Quiet < 99, "quiet tenant %.2f", r.Quiet)
	miss(s.ID == "G9" && r.Hopeless > 0, "%.2f%% admitted without the time", r.Hopeless)
	miss(p.Healed && r.Recovery > max(2, best.Recovery+0.5), "recovery %.1f s, oracle %.1f s", r.Recovery, best.Recovery)
	miss(p.Settled && r.Backend > 1.25, "backend %.2f of unqueued", r.Backend)
	miss(p.Refusals && r.Waited > 5, "%.1f%% of the refused waited 100 ms", r.Waited)
	miss(p.Refusals && r.WaitedL > 1, "%.1f%% of the refused waited 100 ms later on", r.WaitedL)
	miss(p.Refusals && r.Told95 > 100, "refusal p95 %.0f ms", r.Told95)
	miss(p.Refusals && r.Told99 > 100, "refusal p99 %.0f ms later on", r.Told99)
	miss(p.Capacity > 0 && r.PerSec < 0.9*p.Capacity, "critical got %.0f%% of the capacity", 100*r.PerSec/max(p.Capacity, 1))
	miss(!p.Overload && r.Peak > 1, "limit %.2f of what it may be", r.Peak)
	miss(r.Unfair < 0.9, "one instance got %.2f of its share", r.Unfair)
	miss(p.Healed && s.Retry.Obey && r.Surge > 1.5, "surge %.2f", r.Surge)
	miss(math.Abs(r.Drift-1) > 0.1, "drift %.2f", r.Drift)
	return m
}

func round(x float64) float64 { return math.Round(x*100) / 100 }

// WriteJSON writes the rows as one array.
func WriteJSON(w io.Writer, rows []Row) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(rows)
}

// WriteTable writes a line per phase: the default law in full, then what share of
// the oracle each of the others reached.
func WriteTable(w io.Writer, rows []Row, laws []string) {
	byCell := make(map[[3]string]Row)
	for _, r := range rows {
		byCell[[3]string{r.Scenario, r.Phase, r.Law}] = r
	}
	fmt.Fprintf(w, "%-11s %-8s %7s %7s %6s %14s %12s %7s %11s %8s %11s ", "", "phase", "score", "oracle", "ratio", "critical", "late", "refused", "healed", "backend", "refusal")
	for _, law := range laws[1:] {
		fmt.Fprintf(w, "%10s", law)
	}
	fmt.Fprintln(w)
	for _, r := range rows {
		if r.Law != laws[0] {
			continue
		}
		fmt.Fprintf(w, "%-11s %-8s %7.2f %7.2f %6.3f %7.2f/%6.2f %6.2f/%5.2f %7.2f %5.1f/%5.1f %8.2f %5.0f/%5.0f ",
			r.Scenario, r.Phase, r.Score, r.Oracle, r.Ratio, r.Critical, r.CriticalOracle, r.Late, r.LateOracle, r.FalseRefusals, r.RecoveryS, r.RecoveryOracle, r.Backend, r.RefusalP95MS, r.RefusalP99MS)
		for _, law := range laws[1:] {
			fmt.Fprintf(w, "%10s", cell(byCell[[3]string{r.Scenario, r.Phase, law}]))
		}
		fmt.Fprintf(w, "  %s\n", strings.Join(r.Misses, "; "))
	}
}

// cell shows another law's share of the oracle, with a mark where it misses the bar.
func cell(r Row) string {
	if r.Law == "" {
		return "-"
	}
	if len(r.Misses) > 0 {
		return fmt.Sprintf("%.3f✗", r.Ratio)
	}
	return fmt.Sprintf("%.3f ", r.Ratio)
}

// WriteTrace writes the load and every move of the limit, bin by bin.
func WriteTrace(w io.Writer, o Outcome) {
	for id, laws := range o.Records {
		for law, rec := range laws {
			fmt.Fprintf(w, "%s %s\n", id, law)
			for p, t := range rec.Tallies {
				fmt.Fprintf(w, "phase %d offered %v served %v refused %v", p, t.Offered, t.Served, t.Refused)
				for c := range t.Reasons {
					for why, n := range t.Reasons[c] {
						if n > 0 {
							fmt.Fprintf(w, " %s/%v=%d", ClassNames[c], shed.Reason(why), n)
						}
					}
				}
				fmt.Fprintln(w)
			}
			next := 0
			for i, b := range rec.Bins {
				fmt.Fprintf(w, "%6.1fs limit %6.1f in flight %6.1f waiting %6.1f offered %4d served %v", float64(i)/10, b.Limit, b.InFlight, b.Depth, b.Offered, b.Served)
				for ; next < len(rec.Moves) && rec.Moves[next].At < time.Duration(i+1)*binWidth; next++ {
					m := rec.Moves[next]
					fmt.Fprintf(w, "  %d:%s", m.Limit, m.Cause)
				}
				fmt.Fprintln(w)
			}
		}
	}
}
