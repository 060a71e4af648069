package size

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"text/tabwriter"

	"github.com/headgate-go/headgate/internal/size/replay"
	"github.com/headgate-go/headgate/internal/size/traffic"
	"github.com/headgate-go/headgate/shed"
)

// printTraffic says what the log holds.
func (s *study) printTraffic(w io.Writer) {
	fmt.Fprintf(w, "%d lines", s.lines)
	if s.All.Count > 0 {
		fmt.Fprintf(w, ", %d requests from %s to %s UTC (%v)", s.All.Count, instant(s.First), instant(s.Last), short(s.Last-s.First))
	}
	fmt.Fprintln(w)
	if s.broken != nil {
		fmt.Fprintf(w, "  THE LOG BREAKS OFF after line %d (%v): what follows is of the lines before\n", s.lines, s.broken)
	}
	s.printFaults(w)
	if s.All.Count == 0 {
		return
	}
	s.printNotes(w)
	fmt.Fprintln(w)
	s.printRoutes(w)
	s.printByLoad(w)
	fmt.Fprintln(w)
}

func (s *study) printFaults(w io.Writer) {
	fmt.Fprintf(w, "  malformed: %d\n", s.faults.count)
	for _, example := range s.faults.first {
		fmt.Fprintf(w, "    %s\n", example)
	}
	if more := s.faults.count - len(s.faults.first); more > 0 {
		fmt.Fprintf(w, "    and %d more:", more)
		for _, kind := range slices.SortedFunc(maps.Keys(s.faults.byKind), byText) {
			fmt.Fprintf(w, " %d × %v;", s.faults.byKind[kind], kind)
		}
		fmt.Fprintln(w)
	}
}

func byText(a, b error) int { return cmp.Compare(a.Error(), b.Error()) }

// printNotes says how the log was read, where that is a choice.
func (s *study) printNotes(w io.Writer) {
	s.printReadings(w)
	if s.coarse > 0 {
		fmt.Fprintf(w, "  %d lines are stamped to the second: their arrivals are spread evenly over it\n", s.coarse)
	}
	if s.Untimed > 0 {
		fmt.Fprintf(w, "  %d requests do not say how long they took, and meet no slot\n", s.Untimed)
	}
	if s.stream.Late > 0 {
		fmt.Fprintf(w, "  %d lines came too far out of order: their arrivals are those of the lines before\n", s.stream.Late)
	}
	if s.Refused > 0 {
		fmt.Fprintf(w, "  %d were already answered 429 or 503: something in front, or the service itself, refused them\n", s.Refused)
	}
}

func (s *study) printRoutes(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "requests\tper s\tbusiest s\tp50\tp99\tin flight λ·W\tmost\t  route\t")
	names := s.stream.Routes()
	order := s.busiest()
	for _, i := range order[:min(len(order), s.rows)] {
		s.printFlow(t, &s.Routes[i], names[i])
	}
	s.printFlow(t, &s.All, "all")
	t.Flush()
	if more := len(order) - s.rows; more > 0 {
		fmt.Fprintf(w, "and %d routes more (-rows)\n", more)
	}
}

// busiest returns the routes by how much of the service they keep busy.
func (s *study) busiest() []int {
	var order []int
	for i := range s.Routes {
		if s.Routes[i].Count > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := &s.Routes[a], &s.Routes[b]
		return cmp.Or(cmp.Compare(y.Took.Seconds(), x.Took.Seconds()), cmp.Compare(y.Count, x.Count))
	})
	return order
}

func (s *study) printFlow(w io.Writer, f *traffic.Flow, name string) {
	fmt.Fprintf(w, "%d\t%.1f\t%d\t%v\t%v\t%.1f\t%d\t  %s\t\n", f.Count, s.Rate(f), f.Busiest,
		short(f.Took.Quantile(0.5)), short(f.Took.Quantile(0.99)), s.Concurrency(f), f.Peak, name)
}

