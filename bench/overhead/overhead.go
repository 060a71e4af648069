// Package overhead measures what deciding costs: each admitted and each refused
// request under the kit, under its parts, under every comparable library and under
// what somebody would write by hand, in one run.
package overhead

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
)

// The benches: what every answer of them is.
const (
	admitted   = "admitted"
	refused429 = "refused-429"
	refused503 = "refused-503"
)

var benches = []string{admitted, refused429, refused503}

// run is the plan of a measurement.
type run struct {
	keys    []int
	cpus    []int
	repeats int
	turn    time.Duration // of one subject, in each repeat
	benches []string
	only    string
	queues  []int // how many wait
	log     io.Writer
}

// plan is the whole measurement; short is one that only shows that it works.
func plan() *run {
	return &run{
		benches: benches, keys: []int{1, 10_000, 1_000_000}, cpus: []int{1, 2}, repeats: 10, turn: 25 * time.Millisecond,
		queues: []int{1000, 10_000, 100_000}, log: os.Stderr,
	}
}

func short() *run {
	return &run{
		benches: benches, keys: []int{1, 1000}, cpus: []int{1, 2}, repeats: 3, turn: time.Millisecond,
		queues: []int{100, 1000}, log: io.Discard,
	}
}

// Main measures with the arguments of the command and writes the tables.
func Main(w io.Writer, args []string) error {
	f := flag.NewFlagSet("overhead", flag.ContinueOnError)
	asJSON := f.Bool("json", false, "write the rows as JSON")
	plots := f.String("plot", "", "draw the figures into this directory")
	brief := f.Bool("short", false, "a few seconds, to see that it works")
	only := f.String("only", "", "only subjects whose name contains this, and what they are compared with")
	profile := f.String("profile", "", "write CPU and mutex profiles of the measured turns into this directory")
	repeats := f.Int("repeats", 0, "interleaved repeats; 0: 10")
	bench := f.String("bench", "", "only this one: admitted, refused-429 or refused-503")
	keys := f.String("keys", "", "comma-separated numbers of keys; empty: 1,10000,1000000")
	if err := f.Parse(args); err != nil {
		return err
	}
	r := plan()
	if *brief {
		r = short()
	}
	if *repeats > 0 {
		r.repeats = *repeats
	}
	r.only = *only
	if *bench != "" {
		r.benches = []string{*bench}
	}
	if err := r.over(*keys); err != nil {
		return err
	}
	var out *Result
	err := profiled(*profile, func() (err error) {
		out, err = r.measure()
		return err
	})
	if err != nil {
		return err
	}
	if *plots != "" {
		if err := out.Plot(*plots); err != nil {
			return err
		}
	}
	if *asJSON {
		return out.WriteJSON(w)
	}
	out.WriteTables(w)
	return nil
}

// over sets the numbers of keys, unless the list is empty.
func (r *run) over(list string) error {
	if list == "" {
		return nil
	}
	r.keys = nil
	for _, word := range strings.Split(list, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return fmt.Errorf("-keys: %q is not a number of keys", word)
		}
		r.keys = append(r.keys, n)
	}
	return nil
}

// Result is all that was measured.
type Result struct {
	Rows   []Row
	Queues []QueueRow
}

// Row is one subject in one bench.
type Row struct {
	Bench   string  `json:"bench"`
	Subject string  `json:"subject"`
	CPU     int     `json:"cpu"`
	Keys    int     `json:"keys"`
	NsOp    float64 `json:"ns_op"`
	BytesOp int     `json:"bytes_op"`
	Allocs  int     `json:"allocs_op"`
	Ratio   float64 `json:"ratio"` // to the bare pieces of the bench, in the same turn

	Does    string  `json:"-"`
	Bare    bool    `json:"-"`
	Spread  float64 `json:"-"` // half the distance of the quartiles, over the median
	HeapKey float64 `json:"-"` // bytes of heap per key; 0: not measured
}

// WriteJSON writes the rows as one array.
func (r *Result) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(r.Rows)
}

// row finds one. It is nil when that was not measured.
func (r *Result) row(bench, subject string, cpu, keys int) *Row {
	for i := range r.Rows {
		if x := &r.Rows[i]; x.Bench == bench && x.Subject == subject && x.CPU == cpu && x.Keys == keys {
			return x
		}
	}
	return nil
}

func (r *run) measure() (*Result, error) {
	out := new(Result)
	for _, bench := range r.benches {
		for _, keys := range r.keys {
			rows, err := r.group(bench, keys)
			if err != nil {
				return nil, fmt.Errorf("%s, %d keys: %w", bench, keys, err)
			}
			out.Rows = append(out.Rows, rows...)
		}
	}
	if r.only == "" && len(r.benches) > 1 || r.only == "queue" {
		var err error
		if out.Queues, err = r.measureQueues(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// subjects are those of a bench that are to be measured, the base of its ratios
// first.
func (r *run) subjects(bench string) (some []*subject) {
	for _, s := range all() {
		base := s.name == baseOf(bench)
		if s.takesPart(bench) && (base || strings.Contains(s.name, r.only)) {
			some = append(some, s)
			if base {
				some[0], some[len(some)-1] = some[len(some)-1], some[0]
			}
		}
	}
	return some
}

func all() []*subject {
	var s []*subject
	for _, some := range [][]*subject{bare(), keyed(), shedders(), kit()} {
		s = append(s, some...)
	}
	return s
}

func baseOf(bench string) string {
	if bench == admitted {
		return barePieces
	}
	return bareRefusal
}

func round(x float64, digits int) float64 {
	p := math.Pow10(digits)
	return math.Round(x*p) / p
}
