package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
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

// What is changed at run time is told where it can be seen beside what it did.
func TestThePageTellsOfChangesAtRunTime(t *testing.T) {
	tab, s := browse(t), newStage(t, 4*time.Millisecond)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("of-the-test\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	e := startEdge(t, s.URL, "admin_token_file: "+token+stageFile+"  limits: {rate: {rate: 100/s, burst: 100}}\n")
	s.play(t, fixed(e.base), client{"k-acme", "/browse", 60})
	open(t, tab, e)
	change := func(body string) {
		t.Helper()
		req, err := http.NewRequest("PATCH", e.admin+"/policy", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer of-the-test")
		resp, err := http.DefaultClient.Do(req)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%+v, %v", resp, err)
		}
		resp.Body.Close()
	}
	change("gate: {limits: {rate: {rate: 20/s, burst: 20}}}")
	eventually(t, tab, "the log has the change", `/The limit rate was changed to 20\/s, bursts of 20\./.test(document.querySelector(".log").innerText)`)
	eventually(t, tab, "the caller that it hurts is named", `/^Acme is over its own limits: \d+\/s get 429/.test(document.querySelector(".verdict").innerText)`)
	change("gate: {shadow: [rate]}")
	eventually(t, tab, "shadow mode is told", `/^Shadow mode lets \d+\/s through that would be refused/.test(document.querySelector(".verdict").innerText)`)
	if section := ask[string](t, tab, `document.querySelector(".verdict a").hash`); section != "#changing-what-is-in-force" {
		t.Errorf("the advice leads to %s", section)
	}
}
