package scenes

import (
	"fmt"
	"strings"
	"time"

	"github.com/headgate-go/headgate/bench/rig"
)

// page is what a run has to tell.
type page struct {
	command string
	scenes  []Scene
	rows    []Row
	missing []Scene // their server is not installed
}

// insert writes the tables into a file, between its marks.
func (p *page) insert(path string) error {
	return rig.Insert(path, "scenes", "GOWORK=off go -C bench run . scenes "+p.command, p.text())
}

func (p *page) text() string { return p.table() + "\n" + p.verdicts() }

var columns = []string{"limit", "admitted", "bound", "over", "used", "p50", "p99", "local", "calls", "changes", "away", "shared again"}

func (p *page) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| scene | %s |\n|---|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
	for _, s := range p.scenes {
		name := fmt.Sprintf("`%s`: %s", s.Name, s.Title)
		for _, x := range p.rows {
			if x.Scene == s.Name {
				fmt.Fprintf(&b, "| %s | %s |\n", name, strings.Join(x.cells(), " | "))
				name = ""
			}
		}
	}
	for _, s := range p.missing {
		fmt.Fprintf(&b, "| `%s`: %s | not played: no %s on the PATH |\n", s.Name, s.Title, s.Program)
	}
	return b.String()
}

// cells are a row's figures as they are shown.
func (x Row) cells() []string {
	how := "a call each"
	if x.Leased {
		how = "leased"
	}
	times := ""
	if x.Keys > 1 {
		times = fmt.Sprintf("%d × ", x.Keys)
	}
	away, again := "", ""
	if x.Away > 0 {
		away, again = fmt.Sprintf("%.1f s", x.Away.Seconds()), fmt.Sprintf("%.1f s", x.Again.Seconds())
	}
	if x.Again < 0 {
		again = "not in the scene"
	}
	excess := fmt.Sprintf("%.1f", x.Over)
	if x.May > 0 {
		excess += fmt.Sprintf(" of %.0f", x.May)
	}
	return []string{
		fmt.Sprintf("%s%.0f/s, burst %d, %s", times, x.Rate, x.Burst, how),
		fmt.Sprint(x.Admitted), fmt.Sprint(x.Bound), excess, percent(x.Used), short(x.P50), short(x.P99),
		percent(x.Local), fmt.Sprintf("%.2f", x.Calls), fmt.Sprint(x.Changes), away, again,
	}
}

func percent(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }

func short(d time.Duration) string {
	if d >= time.Millisecond {
		return fmt.Sprintf("%.1f ms", d.Seconds()*1e3)
	}
	return fmt.Sprintf("%.1f µs", d.Seconds()*1e6)
}

// verdicts hold the rows against what must hold.
func (p *page) verdicts() string {
	var b strings.Builder
	b.WriteString("| what must hold | bar | measured |\n|---|---|---|\n")
	line := func(what, bar, measured string) {
		if measured != "" {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", what, bar, measured)
		}
	}
	line("ceiling used, round trip 0.2 to 100 ms", "≥ 97 %", p.worst(func(s Scene, x Row) (float64, string) {
		return -x.Used, percent(x.Used)
	}, func(s Scene, x Row) bool { return strings.HasPrefix(s.Name, "far-") && s.Trip <= 100*time.Millisecond }))
	line("admitted above the scene's bound, in any window", "≤ 1", p.worst(func(s Scene, x Row) (float64, string) {
		return x.Beyond, fmt.Sprintf("%.1f", x.Beyond)
	}, func(Scene, Row) bool { return true }))
	line("p99 of Take, leased, steady distance", "≤ max(200 µs, a tenth of the round trip)", p.worst(func(s Scene, x Row) (float64, string) {
		return float64(x.P99) / float64(max(200*time.Microsecond, s.Trip/10)), short(x.P99)
	}, func(s Scene, x Row) bool { return strings.HasPrefix(s.Name, "far-") && x.Leased }))
	line("local decisions, 0.5 % of the answers late", "≤ 1 %", p.worst(func(s Scene, x Row) (float64, string) {
		return x.Local, percent(x.Local)
	}, func(s Scene, x Row) bool { return s.Name == "late-replies" }))
	line("changes of state in ten minutes at 25 ms", "0", p.worst(func(s Scene, x Row) (float64, string) {
		return float64(x.Changes), fmt.Sprint(x.Changes)
	}, func(s Scene, x Row) bool { return s.Name == "ten-minutes" }))
	line("calls for each admitted at 1 ms, leased", "≤ 0.2", p.worst(func(s Scene, x Row) (float64, string) {
		return x.Calls, fmt.Sprintf("%.2f", x.Calls)
	}, func(s Scene, x Row) bool { return s.Name == "far-1ms" && x.Leased }))
	return b.String()
}

// worst returns the text of the row for which measure is highest, and whose it is.
func (p *page) worst(measure func(Scene, Row) (float64, string), about func(Scene, Row) bool) string {
	said, top, found := "", 0.0, false
	for _, s := range p.scenes {
		for _, x := range p.rows {
			if x.Scene != s.Name || !about(s, x) {
				continue
			}
			if m, text := measure(s, x); !found || m > top {
				said, top, found = fmt.Sprintf("%s (`%s`, %s)", text, s.Name, x.Limit), m, true
			}
		}
	}
	return said
}
