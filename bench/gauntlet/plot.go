package gauntlet

import (
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The page of a plot, in pixels.
const (
	pageWidth   = 960
	plotLeft    = 64
	plotRight   = 928
	panelHeight = 132
	panelGap    = 40
	panelTop    = 84
	points      = 432 // at most, along the time axis
)

var classColours = [Classes]string{"#c8553d", "#e9b44c", "#8fb339"}

// WritePlots writes one SVG per scenario, of one law's run of the first seed.
func WritePlots(dir string, scenarios []Scenario, o Outcome, law string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for i := range scenarios {
		s := &scenarios[i]
		rec := o.Records[s.ID][law]
		if rec == nil {
			continue
		}
		path := filepath.Join(dir, s.ID+".svg")
		if err := os.WriteFile(path, []byte(plot(s, rec, law)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// canvas is an SVG in the making. Time runs along x for all panels.
type canvas struct {
	strings.Builder
	length time.Duration
	bins   []Bin
	width  time.Duration // of a bin
}

func plot(s *Scenario, rec *Record, law string) string {
	bins, width := merge(rec.Bins, points)
	c := &canvas{length: s.Length(), bins: bins, width: width}
	height := panelTop + 3*(panelHeight+panelGap) + 8
	c.put(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="ui-sans-serif,system-ui,sans-serif" font-size="12" fill="#333">`, pageWidth, height)
	c.put(`<rect width="%d" height="%d" fill="#fff"/>`, pageWidth, height)
	c.put(`<text x="%d" y="32" font-size="19" font-weight="600">%s</text>`, plotLeft, html.EscapeString(s.ID+": "+s.Title))
	c.put(`<text x="%d" y="53" fill="#777">%s</text>`, plotLeft, law)
	c.phases(s, height)
	c.slots(panelTop)
	c.depth(panelTop + panelHeight + panelGap)
	c.served(panelTop + 2*(panelHeight+panelGap))
	c.put(`</svg>`)
	return c.String()
}

func (c *canvas) put(format string, args ...any) {
	fmt.Fprintf(c, format, args...)
	c.WriteByte('\n')
}

// phases shades the stretches in which somebody has to be turned away.
func (c *canvas) phases(s *Scenario, height int) {
	for _, p := range s.Phases {
		x, w := c.x(p.Start), c.x(p.End)-c.x(p.Start)
		if p.Overload || strings.Contains(p.Name, "slow") {
			c.put(`<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="#f6f0ea"/>`, x, panelTop-14, w, height-panelTop-panelGap+22)
		}
		c.put(`<text x="%.1f" y="%d" text-anchor="middle" fill="#999" font-size="11">%s</text>`, x+w/2, panelTop-22, p.Name)
	}
}

// slots draws the limit over what is in flight.
func (c *canvas) slots(top int) {
	limit, inFlight := c.series(func(b Bin) float64 { return b.Limit }), c.series(func(b Bin) float64 { return b.InFlight })
	most := axisTop(max(peak(limit), peak(inFlight)))
	c.frame(top, most, "slots")
	c.area(top, most, nil, inFlight, "#bcd2e8")
	c.line(top, most, limit, "#1d5c96", 2)
	c.legend(top, []string{"limit", "in flight"}, []string{"#1d5c96", "#bcd2e8"})
}

func (c *canvas) depth(top int) {
	depth := c.series(func(b Bin) float64 { return b.Depth })
	most := axisTop(peak(depth))
	c.frame(top, most, "waiting")
	c.area(top, most, nil, depth, "#c9c3dc")
	c.line(top, most, depth, "#6a5d9c", 1.2)
}

// served stacks the classes, the most important at the bottom, under what came.
func (c *canvas) served(top int) {
	perSecond := 1 / c.width.Seconds()
	offered := c.series(func(b Bin) float64 { return float64(b.Offered) * perSecond })
	var stack [Classes][]float64
	var below []float64
	for k := range Classes {
		stack[k] = c.series(func(b Bin) float64 { return float64(b.Served[k]) * perSecond })
		for i := range stack[k] {
			if k > 0 {
				stack[k][i] += stack[k-1][i]
			}
		}
	}
	most := axisTop(max(peak(stack[Classes-1]), peak(offered)))
	c.frame(top, most, "served /s")
	for k := range Classes {
		c.area(top, most, below, stack[k], classColours[k])
		below = stack[k]
	}
	c.line(top, most, offered, "#555", 1)
	c.legend(top, append([]string{"offered"}, ClassNames[:]...), append([]string{"#555"}, classColours[:]...))
	c.times(top + panelHeight)
}

func (c *canvas) frame(top int, most float64, name string) {
	c.put(`<text x="%d" y="%d" font-weight="600">%s</text>`, plotLeft, top-20+14, name)
	for i := range 3 {
		v := most * float64(i) / 2
		y := c.y(top, most, v)
		c.put(`<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#e2e2e2"/>`, plotLeft, plotRight, y, y)
		c.put(`<text x="%d" y="%.1f" text-anchor="end" fill="#888">%s</text>`, plotLeft-8, y+4, number(v))
	}
}

func (c *canvas) times(y int) {
	step := axisTop(c.length.Seconds()) / 10
	for t := 0.0; t <= c.length.Seconds(); t += step {
		c.put(`<text x="%.1f" y="%d" text-anchor="middle" fill="#888">%s s</text>`, c.x(time.Duration(t*1e9)), y+20, number(t))
	}
}

func (c *canvas) legend(top int, names, colours []string) {
	x := plotRight
	for i := len(names) - 1; i >= 0; i-- {
		x -= 22 + 7*len(names[i])
		c.put(`<rect x="%d" y="%d" width="10" height="10" rx="2" fill="%s"/><text x="%d" y="%d">%s</text>`, x, top-15, colours[i], x+14, top-6, names[i])
	}
}

func (c *canvas) line(top int, most float64, v []float64, colour string, width float64) {
	c.put(`<polyline fill="none" stroke="%s" stroke-width="%g" stroke-linejoin="round" points="%s"/>`, colour, width, c.path(top, most, v, false))
}

// area fills between two series; below nil is the axis.
func (c *canvas) area(top int, most float64, below, v []float64, colour string) {
	if below == nil {
		below = make([]float64, len(v))
	}
	c.put(`<polygon fill="%s" points="%s %s"/>`, colour, c.path(top, most, v, false), c.path(top, most, below, true))
}

func (c *canvas) path(top int, most float64, v []float64, backwards bool) string {
	out := make([]string, len(v))
	for i, value := range v {
		at := i
		if backwards {
			at = len(v) - 1 - i
		}
		out[at] = fmt.Sprintf("%.1f,%.1f", c.x((time.Duration(i)*c.width)+c.width/2), c.y(top, most, value))
	}
	return strings.Join(out, " ")
}

func (c *canvas) series(f func(Bin) float64) []float64 {
	v := make([]float64, len(c.bins))
	for i, b := range c.bins {
		v[i] = f(b)
	}
	return v
}

func (c *canvas) x(t time.Duration) float64 {
	return plotLeft + (plotRight-plotLeft)*min(t.Seconds()/c.length.Seconds(), 1)
}

func (c *canvas) y(top int, most, v float64) float64 {
	return float64(top) + panelHeight*(1-min(v/most, 1))
}
