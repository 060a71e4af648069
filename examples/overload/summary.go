package main

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"
	"time"
)

// summary is one run in figures, once the slow phase is two seconds old, with the
// whole phase beside it. Shares are from 0 to 1.
type summary struct {
	Variant       string             `json:"variant"`
	Served        map[string]float64 `json:"served"`        // by route
	ServedWhole   map[string]float64 `json:"served_whole"`  // over the whole slow phase
	ServedHealed  map[string]float64 `json:"served_healed"` // from two seconds after healing
	Goodput       float64            `json:"goodput"`       // answers in time per second, over the slow capacity
	Wasted        float64            `json:"wasted"`        // of the database's work, for clients that had gone
	CheckoutP99MS float64            `json:"checkout_p99_ms"`
	Goroutines    int                `json:"goroutines"`
	HeapMiB       int                `json:"heap_mib"`
	RetryAfter    float64            `json:"retry_after"` // of the refusals, said when to come back
}

func summarize(name string, t *tape, w work) summary {
	s := summary{
		Variant: name, Goroutines: t.goroutines, HeapMiB: int(t.heap >> 20), RetryAfter: round(t.told()),
		Served: map[string]float64{}, ServedWhole: map[string]float64{}, ServedHealed: map[string]float64{},
		CheckoutP99MS: math.Round(float64(t.p99(0, settled, slowTo)) / float64(time.Millisecond)),
	}
	good := 0.0
	for class, route := range routeNames {
		s.Served[route] = round(t.share(class, settled, slowTo))
		s.ServedWhole[route] = round(t.share(class, slowFrom, slowTo))
		s.ServedHealed[route] = round(t.share(class, slowTo+2, length))
		// The last second's requests are partly served after healing.
		good += t.share(class, settled, slowTo-1) * shares[class] * perSecond
	}
	s.Goodput = round(good * slow.Seconds() / width)
	if w.done > 0 {
		s.Wasted = round(float64(w.wasted) / float64(w.done))
	}
	return s
}

func round(x float64) float64 { return math.Round(x*1e4) / 1e4 }

func printSummary(out io.Writer, all []summary) {
	fmt.Fprintf(out, "\nWhile writes take %v, from two seconds in (room for %.0f of %d requests a second):\n\n", slow, width/slow.Seconds(), perSecond)
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	row := func(name string, cell func(summary) string) {
		fmt.Fprintf(w, "  %s", name)
		for _, s := range all {
			fmt.Fprintf(w, "\t%s", cell(s))
		}
		fmt.Fprintln(w)
	}
	row("", func(s summary) string { return s.Variant })
	for _, route := range routeNames {
		row(route+" served", func(s summary) string { return percent(s.Served[route]) })
	}
	row("answers in time, of what is possible", func(s summary) string { return percent(s.Goodput) })
	row("work done for clients that had gone", func(s summary) string { return percent(s.Wasted) })
	row("checkout p99", func(s summary) string { return fmt.Sprintf("%.0f ms", s.CheckoutP99MS) })
	row("goroutines, heap at most", func(s summary) string { return fmt.Sprintf("%d, %d MiB", s.Goroutines, s.HeapMiB) })
	row("refusals that say when to come back", func(s summary) string { return percent(s.RetryAfter) })
	row("checkout served in the whole slow phase", func(s summary) string { return percent(s.ServedWhole["checkout"]) })
	row("browse served two seconds after it", func(s summary) string { return percent(s.ServedHealed["browse"]) })
	_ = w.Flush()
	fmt.Fprintln(out)
}

func percent(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }
