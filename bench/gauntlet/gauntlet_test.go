package gauntlet

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate-go/headgate/shed"
)

// short are the scenarios that take a fraction of a second.
func short() []Scenario {
	return slices.DeleteFunc(Scenarios(), func(s Scenario) bool {
		return !slices.Contains([]string{"G1", "G5", "G6", "G7", "G10", "G13", "G14", "streams", "errors-slow"}, s.ID)
	})
}

// The lines of the bar that hold with room to spare, on seeds of their own: the
// whole bar is what the command prints.
func TestDefaultLawOnTheShortScenarios(t *testing.T) {
	few := func(s Scenario) bool { return s.ID == "G13" }
	out, err := Run(t.Context(), slices.DeleteFunc(short(), few), Entrants()[:1], Seeds(ReportedSeeds, 5))
	if err != nil {
		t.Fatal(err)
	}
	more, err := Run(t.Context(), []Scenario{short()[slices.IndexFunc(short(), few)]}, Entrants()[:1], Seeds(ReportedSeeds, 25)) // of 15 critical requests each
	if err != nil {
		t.Fatal(err)
	}
	out.Rows = append(out.Rows, more.Rows...)
	for _, r := range out.Rows {
		least := 0.95
		switch r.Scenario {
		case "G13":
			least = 0.85
		case "G7": // see burst
			least = 0.93
		}
		if r.Ratio < least {
			t.Errorf("%s %s: %.3f of the oracle's score", r.Scenario, r.Phase, r.Ratio)
		}
		if r.Scenario != "G13" && r.Critical < r.CriticalOracle-0.5 {
			t.Errorf("%s %s: critical %.2f, oracle %.2f", r.Scenario, r.Phase, r.Critical, r.CriticalOracle)
		}
		if r.RecoveryS > 2 {
			t.Errorf("%s %s: healed after %.1f s", r.Scenario, r.Phase, r.RecoveryS)
		}
	}
}

func TestPureDelayAndMixedWorkRefuseNobody(t *testing.T) {
	for _, s := range short() {
		if s.ID != "G5" && s.ID != "G6" && s.ID != "G14" {
			continue
		}
		for _, seed := range Seeds(2000, 2) {
			rec, err := Simulate(&s, shed.Throughput{}, seed)
			if err != nil {
				t.Fatal(err)
			}
			for i, tally := range rec.Tallies {
				if n := sum(tally.Refused) - tally.Early; n > 0 {
					t.Errorf("%s %s, seed %d: %d refused after the first second", s.ID, s.Phases[i].Name, seed, n)
				}
			}
		}
	}
}

// What an interrupt leaves is whole: the scenarios that were run, and nothing of others.
func TestAnInterruptedGauntletKeepsWhatIsWhole(t *testing.T) {
	scenarios := slices.DeleteFunc(short(), func(s Scenario) bool { return s.ID != "G1" && s.ID != "G7" })
	ctx, stop := context.WithCancel(t.Context())
	second := scenarios[1].Backend
	scenarios[1].Backend = func() backend { stop(); return second() }
	out, err := Run(ctx, scenarios, Entrants(), Seeds(1, 3))
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Rows) != len(scenarios[0].Phases)*len(Entrants()) || out.Records["G1"] == nil || len(out.Records) != 1 {
		t.Errorf("%d rows, %d records", len(out.Rows), len(out.Records))
	}
}

func TestRecoveryIsHeldAgainstTheOracles(t *testing.T) {
	s := Scenario{ID: "x"}
	p := Phase{Name: "healed", Healed: true, Overload: true}
	for _, c := range []struct {
		law, oracle float64
		misses      int
	}{{2, 0, 0}, {2.5, 0, 1}, {18.4, 18.5, 0}, {18.5, 18, 0}, {19, 18, 1}} {
		r := Result{Score: 100, Recovery: c.law, Quiet: 100, Drift: 1, Unfair: 1}
		best := r
		best.Recovery = c.oracle
		if got := misses(&s, &p, r, best, 1); len(got) != c.misses {
			t.Errorf("%v beside %v: %v", c.law, c.oracle, got)
		}
	}
}

func TestTheFloorIsWhatAPhaseCanHold(t *testing.T) {
	for _, c := range []struct {
		capacity, rate, want float64
	}{
		{177.8, 1500, 42.2}, // 10·150 + 3·27.8 of 3,750
		{2000, 4000, 80},    // 4,000 + 3,600 + 400 of 10,000
		{2000, 1500, 100},
		{0, 1500, 0},
	} {
		if got := strict(c.capacity, split(c.rate)); got < c.want-0.05 || got > c.want+0.05 {
			t.Errorf("%v of %v: %.2f, want %.1f", c.capacity, c.rate, got, c.want)
		}
	}
}

