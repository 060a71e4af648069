package overhead

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// WriteTables writes all that was measured, for people.
func (r *Result) WriteTables(w io.Writer) {
	for _, bench := range benches {
		for _, keys := range r.keysOf(bench) {
			r.writeTable(w, bench, keys)
		}
	}
	writeQueues(w, r.Queues)
	fmt.Fprintf(w, "\nwhat must hold\n")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range r.Checks() {
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\n", c.Word(), c.What, c.Got, c.Must)
	}
	t.Flush()
	fmt.Fprintf(w, "\nwhere another library is better, on one core, at the part of it that it does\n")
	for _, line := range r.Better() {
		fmt.Fprintf(w, "  %s\n", line)
	}
}

func (r *Result) keysOf(bench string) (keys []int) {
	for _, x := range r.Rows {
		if x.Bench == bench && !slices.Contains(keys, x.Keys) {
			keys = append(keys, x.Keys)
		}
	}
	return keys
}

// writeTable writes one bench over so many keys, a line per subject.
func (r *Result) writeTable(w io.Writer, bench string, keys int) {
	fmt.Fprintf(w, "\n%s, %s (ns and ratios are medians, ± is half the distance of the quartiles)\n", bench, keyWord(keys))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "subject\t1 core: ns\t±\tratio\tB\tallocs\t2 cores: ns\t±\tratio\tB/key\t \n")
	for _, x := range r.Rows {
		if x.Bench != bench || x.Keys != keys || x.CPU != 1 {
			continue
		}
		fmt.Fprintf(t, "%s\t%.0f\t%.0f %%\t%.2f\t%d\t%d\t", x.Subject, x.NsOp, 100*x.Spread, x.Ratio, x.BytesOp, x.Allocs)
		if two := r.row(bench, x.Subject, 2, keys); two != nil {
			fmt.Fprintf(t, "%.0f\t%.0f %%\t%.2f\t", two.NsOp, 100*two.Spread, two.Ratio)
		} else {
			fmt.Fprint(t, "\t\t\t")
		}
		fmt.Fprintf(t, "%s\t \n", heapWord(x))
	}
	t.Flush()
}

func keyWord(keys int) string {
	if keys == 1 {
		return "1 key"
	}
	digits := fmt.Sprint(keys)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + " " + digits[i:]
	}
	return digits + " keys"
}

// heapWord says what a key costs, where there are enough of them to tell.
func heapWord(x Row) string {
	if x.HeapKey == 0 || x.Keys < 100_000 {
		return ""
	}
	return fmt.Sprintf("%.0f", x.HeapKey)
}

func writeQueues(w io.Writer, rows []QueueRow) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(w, "\nqueue: from a release to the next holder running, and one operation with so many waiting\n")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "waiting\tp50\tp99\tchannel p50\tchannel p99\tdispatch ns\tcancel ns\tevict ns\t \n")
	for _, q := range rows {
		fmt.Fprintf(t, "%d\t%v\t%v\t%v\t%v\t%.0f\t%.0f\t%.0f\t \n", q.Waiting, tenth(q.P50), tenth(q.P99),
			tenth(q.ChannelP50), tenth(q.ChannelP99), q.Dispatch, q.Cancel, q.Evict)
	}
	t.Flush()
}

func tenth(d time.Duration) time.Duration { return d.Round(100 * time.Nanosecond) }

func isKit(name string) bool { return strings.HasPrefix(name, "headgate/") }