func (s *study) printByLoad(w io.Writer) {
	if s.All.Took.Count() == 0 {
		return
	}
	fmt.Fprintf(w, "\nmedian latency by how many were in flight:")
	for i := range s.ByLoad {
		if h := &s.ByLoad[i]; h.Count() >= kneeLeast {
			fmt.Fprintf(w, "  %s: %v", loads(i), short(h.Quantile(0.5)))
		}
	}
	fmt.Fprintln(w)
}

// loads names an octave of load.
func loads(i int) string {
	if i == 0 {
		return "1"
	}
	return fmt.Sprintf("%d–%d", 1<<i, 2<<i-1)
}

// printReplay says what the gate would have done.
func (s *study) printReplay(w io.Writer, shown string, r *replay.Result) {
	fmt.Fprintf(w, "\nreplayed through the gate with %s\n", shown)
	for name := range s.levels {
		if !slices.Contains(s.stream.Routes(), name) {
			fmt.Fprintf(w, "  -level: no route %q in this log\n", name)
		}
	}
	limited, full := r.Refused()
	fmt.Fprintf(w, "  admitted %d, of which %d waited", r.Reasons[shed.Admitted], r.Waits.Count())
	if r.Waits.Count() > 0 {
		fmt.Fprintf(w, " (p99 %v, at most %d at once)", short(r.Waits.Quantile(0.99)), r.MostWaiting)
	}
	fmt.Fprintln(w)
	if s.All.Took.Count() > 0 {
		fmt.Fprintf(w, "  slots in force: %d at the start, %d to %d, %d at the end; %d in use at most\n",
			r.FirstLimit, r.LeastLimit, r.MostLimit, r.LastLimit, r.MostInFlight)
	}
	if limited+full == 0 {
		fmt.Fprintf(w, "  nothing would have been shed\n")
		return
	}
	fmt.Fprintf(w, "  would have been shed: %d with 429, %d with 503 (%s of all)\n", limited, full, percent(limited+full, s.All.Count))
	s.printReasons(w, r)
	s.printCallers(w, r)
	fmt.Fprintf(w, "  latencies stay as logged and nobody comes back: with fewer at once, work would have been faster and fewer refused\n")
}

func (s *study) printReasons(w io.Writer, r *replay.Result) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	names := s.stream.Routes()
	order := s.busiest()
	for _, i := range order[:min(len(order), s.rows)] {
		for reason, n := range r.Routes[i].Reasons {
			if n > 0 && shed.Reason(reason).Refused() {
				fmt.Fprintf(t, "    %s\t%s\t%d\t%s of the route\n", names[i], shed.Reason(reason).String(), n, percent(n, s.Routes[i].Count))
			}
		}
	}
	t.Flush()
}

const callersShown = 5

// printCallers names those that the rate would have turned away most.
func (s *study) printCallers(w io.Writer, r *replay.Result) {
	order := slices.SortedFunc(maps.Keys(r.Callers), func(a, b uint64) int {
		return cmp.Or(cmp.Compare(r.Callers[b], r.Callers[a]), cmp.Compare(a, b))
	})
	for _, h := range order[:min(len(order), callersShown)] {
		fmt.Fprintf(w, "    caller %s: %d with 429\n", printable(s.stream.CallerName(h)), r.Callers[h])
	}
	if more := len(order) - callersShown; more > 0 {
		fmt.Fprintf(w, "    and %d callers more\n", more)
	}
}

// printable keeps a log's text from steering the terminal.
func printable(s string) string {
	if s == "" {
		return "(unnamed)"
	}
	quoted := strconv.QuoteToASCII(s)
	return quoted[1 : len(quoted)-1]
}

// percent writes a share with as many digits as tell something.
func percent(part, whole int) string {
	p := 100 * float64(part) / float64(max(whole, 1))
	switch {
	case part == whole || p >= 10 && p < 99.5:
		return fmt.Sprintf("%.0f %%", p)
	case p >= 1:
		return fmt.Sprintf("%.1f %%", min(p, 99.9))
	case p > 0 && p < 0.01:
		return "less than 0.01 %"
	}
	return fmt.Sprintf("%.2g %%", p)
}
