package sockets

import (
	"fmt"
	"html"
	"strings"
)

// The sheet of a plot, in pixels.
const (
	sheetWidth = 960
	axisLeft   = 220
	axisRight  = 940
	rowHeight  = 46
	rowGap     = 10
	rowsTop    = 70
)

var colours = []string{"#c8553d", "#e9b44c", "#8fb339"}

// plot draws what was served of each kind over time under what arrived, a row for each
// subject, of its first pass.
func (b *board) plot(s *Scenario) string {
	var out strings.Builder
	height := rowsTop + len(b.subjects)*(rowHeight+rowGap) + 30
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="ui-sans-serif,system-ui,sans-serif" font-size="11" fill="#333">`+"\n", sheetWidth, height)
	fmt.Fprintf(&out, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", sheetWidth, height)
	fmt.Fprintf(&out, `<text x="20" y="30" font-size="17" font-weight="600">%s</text>`+"\n", html.EscapeString(s.Title))
	s.plotPhases(&out, height)
	s.plotLegend(&out)
	y := rowsTop
	for _, subject := range b.subjects {
		results := b.results[cellKey{s.Name, subject.Name}]
		if len(results) == 0 {
			continue
		}
		fmt.Fprintf(&out, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", axisLeft-10, y+rowHeight/2+4, html.EscapeString(subject.Name))
		results[0].tally.plotRow(&out, y)
		y += rowHeight + rowGap
	}
	out.WriteString("</svg>\n")
	return out.String()
}

func (s *Scenario) plotPhases(out *strings.Builder, height int) {
	hard := s.hard()
	at := 0.0
	for _, p := range s.Phases {
		x, w := s.x(at), s.x(at+p.Length.Seconds())-s.x(at)
		if p.Name == hard {
			fmt.Fprintf(out, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="#f6f0ea"/>`+"\n", x, rowsTop-8, w, height-rowsTop-14)
		}
		fmt.Fprintf(out, `<text x="%.1f" y="%d" text-anchor="middle" fill="#888">%s, %g s</text>`+"\n", x+w/2, height-8, html.EscapeString(p.Name), p.Length.Seconds())
		at += p.Length.Seconds()
	}
}

func (s *Scenario) plotLegend(out *strings.Builder) {
	x := axisLeft
	for i, k := range s.Kinds {
		fmt.Fprintf(out, `<rect x="%d" y="42" width="10" height="10" fill="%s"/><text x="%d" y="51">%s served</text>`+"\n", x, colours[i], x+15, html.EscapeString(k.Name))
		x += 130
	}
	fmt.Fprintf(out, `<line x1="%d" x2="%d" y1="47" y2="47" stroke="#555"/><text x="%d" y="51">offered</text>`+"\n", x, x+12, x+17)
}

func (s *Scenario) x(seconds float64) float64 {
	return axisLeft + (axisRight-axisLeft)*seconds/s.length().Seconds()
}

func (t *tally) plotRow(out *strings.Builder, top int) {
	most := 1
	for _, kinds := range t.bins {
		n := 0
		for _, b := range kinds {
			n += b.offered
		}
		most = max(most, n)
	}
	floor := make([]int, len(t.bins))
	for k := range t.scenario.Kinds {
		roof := make([]int, len(t.bins))
		for i := range t.bins {
			roof[i] = floor[i] + t.bins[i][k].served
		}
		fmt.Fprintf(out, `<polygon fill="%s" points="%s %s"/>`+"\n", colours[k], t.path(roof, top, most, false), t.path(floor, top, most, true))
		floor = roof
	}
	offered := make([]int, len(t.bins))
	for i, kinds := range t.bins {
		for _, b := range kinds {
			offered[i] += b.offered
		}
	}
	fmt.Fprintf(out, `<polyline fill="none" stroke="#555" stroke-width="0.8" points="%s"/>`+"\n", t.path(offered, top, most, false))
}

func (t *tally) path(values []int, top, most int, backwards bool) string {
	n := len(values) - 1 // the last bin is what arrived at the very end
	points := make([]string, n)
	for i := range n {
		x := t.scenario.x((float64(i) + 0.5) * binWidth.Seconds())
		at := i
		if backwards {
			at = n - 1 - i
		}
		points[at] = fmt.Sprintf("%.1f,%.1f", x, float64(top)+rowHeight*(1-float64(values[i])/float64(most)))
	}
	return strings.Join(points, " ")
}
