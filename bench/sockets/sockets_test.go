package sockets

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// The servers of a test are this program again.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "sockets" {
		if Main(os.Stdout, os.Args[2:]) != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func TestPossibleIsTheCapacityByRank(t *testing.T) {
	s := &Scenario{Width: 10, Kinds: []Kind{
		{Route: "checkout", Caller: "a", Size: 1}, {Route: "checkout", Caller: "b", Size: 2},
		{Route: "browse", Size: 1}, {Route: "export", Size: 1},
	}}
	second := Phase{Length: time.Second, Work: 100 * time.Millisecond} // 100 pieces
	for name, c := range map[string]struct {
		arrived []int
		want    []float64
	}{
		"all fits":                          {[]int{10, 10, 10, 10}, []float64{10, 10, 10, 10}},
		"the highest first, 5 for the last": {[]int{50, 0, 100, 100}, []float64{50, 0, 45, 5}},
		"the last needs less than 5":        {[]int{50, 0, 100, 2}, []float64{50, 0, 48, 2}},
		"equal parts of slot time":          {[]int{500, 500, 0, 500}, []float64{47.5, 23.75, 0, 5}},
		"what one does not need":            {[]int{20, 500, 0, 500}, []float64{20, 37.5, 0, 5}},
		"nothing below":                     {[]int{500, 500, 0, 0}, []float64{50, 25, 0, 0}},
		"nothing":                           {[]int{0, 0, 0, 0}, []float64{0, 0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			got := s.possible(second, c.arrived)
			for i := range got {
				if math.Abs(got[i]-c.want[i]) > 1e-6 {
					t.Fatalf("possible = %v, want %v", got, c.want)
				}
			}
		})
	}
}

func TestScenariosAreWhole(t *testing.T) {
	for _, s := range Scenarios() {
		var shares float64
		for _, k := range s.Kinds {
			shares += k.Share
			if _, ok := levels[k.Route]; !ok {
				t.Errorf("%s: no route %q", s.Name, k.Route)
			}
		}
		if math.Abs(shares-1) > 1e-9 {
			t.Errorf("%s: shares add up to %v", s.Name, shares)
		}
		if len(s.Kinds) > len(colours) {
			t.Errorf("%s: more kinds than colours", s.Name)
		}
	}
}

func TestRecoveryIsFromWhereAllIsServed(t *testing.T) {
	s := &Scenario{Kinds: make([]Kind, 1), Phases: []Phase{{Length: time.Second}, {Length: 2 * time.Second}}}
	for name, c := range map[string]struct {
		lost []time.Duration // instants at which nothing is served
		want time.Duration
	}{
		"at once":            {nil, 0},
		"only earlier":       {[]time.Duration{500 * time.Millisecond}, 0},
		"after a while":      {[]time.Duration{time.Second, 1500 * time.Millisecond}, 750 * time.Millisecond},
		"not before the end": {[]time.Duration{2750 * time.Millisecond}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			tl := newTally(s)
			for at := time.Duration(0); at < 3*time.Second; at += binWidth {
				a := arrival{phase: int(at / time.Second / 2), at: at}
				tl.arrive(a)
				if !slices.Contains(c.lost, at) {
					tl.serve(a, time.Millisecond)
				}
			}
			if got := tl.recovery(1); got != c.want {
				t.Errorf("recovery = %v, want %v", got, c.want)
			}
		})
	}
}

func TestUnknownNamesAreErrors(t *testing.T) {
	for _, args := range [][]string{
		{"-subjects", "nothing;banana"}, {"-scenarios", "banana"}, {"-passes", "0"}, {"banana"}, {"-banana"},
	} {
		if err := Main(io.Discard, append(args, "-list")); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
	some, err := choose(Subjects(), []string{"chi Throttle", "aegis"}, func(s Subject) string { return s.Name })
	if err != nil || len(some) != 3 {
		t.Errorf("a whole name and a start of two: %d subjects, %v", len(some), err)
	}
}

// small is half a second of a tenth of the usual load.
func small() *board {
	s := Scenario{Name: "slow-90", Title: "small", Width: 2, Kinds: shop, Phases: []Phase{
		{"healthy", 250 * time.Millisecond, 100, time.Millisecond}, {"slow", 250 * time.Millisecond, 200, 20 * time.Millisecond},
	}}
	return &board{
		scenarios: []Scenario{s}, subjects: Subjects()[:1], passes: 1, seed: 1, progress: io.Discard,
		program: func(ctx context.Context, p pass) *exec.Cmd { return itself(ctx, p) },
	}
}

func TestAPassOnRealSockets(t *testing.T) {
	b := small()
	if err := b.play(t.Context()); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := json.NewEncoder(&text).Encode(b.rows()); err != nil {
		t.Fatal(err)
	}
	var rows []map[string]any
	if err := json.Unmarshal(text.Bytes(), &rows); err != nil || len(rows) != 6 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for _, field := range []string{"subject", "scenario", "phase", "class", "served", "possible", "offered", "goodput", "p50_ms", "p99_ms", "refused_p99_ms", "refused_p95_ms", "refused_later_p99_ms", "wasted", "passes"} {
		if _, ok := rows[0][field]; !ok {
			t.Errorf("no %q", field)
		}
	}
	if rows[2]["served"].(float64) <= 0 || rows[2]["offered"].(float64) <= 0 || rows[2]["heap_mb"].(float64) <= 0 {
		t.Errorf("nothing was measured: %v", rows[2])
	}
	if plot := b.plot(&b.scenarios[0]); !strings.Contains(plot, "polygon") {
		t.Error("nothing is drawn")
	}
}

// The page names the command that made it, so that its reader can run the same.
func TestThePageNamesItsCommand(t *testing.T) {
	for want, o := range map[string]options{
		`-passes 3 -seed 1`: {passes: 3, seed: 1},
		`-passes 1 -seed 7 -subjects "nothing;headgate, fixed" -scenarios "long,deaf" -report "docs/overload.md"`: {
			passes: 1, seed: 7, subjects: "nothing;headgate, fixed", scenarios: "long,deaf", report: "docs/overload.md"},
	} {
		b := small()
		b.passes, b.command = o.passes, o.String()
		path := filepath.Join(t.TempDir(), "overload.md")
		if err := b.writePage(path); err != nil {
			t.Fatal(err)
		}
		page, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(page), "run . sockets "+want+"\n") {
			t.Errorf("%q is not on the page: %v\n%s", want, err, page)
		}
	}
}

func TestAnInterruptKeepsWhatIsDone(t *testing.T) {
	b := small()
	b.passes = 2
	ctx, interrupt := context.WithCancel(t.Context())
	begun := 0
	b.program = func(ctx context.Context, p pass) *exec.Cmd {
		if begun++; begun == 2 {
			interrupt()
		}
		return itself(ctx, p)
	}
	if err := b.play(ctx); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("play = %v", err)
	}
	if rows := b.rows(); len(rows) != 6 || rows[0].Passes != 1 {
		t.Errorf("%d rows are left", len(rows))
	}
}

func TestEverySubjectServes(t *testing.T) {
	s := &small().scenarios[0]
	for _, subject := range Subjects() {
		srv := &server{backend: newBackend(s)}
		h, err := subject.build(s, srv.routes())
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest("GET", "/checkout", nil)
		r.Header.Set(callerHeader, "shop")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != 200 || w.Body.String() != "done\n" {
			t.Errorf("%s: %d %q", subject.Name, w.Code, w.Body)
		}
	}
}
