package e2e

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// axeVersion is the checker of the rules of WCAG; it comes from npm.
const axeVersion = "4.14.1"

// axe returns the checker's script.
func axe(t *testing.T) string {
	t.Helper()
	need(t, "npm", "tar")
	dir := t.TempDir()
	pack := exec.Command("npm", "pack", "axe-core@"+axeVersion, "--silent")
	pack.Dir = dir
	if out, err := pack.CombinedOutput(); err != nil {
		t.Fatalf("npm pack: %v\n%s", err, out)
	}
	if out, err := exec.Command("tar", "-xzf", filepath.Join(dir, "axe-core-"+axeVersion+".tgz"), "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("tar: %v\n%s", err, out)
	}
	script, err := os.ReadFile(filepath.Join(dir, "package", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(script)
}

// breaches are the rules of WCAG 2.2, levels A and AA, that the page breaks.
func breaches(t *testing.T, tab context.Context) (found []struct {
	ID, Help string
	Nodes    []struct{ HTML, FailureSummary string }
}) {
	t.Helper()
	ask[bool](t, tab, `(() => {
		window.audit = "";
		axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] })
			.then((r) => window.audit = JSON.stringify([r.violations, r.passes.length]), (e) => window.audit = JSON.stringify(String(e)));
		return true;
	})()`)
	eventually(t, tab, "the page is checked", `window.audit !== ""`)
	var passed int
	if err := json.Unmarshal([]byte(ask[string](t, tab, "window.audit")), &[]any{&found, &passed}); err != nil {
		t.Fatal(err)
	}
	if passed < 10 {
		t.Errorf("only %d rules had something to check", passed)
	}
	return found
}

// The page with everything on it, while it refuses, in both colours and on a small screen:
// no rule of WCAG 2.2 AA that a program can check is broken, nothing moves for those who
// asked for that, nothing is cut off, and the keyboard reaches what the pointer reaches.
func TestThePageIsForEverybody(t *testing.T) {
	script := axe(t)
	tab := browse(t)
	s := newShop(t, "", "Acme", "Globex", "Initech", "a-name-without-a-blank-that-is-as-long-as-names-of-customers-may-come-to-be")
	s.slow.Store(int64(90 * time.Millisecond))
	s.fleet.away.Store(true)
	stop := s.load(t, 400)
	defer stop()
	look(t, tab, 320, "light")
	do(t, tab, chromedp.Navigate(s.URL+"/headgate/"))
	eventually(t, tab, "the page is full", `/^Refusing|want of capacity|without its store/.test(document.querySelector(".verdict")?.innerText) && document.querySelectorAll(".rows .name").length > 4 && document.querySelector(".log time")`)
	ask[bool](t, tab, `(() => {`+script+`; return true })()`)
	for _, c := range []struct {
		width  int64
		colour string
	}{{320, "light"}, {1200, "light"}, {1200, "dark"}} {
		look(t, tab, c.width, c.colour)
		time.Sleep(1500 * time.Millisecond) // a frame in this size and these colours
		for _, b := range breaches(t, tab) {
			for _, n := range b.Nodes {
				t.Errorf("%d px, %s: %s (%s)\n%s\n%s", c.width, c.colour, b.ID, b.Help, n.HTML, n.FailureSummary)
			}
		}
		if wide := ask[int64](t, tab, "document.documentElement.scrollWidth"); wide > c.width {
			t.Errorf("the page is %d px wide on a screen of %d", wide, c.width)
		}
	}
	if moving := ask[int](t, tab, `document.getAnimations().filter((a) => a.playState === "running").length`); moving > 0 {
		t.Errorf("%d things move although less motion was asked for", moving)
	}
	reached := map[string]bool{}
	for range 12 {
		do(t, tab, chromedp.KeyEvent("\t"))
		reached[ask[string](t, tab, `document.activeElement.closest("a") ? "the runbook" : document.activeElement.getAttribute("role") === "slider" ? "the charts" : document.activeElement.className`)] = true
		if outline := ask[string](t, tab, `document.activeElement === document.body ? "2px" : getComputedStyle(document.activeElement).outlineWidth`); strings.HasPrefix(outline, "0") {
			t.Error("what has the focus does not show it")
		}
	}
	if !reached["the runbook"] || !reached["the charts"] {
		t.Errorf("the keyboard reaches %v", reached)
	}
}
