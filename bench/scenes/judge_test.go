package scenes

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func at(ms ...int) (all []answer) {
	for _, x := range ms {
		d := time.Duration(x) * time.Millisecond
		all = append(all, answer{arrived: d, due: d, ok: true})
	}
	return all
}

func TestExcessIsWhatTheFullestWindowHasAboveTheBound(t *testing.T) {
	l := limit{rate: 10, burst: 2}
	for _, c := range []struct {
		name string
		all  []answer
		want float64
	}{
		{"a burst, then the rate", at(0, 0, 100, 200, 300), 0},
		{"one too many at once", at(0, 0, 0), 1},
		{"in the middle", at(0, 0, 1000, 1000, 1050, 1100), 1},
		{"two small ones do not add up over a rest", at(0, 0, 50, 5000, 5000, 5050), 0.5},
	} {
		if got := excess(c.all, l, &apart{}); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	refused := at(0, 0, 0)
	refused[2].ok = false
	if got := excess(refused, l, &apart{}); got != 0 {
		t.Errorf("a refused request counts: %v", got)
	}
}

// Each process that decides by its share beside others that share adds its part; when all
// do, they are one ceiling again.
func TestTheBoundGrowsByWhoIsApart(t *testing.T) {
	var a apart
	for _, look := range []struct {
		at time.Duration
		k  int
	}{{1, 0}, {2, 0}, {3, 1}, {4, 1}, {5, 3}, {6, 3}, {7, 0}, {8, 2}, {9, 0}} {
		a.add(look.at*time.Second, look.k)
	}
	for at, want := range map[time.Duration]float64{0: 0, 2: 0, 3: 1, 4: 2, 5: 3, 6: 3, 7: 3, 8: 5, 9: 7, 20: 7} {
		if got := a.upTo(at * time.Second); math.Abs(got-want/processes) > 1e-9 {
			t.Errorf("up to %d s: %v, want %v thirds", at, got, want)
		}
	}
	if got, all := a.upTo(2500*time.Millisecond), at(2000, 2000, 2400, 2500); math.Abs(got-0.5/processes) > 1e-9 || excess(all, limit{rate: 3, burst: 2}, &a) != 0 {
		t.Errorf("%v at 2.5 s", got)
	}
}

func TestOneBucketIsTheMeasure(t *testing.T) {
	all := at(0, 0, 0, 1500, 1500, 1500) // a bucket of two, full again at 200 ms
	all[0].ok, all[5].ok = false, false
	if would, did := compare(all, limit{rate: 10, burst: 2}); would != 2 || did != 2 {
		t.Errorf("%d of %d after the warm-up, want 2 of 2", did, would)
	}
}

func TestSharedAgainCountsFromTheReturn(t *testing.T) {
	for _, c := range []struct{ last, again time.Duration }{
		{4 * time.Second, time.Second}, {2 * time.Second, 0}, {10*time.Second - 20*time.Millisecond, -1},
	} {
		r := &record{scene: &Scene{away: set(near)}, length: 10 * time.Second, down: time.Second, up: 3 * time.Second, last: []time.Duration{c.last}}
		var x Row
		if r.again(0, &x); x.Again != c.again || x.Away != 2*time.Second {
			t.Errorf("last degraded at %v: again after %v, want %v", c.last, x.Again, c.again)
		}
	}
}

func TestUnknownScenesAreErrors(t *testing.T) {
	for _, c := range [][]string{{"-scenes", "far-25ms,nowhere"}, {"-for", "1s"}, {"more"}} {
		if err := Main(new(strings.Builder), c); err == nil {
			t.Errorf("%v: no error", c)
		}
	}
	some, err := choose(Scenes(), "oom, far-1ms")
	if err != nil || len(some) != 2 || some[0].Name != "oom" || some[1].Name != "far-1ms" {
		t.Errorf("%v, %v", some, err)
	}
}

func TestTheTablesGoBetweenTheirMarks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	p := &page{scenes: Scenes()[1:2], rows: []Row{{Scene: "far-1ms", Limit: "leased", Leased: true, Rate: 300, Burst: 150, Admitted: 7, Over: 3, May: 2, Beyond: 1, Used: 0.5}}}
	if err := os.WriteFile(path, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.insert(path); err == nil {
		t.Error("a file without marks was written")
	}
	if err := os.WriteFile(path, []byte("before\n"+"<!-- scenes: begin -->"+"\nstale\n"+"<!-- scenes: end -->"+"\nafter\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.insert(path); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(path)
	for _, want := range []string{"before\n" + "<!-- scenes: begin -->", "300/s, burst 150, leased | 7 |", "| 3.0 of 2 | 50.0 % |", "| 1.0 (`far-1ms`, leased) |", "<!-- scenes: end -->" + "\nafter\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "stale") {
		t.Error("the old table is still there")
	}
}
