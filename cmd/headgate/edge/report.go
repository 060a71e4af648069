package edge

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/cmd/headgate/edge/internal/store"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/queue"
)

// report prints the numbers in force.
func (e *edge) report(out io.Writer) error {
	c, stats := e.inForce.Load(), e.gate.Stats()
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%s\t"+format+"\n", append([]any{name}, args...)...)
	}
	line("listen", "%s, admin %s", c.Listen, or(c.Admin, "none"))
	line("upstream", "%s", c.Upstream.parsed.Redacted())
	line("redis", "%s", or(store.Redacted(c.Redis), "none: limits are this process' own"))
	if len(stats.Limits) == 0 {
		line("limits", "none")
	}
	for _, l := range stats.Limits {
		if l.Name == "route" {
			continue // told with the routes
		}
		n, per := l.Policy.Quota()
		line("limit "+l.Name, "%s a second for a caller without a plan, at most %d in %v", perSecond(l.Policy.Rate), n, per)
	}
	c.Understood(func(name, text string) { line(name, "%s", text) })
	for _, p := range stats.Pools {
		line("pool "+or(p.Name, "main"), "%d slots now, between %d and %d; %s", p.Limit, p.Least, p.Most, c.waiting(p))
	}
	for _, pattern := range slices.Sorted(maps.Keys(c.Gate.Routes)) {
		line("route "+pattern, "%s", c.describe(pattern))
	}
	line("everything else", "level %v", priority.Normal)
	line("drain", "%v notice, then %v grace", time.Duration(c.Drain.Notice), time.Duration(c.Drain.Grace))
	return w.Flush()
}

// waiting puts a pool's queue in words.
func (s *settings) waiting(p admission.PoolStats) string {
	longest := time.Duration(s.Gate.Capacity.MaxWait)
	if p.Name != "" {
		longest = time.Duration(s.Gate.Pools[p.Name].MaxWait)
	}
	if longest < 0 {
		return "none waits"
	}
	return fmt.Sprintf("at most %d wait, %v each", p.Bound, cmp.Or(longest, queue.DefaultMaxWait))
}

// describe puts one route in words.
func (s *settings) describe(pattern string) string {
	r := s.Gate.Routes[pattern]
	if r.Exempt {
		return "exempt"
	}
	text := fmt.Sprintf("level %v", priority.Level(r.Level))
	for _, part := range []struct {
		said  bool
		words string
	}{
		{r.Cost > 0, fmt.Sprintf("cost %d", r.Cost)},
		{r.Cap > 0, fmt.Sprintf("at most %d at once", r.Cap)},
		{r.Stream > 0, fmt.Sprintf("a stream, at most %d open", r.Stream)},
		{r.Timeout > 0, fmt.Sprintf("%v at most", time.Duration(r.Timeout))},
		{r.Pool != "", "pool " + r.Pool},
	} {
		if part.said {
			text += ", " + part.words
		}
	}
	if r.Rate != nil {
		text += fmt.Sprintf(", own limit %s a second, burst %d", perSecond(rate.Limit(r.Rate.Rate)), r.Rate.Burst)
	}
	return text
}

func perSecond(r rate.Limit) string { return fmt.Sprintf("%.4g", float64(r)) }

func or(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}
