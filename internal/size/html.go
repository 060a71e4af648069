package size

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/headgate-go/headgate/internal/size/page"
	"github.com/headgate-go/headgate/internal/size/replay"
	"github.com/headgate-go/headgate/internal/size/traffic"
	"github.com/headgate-go/headgate/shed"
)

// series is a log over time, in so many bins at most whatever its length.
type series struct {
	first time.Duration
	bin   time.Duration
	bins  []bin
}

type bin struct {
	took          traffic.Histogram
	count         int
	limited, full int // would have been refused with 429, 503
}

const mostBins = 200

// newSeries makes bins of whole seconds.
func newSeries(first, last time.Duration) *series {
	span := max(last-first, 0) + 1
	width := max((span+mostBins-1)/mostBins, time.Second)
	if odd := width % time.Second; odd > 0 {
		width += time.Second - odd
	}
	return &series{first: first, bin: width, bins: make([]bin, (span+width-1)/width)}
}

func (s *series) at(r *traffic.Record) *bin {
	return &s.bins[min(max(int((r.Arrived-s.first)/s.bin), 0), len(s.bins)-1)]
}

func (s *series) arrive(r traffic.Record) {
	b := s.at(&r)
	b.count++
	if r.Timed {
		b.took.Add(r.Took)
	}
}

// refused takes what the gate would have turned away, at its arrival.
func (s *series) refused(r *traffic.Record, reason shed.Reason) {
	switch {
	case reason == shed.RateLimited || reason == shed.NotAdmissible:
		s.at(r).limited++
	case reason.Refused():
		s.at(r).full++
	}
}

// line returns a value for each bin.
func (s *series) line(name string, value func(*bin) float64) page.Line {
	l := page.Line{Name: name}
	for i := range s.bins {
		l.Values = append(l.Values, value(&s.bins[i]))
	}
	return l
}

func (s *series) charts(replayed bool) []page.Chart {
	per := s.bin.Seconds()
	millis := func(q float64) func(*bin) float64 {
		return func(b *bin) float64 { return float64(b.took.Quantile(q)) / float64(time.Millisecond) }
	}
	charts := []page.Chart{
		{Name: "Arrivals λ", Unit: "per second", Lines: []page.Line{s.line("", func(b *bin) float64 { return float64(b.count) / per })}},
		{Name: "Latency W", Unit: "ms", Lines: []page.Line{s.line("median", millis(0.5)), s.line("p99", millis(0.99))}},
		{Name: "In flight λ·W", Unit: "at once", Lines: []page.Line{s.line("", func(b *bin) float64 { return b.took.Seconds() / per })}},
	}
	if replayed {
		charts = append(charts, page.Chart{Name: "Would have been refused", Unit: "per second", Lines: []page.Line{
			s.line("503", func(b *bin) float64 { return float64(b.full) / per }),
			s.line("429", func(b *bin) float64 { return float64(b.limited) / per }),
		}})
	}
	return charts
}

// writeHTML writes the page beside the report in words; r is nil where nothing was replayed.
func (s *study) writeHTML(text string, doubts []string, shown string, r *replay.Result) error {
	rep := &page.Report{
		Title: "Sizing of " + filepath.Base(s.log), From: time.Unix(0, int64(s.First)), Bin: s.over.bin,
		Text: text, Tried: shown, Doubts: doubts, Charts: s.over.charts(r != nil),
	}
	names := s.stream.Routes()
	order := s.busiest()
	for _, i := range order[:min(len(order), s.rows)] {
		rep.Routes = append(rep.Routes, s.routeRow(names[i], i, r))
	}
	var out bytes.Buffer
	if err := page.Write(&out, rep); err != nil {
		return err
	}
	return os.WriteFile(s.html, out.Bytes(), 0o600)
}

func (s *study) routeRow(name string, i int, r *replay.Result) page.Route {
	f := &s.Routes[i]
	row := page.Route{
		Name: name, Requests: f.Count, Rate: s.Rate(f), Busy: s.Concurrency(f),
		P50: short(f.Took.Quantile(0.5)), P99: short(f.Took.Quantile(0.99)),
	}
	if r != nil && i < len(r.Routes) {
		row.Limited, row.Full = r.Routes[i].Refused()
		row.RefusedPercents = percent(row.Limited+row.Full, f.Count)
	}
	return row
}

// report is the output for people, kept for the page as it is written.
func (s *study) report(w io.Writer) (io.Writer, *bytes.Buffer) {
	var kept bytes.Buffer
	if s.html == "" {
		return w, &kept
	}
	return io.MultiWriter(w, &kept), &kept
}
