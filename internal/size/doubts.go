package size

import (
	"fmt"
	"io"
	"time"

	"github.com/headgate-go/headgate/internal/size/accesslog"
)

// What hardly any log of one service holds.
const (
	manyInFlight   = 2_000   // λ·W
	absurdInFlight = 100_000 // more than one machine runs
	slowMedian     = 10 * time.Second
	absurdMedian   = 10 * time.Minute
	absurdP99      = time.Hour
	absurdFast     = 10 * time.Microsecond // for the slowest of all
	clockSlack     = time.Minute
)

// doubts are the reasons not to believe the figures; serious: no number of slots
// should rest on them.
func (s *study) doubts() (all []string, serious bool) {
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if n := s.faults.count; n*20 > s.lines {
		say("%s of the lines could not be read: they may hold what matters", percent(n, s.lines))
	}
	if n := s.seen.flaws[accesslog.ErrNegative]; n > 0 {
		say("%d latencies are negative, and were left out", n)
	}
	if n := s.seen.flaws[accesslog.ErrTooLong]; n > 0 {
		say("%d latencies are longer than a day, and were left out: the unit may be wrong", n)
		serious = uint64(n) > s.All.Took.Count()
	}
	if s.back.count > 0 {
		say("the clock goes back %d times, by up to %v (first at line %d): files in the wrong order, or the clocks of several machines", s.back.count, short(s.back.most), s.back.line)
	}
	if s.All.Took.Count() == 0 {
		return all, serious
	}
	if text := s.absurd(); text != "" {
		say("%s", text)
		return all, true
	}
	if c := s.Concurrency(&s.All); c > manyInFlight {
		say("λ·W is %.0f: so many requests in flight, on average, are rare for one service. Is the unit right?", c)
	}
	if p50 := s.All.Took.Quantile(0.5); p50 > slowMedian {
		say("half of the requests took %v or longer. Is the unit right?", short(p50))
	}
	return all, serious
}

// absurd says what cannot be, or nothing.
func (s *study) absurd() string {
	took := &s.All.Took
	p50, p99 := took.Quantile(0.5), took.Quantile(0.99)
	switch c := s.Concurrency(&s.All); {
	case took.Most() == 0:
		return "every latency is zero: whole seconds, cut off? Log a finer time (Apache: %D)"
	case took.Most() < absurdFast:
		return fmt.Sprintf("no request took longer than %v: the unit must be wrong", took.Most())
	case c > absurdInFlight:
		return fmt.Sprintf("λ·W is %.0f requests in flight on average, which no machine runs: the unit must be wrong", c)
	case p50 > absurdMedian || p99 > absurdP99:
		return fmt.Sprintf("latencies of %v at the median and %v at the 99th percentile: the unit must be wrong", short(p50), short(p99))
	}
	return ""
}

func printDoubts(w io.Writer, doubts []string) {
	if len(doubts) == 0 {
		return
	}
	fmt.Fprintf(w, "before you use these numbers\n")
	for _, text := range doubts {
		fmt.Fprintf(w, "  ! %s\n", text)
	}
	fmt.Fprintln(w)
}

// backward watches the stamps for a clock that goes back.
type backward struct {
	latest      time.Time
	count, line int
	most        time.Duration
}

// add takes the next line. A line that is stamped at the request's start stands as
// far behind as the request took.
func (b *backward) add(line int, r *accesslog.Request) {
	at := r.Stamp
	if !r.AtEnd {
		at = at.Add(r.Took)
	}
	back := b.latest.Sub(at)
	if b.latest.IsZero() || back < clockSlack {
		if at.After(b.latest) {
			b.latest = at
		}
		return
	}
	if b.count++; b.count == 1 {
		b.line = line
	}
	b.most = max(b.most, back)
	b.latest = at
}
