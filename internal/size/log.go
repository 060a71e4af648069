package size

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/internal/size/accesslog"
	"github.com/headgate-go/headgate/internal/size/replay"
	"github.com/headgate-go/headgate/internal/size/traffic"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// study is one log, read and measured.
type study struct {
	*config
	*traffic.Measure
	stream *traffic.Stream
	spool  *traffic.Spool
	lines  int
	faults faults
	broken error // why the log ends before its end
	seen   readings
	back   backward
	coarse int     // lines stamped to the second
	over   *series // what the page shows
}

// faults are the lines that could not be read.
type faults struct {
	count  int
	byKind map[error]int
	first  []string
}

func sizeLog(w io.Writer, c *config) (err error) {
	in, err := open(c.log)
	if err != nil {
		return err
	}
	defer in.Close()
	spool, err := traffic.NewSpool()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, spool.Close()) }()
	s := newStudy(c, spool)
	if err := s.read(in); err != nil {
		return err
	}
	w, kept := s.report(w)
	s.printTraffic(w)
	if s.All.Count == 0 {
		return errors.New("no line could be read")
	}
	return s.conclude(w, kept)
}

// conclude gives the advice, tries it, and writes the page.
func (s *study) conclude(w io.Writer, kept *bytes.Buffer) error {
	a := advise(s.Measure)
	doubts, serious := s.doubts()
	printDoubts(w, doubts)
	if serious {
		a.withhold()
	}
	a.print(w)
	if s.html != "" {
		s.over = newSeries(s.First, s.Last)
	}
	shown, result, err := "", (*replay.Result)(nil), error(nil)
	if serious {
		fmt.Fprintln(w, "\nnot replayed: work that holds its slot for a wrong time would be refused for a wrong reason")
		if s.over != nil {
			err = s.spool.Each(s.over.arrive)
		}
	} else {
		shown, result, err = s.replay(w, &a)
	}
	if err != nil || s.html == "" {
		return err
	}
	return s.writeHTML(kept.String(), doubts, shown, result)
}

func open(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(os.Stdin), nil
	}
	return os.Open(name)
}

func newStudy(c *config, spool *traffic.Spool) *study {
	s := &study{config: c, Measure: traffic.NewMeasure(), spool: spool, faults: faults{byKind: map[error]int{}}, seen: readings{count: map[accesslog.Reading]int{}, raw: map[accesslog.Reading][]float64{}}}
	var assume *traffic.Latency
	if c.p50 > 0 {
		l := traffic.NewLatency(c.p50, c.p99)
		assume = &l
	}
	s.stream = traffic.NewStream(c.window, assume, func(r traffic.Record) error {
		s.Measure.Add(r)
		return spool.Add(r)
	})
	return s
}

// read takes in the whole log.
func (s *study) read(in io.Reader) error {
	parser := accesslog.NewParser(s.parse)
	for line, err := range accesslog.Lines(in) {
		s.lines++
		var r accesslog.Request
		switch {
		case err == nil && len(line) == 0:
			continue
		case err == nil:
			r, err = parser.Parse(line)
		case !errors.Is(err, accesslog.ErrLong):
			s.lines--
			s.broken = err
			if s.lines == 0 {
				return err
			}
			return s.stream.Flush()
		}
		if err != nil {
			s.faults.add(s.lines, line, err)
			continue
		}
		s.note(&r)
		if err := s.stream.Add(&r); err != nil {
			return err
		}
	}
	return s.stream.Flush()
}

func (s *study) note(r *accesslog.Request) {
	s.seen.add(r)
	s.back.add(s.lines, r)
	if r.Coarse {
		s.coarse++
	}
}

const (
	faultsShown = 3
	faultWidth  = 60
)

func (f *faults) add(n int, line []byte, err error) {
	f.count++
	f.byKind[err]++
	if len(f.first) < faultsShown {
		f.first = append(f.first, fmt.Sprintf("line %d: %v: %.*q", n, err, faultWidth, line))
	}
}

// replay runs the log through a gate with the numbers to try, or those suggested.
func (s *study) replay(w io.Writer, a *advice) (shown string, r *replay.Result, err error) {
	o, shown := s.options(a)
	if s.over != nil {
		o.OnRefuse = s.over.refused
	}
	gate, err := replay.New(o)
	if err != nil {
		return "", nil, err
	}
	err = s.spool.Each(func(r traffic.Record) {
		if s.over != nil {
			s.over.arrive(r)
		}
		gate.Arrive(r)
	})
	if err != nil {
		return "", nil, err
	}
	r = gate.Finish()
	s.printReplay(w, shown, r)
	return shown, r, nil
}

// options returns the gate's numbers and the way to write them down.
func (s *study) options(a *advice) (o replay.Options, shown string) {
	n := s.try
	if n.rate == 0 {
		n.rate = a.rate
	}
	if n.burst == 0 {
		n.burst = max(a.burst, int(n.rate))
	}
	shown = "no Rate"
	if n.rate > 0 {
		o.Rate = ratelimit.PerKey(rate.Limit(n.rate), max(n.burst, 1), ratelimit.MaxKeys(traffic.MostCallers))
		shown = fmt.Sprintf("Rate: ratelimit.PerKey(%s, %d)", plain(n.rate), max(n.burst, 1))
	}
	o.Limit, o.MaxWait, o.Deadline, o.Level = shed.Throughput{Max: max(n.max, a.max)}, n.wait, n.deadline, s.levelOf()
	if n.max > 0 {
		o.Limit = shed.Throughput{Max: n.max}
	}
	if n.fixed > 0 {
		o.Limit = shed.Fixed(n.fixed)
	}
	if o.MaxWait == 0 {
		o.MaxWait = a.wait
	}
	if s.All.Took.Count() > 0 {
		shown += fmt.Sprintf(", Limit: %s, MaxWait: %v", limitText(o.Limit), o.MaxWait)
	}
	return o, shown
}

func limitText(l shed.Limit) string {
	if t, ok := l.(shed.Throughput); ok {
		return fmt.Sprintf("shed.Throughput{Max: %d}", t.Max)
	}
	return fmt.Sprintf("shed.Fixed(%d)", l)
}

// levelOf looks routes up by number, as the replay knows them.
func (s *study) levelOf() func(uint16) priority.Level {
	if len(s.levels) == 0 {
		return nil
	}
	names := s.stream.Routes()
	levels := make([]priority.Level, len(names))
	for i, name := range names {
		levels[i] = s.levels[name]
	}
	return func(route uint16) priority.Level { return levels[route] }
}

// instant writes an arrival down.
func instant(d time.Duration) string {
	return time.Unix(0, int64(d)).UTC().Format("2006-01-02 15:04:05")
}
