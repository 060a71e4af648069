package size

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/headgate-go/headgate/internal/size/accesslog"
)

// readings count how the lines were understood.
type readings struct {
	count map[accesslog.Reading]int
	raw   map[accesslog.Reading][]float64 // numbers of unknown unit, the first of them
	flaws map[error]int
}

const (
	mostReadings = 64 // a stranger's log chooses the names of fields
	mostRaw      = 1000
)

func (s *readings) add(r *accesslog.Request) {
	if r.Flaw != nil {
		if s.flaws == nil {
			s.flaws = map[error]int{}
		}
		s.flaws[r.Flaw]++
	}
	if _, known := s.count[r.Reading]; !known && len(s.count) >= mostReadings {
		return
	}
	s.count[r.Reading]++
	if r.Asked && len(s.raw[r.Reading]) < mostRaw {
		s.raw[r.Reading] = append(s.raw[r.Reading], r.Raw)
	}
}

// printReadings names the formats, and asks for what the lines do not say.
func (s *study) printReadings(w io.Writer) {
	order := slices.SortedFunc(maps.Keys(s.seen.count), func(a, b accesslog.Reading) int {
		return cmp.Or(cmp.Compare(s.seen.count[b], s.seen.count[a]), cmp.Compare(a.Format+a.Field, b.Format+b.Field))
	})
	for _, r := range order {
		fmt.Fprintf(w, "  read as: %s", readingText(r))
		if len(order) > 1 {
			fmt.Fprintf(w, " (%d lines)", s.seen.count[r])
		}
		fmt.Fprintln(w)
	}
	for _, r := range order {
		if r.Asked {
			printQuestion(w, r, s.seen.raw[r])
		}
	}
}

func readingText(r accesslog.Reading) string {
	field := printable(r.Field)
	if _, err := strconv.Atoi(r.Field); err == nil {
		field = "field " + field
	}
	switch {
	case r.Field == "":
		return r.Format + ", without a latency"
	case r.Asked:
		return r.Format + ", " + field + " in a unit that is not known"
	case r.Unit == 0:
		return r.Format + ", " + field + " with its unit"
	}
	return fmt.Sprintf("%s, %s in %s", r.Format, field, unitName(r.Unit))
}

func unitName(unit time.Duration) string {
	switch unit {
	case time.Second:
		return "seconds"
	case time.Millisecond:
		return "milliseconds"
	case time.Microsecond:
		return "microseconds"
	case time.Nanosecond:
		return "nanoseconds"
	}
	return "units of " + unit.String()
}

// printQuestion asks for a unit, and says what each would mean.
func printQuestion(w io.Writer, r accesslog.Reading, raw []float64) {
	slices.Sort(raw)
	median := raw[len(raw)/2]
	field := printable(r.Field)
	fmt.Fprintf(w, "  ? in which unit is %q (%s)? Run again with one of\n", field, r.Format)
	for _, u := range []struct {
		name, whose string
		unit        time.Duration
	}{{"s", ", Apache's %T", time.Second}, {"ms", "", time.Millisecond}, {"us", ", Apache's %D", time.Microsecond}, {"ns", "", time.Nanosecond}} {
		if _, err := strconv.Atoi(r.Field); err != nil {
			u.whose = ""
		}
		if d := median * float64(u.unit); d >= 0 && d < float64(24*time.Hour) {
			fmt.Fprintf(w, "      -latency %s:%s   (half of the requests took up to %v%s)\n", field, u.name, short(time.Duration(d)), u.whose)
		}
	}
}