func TestARunIsTheSameEveryTime(t *testing.T) {
	s := short()[0]
	a, err := Simulate(&s, shed.Throughput{}, 7)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := Simulate(&s, shed.Throughput{}, 7)
	if !slices.Equal(a.Moves, b.Moves) || !slices.Equal(a.Bins, b.Bins) {
		t.Error("two runs of one seed differ")
	}
}

// Every request ends once: served in time, late or refused.
func TestNothingIsLost(t *testing.T) {
	for _, s := range short() {
		rec, err := Simulate(&s, shed.AIMD{}, 3)
		if err != nil {
			t.Fatal(err)
		}
		for i, tally := range rec.Tallies {
			if got := sum(tally.Served) + sum(tally.Refused) + tally.Late; got != sum(tally.Offered) {
				t.Errorf("%s %s: %d offered, %d ended", s.ID, s.Phases[i].Name, sum(tally.Offered), got)
			}
		}
	}
}

// The model's backends do what the scenarios say of them: a pool's throughput is
// its width over the mean, thrashing peaks at nine, a delay has no bottleneck.
func TestBackendsHaveTheCapacityTheyClaim(t *testing.T) {
	for _, c := range []struct {
		scenario string
		at       time.Duration
		inFlight int
		want     float64 // per second
	}{
		{"G1", 5 * sec, 16, 178}, {"G1", 5 * sec, 64, 178}, {"G1", 5 * sec, 8, 89},
		{"G4", 5 * sec, 9, 784}, {"G4", 5 * sec, 32, 540}, {"G4", 5 * sec, 4, 400},
		{"G5", 5 * sec, 32, 355}, {"G5", 5 * sec, 128, 1422},
	} {
		s := slices.DeleteFunc(Scenarios(), func(s Scenario) bool { return s.ID != c.scenario })[0]
		if got := throughput(s.Backend(), c.at, c.inFlight); got < 0.95*c.want || got > 1.05*c.want {
			t.Errorf("%s with %d in flight: %.0f/s, want %.0f", c.scenario, c.inFlight, got, c.want)
		}
	}
}

// throughput keeps a fixed number in flight for ten seconds.
func throughput(b backend, from time.Duration, inFlight int) float64 {
	rng := rand.New(rand.NewPCG(1, 1))
	var done events
	start := func(t time.Duration, id int32) {
		r := &request{size: rng.NormFloat64(), kind: rng.Float64(), slots: 1}
		if until, ok := b.start(t, id, r); ok {
			done.push(event{until, id})
		}
	}
	for i := range inFlight {
		start(from, int32(i))
	}
	n := 0
	for t := from; t < from+10*sec; n++ {
		e := done.pop()
		t = e.at
		b.finish(1)
		if id, until, ok := b.next(t); ok {
			done.push(event{until, id})
		}
		start(t, e.id)
	}
	return float64(n) / 10
}

func TestReportsAreWellFormed(t *testing.T) {
	scenarios := short()[:1]
	out, err := Run(t.Context(), scenarios, Entrants(), Seeds(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := WriteJSON(&text, out.Rows); err != nil {
		t.Fatal(err)
	}
	var rows []map[string]any
	if err := json.Unmarshal([]byte(text.String()), &rows); err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"scenario", "phase", "law", "default", "score", "oracle", "ratio", "critical", "critical_oracle", "late", "late_oracle", "false_refusals", "recovery_s", "recovery_oracle_s", "backend_over_unqueued", "refusal_p95_ms", "refusal_p99_ms", "seeds"} {
		if _, ok := rows[0][field]; !ok {
			t.Errorf("no %q in a row", field)
		}
	}
	if len(rows) != len(scenarios[0].Phases)*len(Entrants()) {
		t.Errorf("%d rows", len(rows))
	}
	dir := t.TempDir()
	if err := WritePlots(dir, scenarios, out, "throughput"); err != nil {
		t.Fatal(err)
	}
	svg, err := os.ReadFile(filepath.Join(dir, "G1.svg"))
	if err != nil || !strings.HasSuffix(strings.TrimSpace(string(svg)), "</svg>") || strings.Contains(string(svg), "NaN") {
		t.Errorf("plot: %v, %d bytes", err, len(svg))
	}
}

// The heap hands events out in order of time, ties by id.
func TestEventsComeInOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	var h events
	for i := range 1000 {
		h.push(event{time.Duration(rng.IntN(100)), int32(i)})
	}
	last := event{-1, -1}
	for len(h) > 0 {
		e := h.pop()
		if e.at < last.at || e.at == last.at && e.id < last.id {
			t.Fatalf("%v after %v", e, last)
		}
		last = e
	}
}
