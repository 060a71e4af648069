package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// screen shows the three runs one below the other, one column a second, redrawn in
// place on a terminal. Elsewhere it prints each run once it is over.
type screen struct {
	out   io.Writer
	live  bool
	runs  []run
	lines int // drawn last time
}

type run struct {
	name string
	tape *tape
}

func newScreen(f *os.File) *screen {
	info, err := f.Stat()
	return &screen{out: f, live: err == nil && info.Mode()&os.ModeCharDevice != 0}
}

func (s *screen) begin(name string, t *tape) { s.runs = append(s.runs, run{name, t}) }

// draw shows what is known at this point of the latest run.
func (s *screen) draw(at time.Duration) {
	if !s.live {
		return
	}
	if s.lines > 0 {
		fmt.Fprintf(s.out, "\x1b[%dA\x1b[J", s.lines)
	}
	text := s.table(s.runs, at)
	s.lines = strings.Count(text, "\n")
	fmt.Fprint(s.out, text)
}

// end shows a run that is over.
func (s *screen) end() {
	const all = (length + 1) * time.Second
	if s.live {
		s.draw(all)
		return
	}
	fmt.Fprint(s.out, s.table(s.runs[len(s.runs)-1:], all))
}

func (s *screen) table(runs []run, at time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n  served, second by second            %-*s%-*s%s\n", slowFrom, "4ms", slowTo-slowFrom, "▏writes take 90 ms", "▏4 ms")
	for i, r := range runs {
		now := length
		if i == len(runs)-1 {
			now = min(int((at - patience).Seconds()), length)
		}
		r.write(&b, now)
	}
	return b.String()
}

// write draws the seconds that have been answered in full.
func (r run) write(b *strings.Builder, now int) {
	for class := range classes {
		name := ""
		if class == 0 {
			name = r.name
		}
		fmt.Fprintf(b, "  %-18s %-9s        ", name, routeNames[class])
		for second := range max(now, 0) {
			b.WriteString(block(r.tape.share(class, second, second+1)))
		}
		if now > slowFrom {
			fmt.Fprintf(b, "%s  %3.0f %% while slow", strings.Repeat(" ", length-now), 100*r.tape.share(class, slowFrom, min(now, slowTo)))
		}
		b.WriteByte('\n')
	}
	r.tape.mu.Lock()
	defer r.tape.mu.Unlock()
	fmt.Fprintf(b, "  %-18s %d goroutines, %d MiB at most", "", r.tape.goroutines, r.tape.heap>>20)
	if r.tape.limit > 0 {
		fmt.Fprintf(b, ", limit %d", r.tape.limit)
	}
	b.WriteString("\n\n")
}

// block is a share as a bar of eight steps; a full bar is at least 99 %.
func block(share float64) string {
	bars := []rune(" ▁▂▃▄▅▆▇█")
	switch {
	case share < 0:
		return " "
	case share >= 0.99:
		return "█"
	default:
		return string(bars[1+int(share*6.99)])
	}
}
