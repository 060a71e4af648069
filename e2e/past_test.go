package e2e

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// A page that is opened in the middle of an incident knows when it began, what was usual
// before, and what happened; the figures of each instant are there for keyboard and
// pointer.
func TestAPageOpenedLateKnowsWhatWas(t *testing.T) {
	tab, s := browse(t), newStage(t, 4*time.Millisecond)
	e := startEdge(t, s.URL, stageFile)
	s.play(t, fixed(e.base), shoppers...)
	within(t, 20*time.Second, "quiet times", func() bool { return e.metric("headgate_requests_total", `outcome="served"`) > 3000 })
	s.took.Store(int64(200 * time.Millisecond))
	within(t, 20*time.Second, "refusals for some seconds", func() bool { return e.metric("headgate_requests_total", `outcome="refused"`) > 1200 })
	look(t, tab, 1000, "light")
	do(t, tab, chromedp.Navigate(e.admin+"/headgate/"))
	eventually(t, tab, "it tells of before", `/Refusing .*, since \d+:\d\d.* instead of /s.test(document.querySelector(".verdict")?.innerText)`)
	eventually(t, tab, "the log has the limit's fall", `/\d+:\d\d.*The limit fell from \d+ to \d+: /.test(document.querySelector(".log").innerText)`)
	eventually(t, tab, "the charts have marks", `document.querySelectorAll("svg .mark title").length > 0`)
	if known := ask[int](t, tab, `Number(document.querySelector("svg[role=slider]").getAttribute("aria-valuemax"))`); known < 12 {
		t.Errorf("the charts begin %d s ago", known)
	}
	const readout = `document.querySelector(".readout").innerText`
	do(t, tab, chromedp.Focus("svg[role=slider]"), chromedp.KeyEvent(kb.Home))
	eventually(t, tab, "the first instant has its figures", `/^\d+:\d\d.*: served .*; refused nothing\. \d+ in flight of 32, 0 waiting/.test(`+readout+`)`)
	do(t, tab, chromedp.KeyEvent(kb.End))
	eventually(t, tab, "and so has the last", `/^\d+:\d\d.*; refused .*batch \d+\/s/.test(`+readout+`)`)
	if text := ask[string](t, tab, `document.querySelector("svg[role=slider]").getAttribute("aria-valuetext")`); text != ask[string](t, tab, readout) {
		t.Errorf("a screen reader hears %q", text)
	}
	do(t, tab, chromedp.KeyEvent(kb.Escape))
	eventually(t, tab, "nobody looks at an instant", `/^Point at a chart/.test(`+readout+`)`)
	do(t, tab, chromedp.Focus("summary"), chromedp.KeyEvent(kb.Enter))
	for what, line := range map[string]string{
		"a default": `max_wait: .*# default`, "the command line's": `url: .*# command line`, "the file's, with its line": `level: critical *# .*edge[.]yaml:[0-9]+`,
	} {
		eventually(t, tab, "the numbers in force have "+what, `new RegExp("`+line+`").test(document.querySelector("pre").textContent)`)
	}
}
