package shared

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/headgate-go/headgate/bench/rig"
)

// fault is a way for a store to go away, and to be back.
type fault struct {
	name       string
	away, back func(*rig.Server) error
}

func faults() []fault {
	return []fault{
		{"killed, back empty", func(s *rig.Server) error { s.Kill(); return nil }, func(s *rig.Server) error { return errors.Join(s.Start(), s.Wait()) }},
		{"stopped, continued", (*rig.Server).Suspend, (*rig.Server).Resume},
	}
}

// outageRow is what the requests met that arrived while the store was away.
type outageRow struct {
	Subject  string        `json:"subject"`
	Fault    string        `json:"fault"`
	Offered  int           `json:"offered"`
	Admitted int           `json:"admitted"`
	Ceiling  int           `json:"ceiling"` // burst + rate x the time
	Errors   int           `json:"errors"`
	P50      time.Duration `json:"p50_ns"`
	P99      time.Duration `json:"p99_ns"`
	Longest  time.Duration `json:"longest_ns"`
	Over     float64       `json:"over"` // requests above burst + rate·t in the fullest window of the whole run
}

const outageLength = 4 * time.Second

// outages lets each subject meet each fault. Only a server of the run's own can be
// killed.
func (r *run) outages(ctx context.Context) ([]outageRow, error) {
	var rows []outageRow
	for _, f := range faults() {
		for _, s := range subjects() {
			if r.srv.own == nil || ctx.Err() != nil || !strings.Contains(s.name+" / "+f.name, r.only) {
				continue
			}
			row, err := r.outage(s, f)
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

func (r *run) outage(s subject, f fault) (outageRow, error) {
	fleet, err := r.fleet(s, &wire{rtt: r.rtt})
	if err != nil {
		return outageRow{}, err
	}
	defer func() {
		for _, in := range fleet {
			in.close()
		}
	}()
	var down, up time.Duration
	done := make(chan error, 1)
	begin := time.Now()
	go func() {
		time.Sleep(r.warm)
		err := f.away(r.srv.own)
		down = time.Since(begin)
		time.Sleep(outageLength)
		up = time.Since(begin)
		if e := f.back(r.srv.own); err == nil {
			err = e
		}
		done <- err
	}()
	all := r.load(fleet, loads()[0], r.warm+outageLength+5*time.Second)
	if err := <-done; err != nil {
		return outageRow{}, err
	}
	row := r.judge(all, down, up)
	row.Subject, row.Fault = s.name, f.name
	return row, nil
}

func (r *run) judge(all []answer, down, up time.Duration) outageRow {
	row := outageRow{Ceiling: r.burst + int(float64(r.rate)*(up-down).Seconds())}
	var took, passed []time.Duration
	for _, a := range all {
		if a.ok {
			passed = append(passed, a.arrived+a.took)
		}
		if a.arrived < down || a.arrived >= up {
			continue
		}
		row.Offered++
		took = append(took, a.took)
		if a.ok {
			row.Admitted++
		}
		if a.err {
			row.Errors++
		}
	}
	slices.Sort(took)
	slices.Sort(passed)
	row.P50, row.P99, row.Longest = quantile(took, 0.5), quantile(took, 0.99), quantile(took, 1)
	row.Over = r.excess(passed)
	return row
}

// excess is the deepest debt of a bucket that everything admitted is taken from.
func (r *run) excess(passed []time.Duration) float64 {
	level, lowest, last := float64(r.burst), 0.0, time.Duration(0)
	for _, at := range passed {
		level = min(float64(r.burst), level+(at-last).Seconds()*float64(r.rate)) - 1
		last, lowest = at, min(lowest, level)
	}
	return max(0, -lowest)
}

func printOutages(w io.Writer, rows []outageRow) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(w, "\nThe store away for %v, twice the ceiling offered; over: of the whole run, with the return\n\n", outageLength)
	t := tabwriter.NewWriter(w, 0, 0, 1, ' ', tabwriter.Debug)
	fmt.Fprintln(t, "store\t subject\t offered\t admitted\t ceiling\t errors\t p50\t p99\t longest\t over")
	for _, x := range rows {
		fmt.Fprintf(t, "%s\t %s\t %d\t %d\t %d\t %d\t %v\t %v\t %v\t %.0f\n",
			x.Fault, x.Subject, x.Offered, x.Admitted, x.Ceiling, x.Errors, short(x.P50), short(x.P99), short(x.Longest), x.Over)
	}
	t.Flush()
}
