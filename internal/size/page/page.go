// Package page writes a report on a log as one HTML page that needs nothing else: no
// script, no style sheet, no font, no picture from anywhere.
package page

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"
)

// Report is what the page shows. Texts may come from a stranger's log: they are
// escaped.
type Report struct {
	Title  string
	From   time.Time     // of the first bin
	Bin    time.Duration // of the series
	Text   string        // the report as the terminal has it
	Tried  string        // the numbers that were replayed; empty: none were
	Doubts []string
	Charts []Chart
	Routes []Route
}

// Chart is one quantity over time.
type Chart struct {
	Name, Unit string
	Lines      []Line
}

// Line is one series of a chart, a value for each bin.
type Line struct {
	Name   string
	Values []float64
}

// Route is a row of the table.
type Route struct {
	Name            string
	Requests        int
	Rate, Busy      float64 // λ, λ·W
	P50, P99        time.Duration
	Limited, Full   int // would have been refused with 429, 503
	RefusedPercents string
}

//go:embed page.html
var source string

var view = template.Must(template.New("page").Funcs(template.FuncMap{
	"number": number, "points": points, "at": at, "last": last,
}).Parse(source))

// Write writes the page.
func Write(w io.Writer, r *Report) error { return view.Execute(w, r) }

// The size of a chart's plot, in the units of its viewBox.
const (
	wide = 800.0
	high = 120.0
)

// Most returns the highest value of a chart, above zero.
func (c Chart) Most() float64 {
	most := 0.0
	for _, l := range c.Lines {
		for _, v := range l.Values {
			most = max(most, v)
		}
	}
	if most == 0 {
		return 1
	}
	return most
}

// points returns the corners of a line.
func points(values []float64, most float64) string {
	var b strings.Builder
	for i, v := range values {
		x := wide * (float64(i) + 0.5) / float64(len(values))
		fmt.Fprintf(&b, "%.1f,%.1f ", x, high-high*v/most)
	}
	return b.String()
}

// number writes a value with about three digits.
func number(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func at(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }

func last(r *Report) time.Time {
	n := 0
	if len(r.Charts) > 0 && len(r.Charts[0].Lines) > 0 {
		n = len(r.Charts[0].Lines[0].Values)
	}
	return r.From.Add(time.Duration(n) * r.Bin)
}
