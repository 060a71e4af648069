package e2e

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// What the page says of incidents that are not staged with real processes: each kind of
// matter, which goes first of two, and what is not to be said.
func TestThePageHasWordsForEveryKindOfMatter(t *testing.T) {
	tab := browse(t)
	s := newShop(t, "", "Acme")
	do(t, tab, chromedp.Navigate(s.URL+"/headgate/"))
	eventually(t, tab, "the page is there", `document.querySelector(".verdict")`)
	stories, err := os.ReadFile("testdata/stories.js")
	if err != nil {
		t.Fatal(err)
	}
	script := strings.Replace(string(stories), "export async function told", "window.told = async function told", 1)
	ask[bool](t, tab, "(() => {"+script+"; return true })()")

	const quiet = `{seconds: 10}`
	const full = `pools: [{limit: 18, service: 0.26, cause: "latency", inFlight: 18, waiting: [26, 0, 0, 0]}]`
	for name, c := range map[string]struct {
		phases string
		want   []string
		not    string
	}{
		"quiet": {quiet, []string{`^good\nAll is served, and nothing waits`}, "What"},
		"critical work": {
			quiet + `, {seconds: 6, gates: [{` + full + `, reasons: {"queue-full": [30, 20, 0, 5]}, routes: [{route: "GET /pay", shed: [30, 20, 0, 5]}], turned: [{alias: "Acme", count: 9}]}]}`,
			[]string{`^bad\nRefusing 55/s of critical, normal and batch for want of capacity on GET /pay, since `, `Turned away: Acme\.`,
				`Work takes 260 ms instead of 12 ms; its limit fell from 64 to 18 at \d`, `Mostly queue-full: the queue was at its bound`, `it got slower\.\n#headgatecriticalshed$`},
			"room|still learning",
		},
		"the wait, and not the bound": {
			quiet + `, {seconds: 6, gates: [{` + full + `, reasons: {"predicted-wait": [30, 0, 0, 0]}}]}`,
			[]string{`^warn\nRefusing 30/s of batch`, `Mostly predicted-wait: the wait would .* The queue itself has room: 26 wait, of 256 that may\.`}, "queue-full",
		},
		"the named pool": {
			quiet + `, {seconds: 6, gates: [{pools: [{}, {name: "db", limit: 18, service: 0.26, inFlight: 18, waiting: [1, 0, 0, 0], cause: "stalled"}], reasons: {"waited-too-long": [3, 0, 0, 0]}}]}`,
			[]string{`The pool db takes 260 ms`}, "instead of 260",
		},
		"more arrives": {
			quiet + `, {seconds: 8, gates: [{admitted: [50, 50, 0, 10], reasons: {"deadline-unmeetable": [200, 0, 0, 0]}, routes: [{route: "GET /a", served: 60}, {route: "GET /b", served: 50, shed: [200, 0, 0, 0]}]}]}`,
			[]string{`Work takes 12 ms, as before\.`, `More arrives: 310/s instead of 110/s, above all on GET /b`, `Demand is above capacity`}, "",
		},
		"a store away beside it": {
			quiet + `, {seconds: 6, stores: [{name: "api", degraded: true, why: "auth", since: 4, rate: 100, share: 25}], gates: [{reasons: {"capacity": [9, 0, 0, 0]}}]}`,
			[]string{`^warn\nRefusing 9/s`, `The shared limit api has been decided without its store since .*: the password is wrong`}, "",
		},
		"its policy is to refuse": {
			quiet + `, {seconds: 6, stores: [{name: "api", degraded: true, why: "timeout", since: 4, rate: 100, share: 0}], gates: [{reasons: {"limiter-unavailable": [50, 50, 0, 10]}}]}`,
			[]string{`^bad\nRefusing 110/s`, `Bring the store of the shared limit back\.\n#headgateceilingdegraded`}, "",
		},
		"a store away and nothing else": {
			quiet + `, {seconds: 6, stores: [{name: "api", degraded: true, why: "", since: 4, rate: null, share: null}]}`,
			[]string{`^warn\nThe shared limit api has been decided without its store since \d+:\d\d:\d\d[^:]*\.\nAll is served`}, "null|by itself",
		},
		"callers over their limits": {
			quiet + `, {seconds: 6, gates: [{reasons: {"rate-limited": [0, 30, 0, 0]}, limited: ["A", "B", "C", "D", "E"].map((alias) => ({alias, count: 1}))}]}`,
			[]string{`^good\nA, B, C and others are over their own limits: 30/s get 429, since `, `All else is served`, `#callers-over-their-limits$`}, "",
		},
		"one over its limit, beside overload": {
			quiet + `, {seconds: 6, gates: [{reasons: {"caller-cap": [0, 30, 0, 0], "capacity": [9, 0, 0, 0]}, limited: [{alias: "A", count: 1}]}]}`,
			[]string{`^warn\nRefusing 9/s of batch`, `A is over its own limits: 30/s get 429`}, "All else",
		},
		"a process that leaves": {
			quiet + `, {seconds: 6, gates: [{draining: true, streams: 2, reasons: {"draining": [50, 50, 0, 10]}}]}`,
			[]string{`^warn\nShutting down since .*: newcomers are refused, and 12 requests still run\.`, `#deploys$`}, "want of capacity",
		},
		"a table that fills": {
			`{seconds: 4, gates: [{limits: [{name: "anonymous"}]}]}, {seconds: 6, gates: [{limits: [{name: "anonymous", overflow: 5}]}]}`,
			[]string{`^warn\nMore callers than the table of anonymous holds`, `#headgatetableoverflow$`}, "",
		},
		"shadow": {
			quiet + `, {seconds: 6, gates: [{shadowed: [5, 0, 0, 0]}]}`,
			[]string{`^warn\nShadow mode lets 5/s through that would be refused`, `#changing-what-is-in-force$`}, "",
		},
		"a service that asks for a pause": {
			quiet + `, {seconds: 6, calls: [{operations: [{service: "billing", operation: "a", pause: 3, multiplier: 1}, {service: "billing", operation: "b", pause: 3, multiplier: 0.5}, {service: "mail", operation: "", pause: 0, multiplier: 0.5}]}]}`,
			[]string{`^warn\nbilling asked for a pause, and is not called until then\.`, `mail asked for less, and gets less`, `#headgateretrybudgetempty$`}, "",
		},
		"which gate": {
			quiet + `, {seconds: 6, gates: [{}, {name: "admin", reasons: {"capacity": [0, 0, 0, 4]}}]}`,
			[]string{`\nadmin: Refusing `}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			ask[bool](t, tab, `(() => { window.said = ""; told([`+c.phases+`]).then((s) => window.said = s, (e) => window.said = String(e)); return true })()`)
			eventually(t, tab, "it is judged", `window.said !== ""`)
			said := ask[string](t, tab, `window.said`)
			for _, want := range c.want {
				if !regexp.MustCompile(want).MatchString(said) {
					t.Errorf("it says\n%s\nwithout %s", said, want)
				}
			}
			if c.not != "" && regexp.MustCompile(c.not).MatchString(said) {
				t.Errorf("it says\n%s\nwith %s", said, c.not)
			}
		})
	}
	ask[bool](t, tab, `(() => { window.said = ""; told([{seconds: 8}, {seconds: 5, gates: [{reasons: {"capacity": [9, 0, 0, 0]}}]}], 12).then((s) => window.said = s); return true })()`)
	eventually(t, tab, "a young process says so", `/This process started 12 s ago and is still learning/.test(window.said)`)
	ask[bool](t, tab, `(() => { window.said = ""; kept().then((s) => window.said = s, (e) => window.said = String(e)); return true })()`)
	eventually(t, tab, "eight hours are played", `window.said !== ""`)
	if said := ask[string](t, tab, `window.said`); !regexp.MustCompile(`^30\d 1\d 1$`).MatchString(said) {
		t.Errorf("after eight hours the page keeps %s points, events and gates, want those of five minutes", said)
	}
}
