package overhead

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate-go/headgate/ratelimit"
)

// TestEverySubjectKeepsItsPremises measures for a moment: that all answers are what
// they have to be is checked by the measurement itself.
func TestEverySubjectKeepsItsPremises(t *testing.T) {
	r := short()
	out, err := r.measure()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all() {
		for _, bench := range s.benches {
			for _, keys := range r.keys {
				for _, cpus := range r.cpus {
					x := out.row(bench, s.name, cpus, keys)
					if x == nil {
						t.Fatalf("%s, %s, %d cores, %d keys: no row", bench, s.name, cpus, keys)
					}
					if x.NsOp <= 0 || x.Ratio <= 0 {
						t.Errorf("%+v", *x)
					}
				}
			}
		}
	}
	for _, bench := range benches {
		if x := out.row(bench, baseOf(bench), 1, 1000); x == nil || x.Ratio != 1 {
			t.Errorf("%s: the base is %+v", bench, x)
		}
	}
	if x := out.row(admitted, kitAdmit, 1, 1000); x.Allocs != 0 {
		t.Errorf("Admit and Release allocate %d times", x.Allocs)
	}
	if x := out.row(admitted, kitWhole, 1, 1000); x.Allocs > 2 {
		t.Errorf("the whole gate allocates %d times", x.Allocs)
	}
	checkOutput(t, out)
}

func checkOutput(t *testing.T, out *Result) {
	t.Helper()
	var b bytes.Buffer
	if err := out.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var rows []map[string]any
	if err := json.Unmarshal(b.Bytes(), &rows); err != nil || len(rows) != len(out.Rows) {
		t.Fatal(len(rows), err)
	}
	want := []string{"allocs_op", "bench", "bytes_op", "cpu", "keys", "ns_op", "ratio", "subject"}
	var got []string
	for field := range rows[0] {
		got = append(got, field)
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("fields %v, want %v", got, want)
	}
	b.Reset()
	out.WriteTables(&b)
	for _, want := range []string{"refused-503, 1 000 keys", kitWhole, "what must hold", "channel p99"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	dir := t.TempDir()
	if err := out.Plot(dir); err != nil {
		t.Fatal(err)
	}
	if svg, err := os.ReadFile(filepath.Join(dir, "overhead-admitted.svg")); err != nil || !strings.Contains(string(svg), kitWhole) {
		t.Error(err)
	}
}

// broken is a group of one subject.
func broken(bench string, s *subject) error {
	g := &group{run: short(), bench: bench, keys: 10}
	g.made, g.asking = keyNames(10)
	_, err := g.enter(s)
	return err
}

// TestPremisesCatchSubjectsThatCheat holds the checks to subjects that would look
// good for the wrong reason.
func TestPremisesCatchSubjectsThatCheat(t *testing.T) {
	always := func(status int) func(terms) (*instance, error) {
		return func(terms) (*instance, error) {
			return &instance{ask: func(*sender) int { return status }}, nil
		}
	}
	oneBucket := func(t terms) (*instance, error) {
		l := ratelimit.Global(1e-9, t.burst)
		return newLimited(l), nil
	}
	for name, err := range map[string]error{
		"refuses what is to be admitted":   broken(admitted, &subject{name: "x", build: always(http.StatusTooManyRequests)}),
		"admits what is to be refused":     broken(refused503, &subject{name: "x", build: always(http.StatusNoContent)}),
		"one bucket for all keys":          broken(refused429, &subject{name: "x", build: oneBucket}),
		"rate headers that are not there":  broken(admitted, &subject{name: "x", headers: []string{"X-Ratelimit-Limit"}, build: always(http.StatusNoContent)}),
		"remembers fewer keys than it met": broken(admitted, &subject{name: "x", build: forgetful}),
	} {
		if err == nil {
			t.Errorf("%s: not noticed", name)
		}
	}
}

func newLimited(l ratelimit.Limiter) *instance {
	return &instance{ask: func(c *sender) int {
		return status(l.Take(c.r.Context(), time.Now(), ratelimit.Key{ID: c.key}, 1, 0).OK, http.StatusTooManyRequests)
	}}
}

func forgetful(terms) (*instance, error) {
	return &instance{ask: func(*sender) int { return http.StatusNoContent }, keys: func() int { return 9 }}, nil
}

func TestQuantile(t *testing.T) {
	for _, c := range []struct {
		v       []float64
		q, want float64
	}{{[]float64{3, 1, 2}, 0.5, 2}, {[]float64{1, 2}, 0.5, 1.5}, {[]float64{5}, 0.75, 5}, {[]float64{4, 1, 2, 3}, 0.25, 1.75}} {
		if got := quantile(c.v, c.q); got != c.want {
			t.Errorf("quantile(%v, %v) = %v, want %v", c.v, c.q, got, c.want)
		}
	}
}

func TestChecksSayWhatIsMissed(t *testing.T) {
	r := &Result{Rows: []Row{
		{Bench: admitted, Subject: kitAdmit, CPU: 1, Keys: 10_000, NsOp: 100, Ratio: 1.4},
		{Bench: admitted, Subject: kitAdmit, CPU: 2, Keys: 10_000, NsOp: 120},
		{Bench: admitted, Subject: kitWhole, CPU: 1, Keys: 10_000, Allocs: 3, Ratio: 3},
	}}
	words := map[string]string{}
	for _, c := range r.Checks() {
		words[c.What] = c.Word()
	}
	want := map[string]string{
		"headgate/admit, admitted, 10 000 keys":    "met",
		"headgate/whole, admitted, 10 000 keys":    "MISSED",
		"headgate/admit, 1 → 2 cores, 10 000 keys": "MISSED",
	}
	for what, word := range want {
		if words[what] != word {
			t.Errorf("%s: %q, want %q", what, words[what], word)
		}
	}
	if len(words) != len(want) {
		t.Errorf("checked %v", words)
	}
}
