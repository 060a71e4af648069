package overhead

import (
	"cmp"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The measures of a drawing, in pixels.
const (
	barHeight = 18
	labelRoom = 250
	barRoom   = 520
	valueRoom = 110
)

// Plot draws each bench at the largest number of keys below a hundred thousand: one
// bar per subject, the fastest first.
func (r *Result) Plot(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, bench := range benches {
		keys := 0
		for _, k := range r.keysOf(bench) {
			if k < 100_000 {
				keys = max(keys, k)
			}
		}
		if keys == 0 {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, "overhead-"+bench+".svg"), []byte(r.draw(bench, keys)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (r *Result) draw(bench string, keys int) string {
	var rows []Row
	longest := 0.0
	for _, x := range r.Rows {
		if x.Bench == bench && x.Keys == keys && x.CPU == 1 {
			rows = append(rows, x)
			longest = max(longest, x.NsOp)
		}
	}
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Compare(a.NsOp, b.NsOp) })
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n",
		labelRoom+barRoom+valueRoom, (len(rows)+2)*barHeight)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/><text x="8" y="%d" font-weight="bold">%s, %s, 1 core: ns per request</text>`+"\n",
		barHeight, bench, keyWord(keys))
	for i, x := range rows {
		bar(&b, x, (i+1)*barHeight+barHeight/2, x.NsOp/longest*barRoom)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func bar(b *strings.Builder, x Row, y int, width float64) {
	colour := "#9db4c0"
	switch {
	case isKit(x.Subject):
		colour = "#2a6f97"
	case x.Bare || x.Subject == bareRefusal:
		colour = "#cccccc"
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%s</text><rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/><text x="%.1f" y="%d">%.0f ns, %d allocs</text>`+"\n",
		labelRoom-8, y+13, html.EscapeString(x.Subject), labelRoom, y+2, width, barHeight-4, colour, labelRoom+width+6, y+13, x.NsOp, x.Allocs)
}
