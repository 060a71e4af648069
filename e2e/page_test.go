package e2e

import (
	"context"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// The page tells the story of the overload example while it happens: healthy, a slow
// database, healed. The README shows these pictures.
//
// Case OP-02: tried on the product
func TestThePageTellsTheStory(t *testing.T) {
	tab := browse(t)
	seen := watch(t, tab)
	look(t, tab, 1200, "light")
	addr := freeAddr(t)
	example(t, "overload", addr, "-gate", "-page", addr)
	do(t, tab, chromedp.Navigate("http://"+addr+"/headgate/"))
	eventually(t, tab, "requests are served", value("served")+" > 500")
	eventually(t, tab, "the verdict is that work is refused",
		`/^Refusing .* for want of capacity/.test(document.querySelector(".verdict").innerText)`)
	for what, text := range map[string]string{
		"which route is hurt most": ` on /(export|browse|checkout)`, "since when": `, (since \d+:\d\d|for .* at least)`,
		"what to do": `What to do: `,
	} {
		eventually(t, tab, "it says "+what, `/`+strings.ReplaceAll(text, "/", `\/`)+`/.test(document.querySelector(".verdict").innerText)`)
	}
	eventually(t, tab, "requests wait", value("waiting")+" > 0")
	eventually(t, tab, "the fullest cell of the heat map is drawn",
		`[...document.querySelectorAll("path.h5")].some(p => p.getAttribute("d").startsWith("M"))`)
	if ask[int](t, tab, `[...document.querySelectorAll("svg path")].filter(p => !p.getAttribute("d").startsWith("M")).length`) != 0 {
		t.Error("a path of a chart begins nowhere")
	}
	time.Sleep(3 * time.Second)
	keep(t, shoot(t, tab, "live-light", chromedp.CaptureScreenshot()))
	look(t, tab, 1200, "dark")
	time.Sleep(1500 * time.Millisecond) // a frame in these colours
	keep(t, shoot(t, tab, "live-dark", chromedp.CaptureScreenshot()))
	eventually(t, tab, "it is healed", value("served")+" > 1000")
	seen.clean(t, "http://"+addr)
}

// The page shows everything there is to show, on a phone as well.
func TestThePageShowsEverything(t *testing.T) {
	tab := browse(t)
	s := newShop(t, "", "Acme", "Globex", "Initech", "Umbrella", "Hooli", "Stark")
	s.slow.Store(int64(90 * time.Millisecond))
	s.fleet.away.Store(true)
	stop := s.load(t, 600)
	defer stop()
	look(t, tab, 390, "light")
	do(t, tab, chromedp.Navigate(s.URL+"/headgate/"))
	eventually(t, tab, "requests are served", value("served")+" > 20")
	for what, text := range map[string]string{
		"the store is away": "degraded: timeout", "the limits are in force": "anonymous", "the pools are there": "reports",
		"the calls are shown": "billing", "the queue is shown": "mail", "the limit says why it moved": "last moved for",
		"the refusals have reasons": " in all",
	} {
		eventually(t, tab, what, `document.body.innerText.includes(`+quote(text)+`)`)
	}
	time.Sleep(5 * time.Second)
	keep(t, shoot(t, tab, "live-phone", chromedp.CaptureScreenshot()))
	shoot(t, tab, "live-phone-whole", chromedp.FullScreenshot(100))
	if wide := ask[int](t, tab, "document.documentElement.scrollWidth"); wide > 390 {
		t.Errorf("the page is %d px wide on a phone of 390", wide)
	}
}

// TestNamesShowAsPlainText shows tenants, gates, queues and operations with names that try to
// become markup.
//
// Case DB-01: field report
func TestNamesShowAsPlainText(t *testing.T) {
	tab := browse(t)
	seen := watch(t, tab)
	names := []string{
		`<img src=x onerror="document.title='owned'">`, `</script><script>document.title='owned'</script>`,
		`"'><svg onload=alert(1)>`, "line\u2028separator\u2029", `javascript:alert(1)`, "\x00\x1b[31mred",
	}
	s := newShop(t, "", names...)
	stop := s.load(t, 900) // all are over their rate
	defer stop()
	do(t, tab, chromedp.Navigate(s.URL+"/headgate/"))
	for _, name := range names[:4] {
		eventually(t, tab, name+" is shown as it is", `[...document.querySelectorAll(".name")].some(n => n.textContent === `+quote(name)+`)`)
	}
	for what, expression := range map[string]string{
		"a script ran":          `document.title !== "Shop"`,
		"an image appeared":     `document.querySelectorAll("main img").length > 0`,
		"a script appeared":     `document.querySelectorAll("script").length !== 1`,
		"an SVG came of a name": `document.querySelectorAll("main svg:not(.chart)").length > 0`,
	} {
		if ask[bool](t, tab, expression) {
			t.Errorf("%s", what)
		}
	}
	eventually(t, tab, "the stream has begun", `document.querySelector("#status").dataset.state === "live" && document.querySelector("main").dataset.frames > 2`)
	seen.clean(t, s.URL)
	if mime := seen.mime("data.json"); mime != "application/json" {
		t.Errorf("data.json is %q", mime)
	}
	if mime := seen.mime("events"); mime != "text/event-stream" {
		t.Errorf("events is %q", mime)
	}
}

// Fifty tabs of one browser share what connections there are, and all of them go on
// after the server was away. While it is, they say for how long nothing was heard.
//
// Case OP-03: tried on the product
func TestFiftyTabsSurviveARestart(t *testing.T) {
	first := browse(t)
	s := newShop(t, "", "Acme")
	stop := s.load(t, 100)
	tabs := []context.Context{first}
	for range 49 {
		tabs = append(tabs, openTab(t, first))
	}
	each(tabs, func(tab context.Context) { do(t, tab, chromedp.Navigate(s.URL+"/headgate/")) })
	allMove(t, tabs)
	stop()
	addr := s.Listener.Addr().String()
	s.CloseClientConnections()
	s.Close()
	eventually(t, first, "the page says that there is no answer", `document.querySelector("#status").dataset.state === "lost"`)
	for _, tab := range tabs[:2] { // the first, and one in the background
		eventually(t, tab, "silence takes the place of good news", `document.hidden || /^Nothing heard from the service for \d+ s/.test(document.querySelector(".verdict.bad")?.innerText)`)
	}
	again := newShop(t, addr, "Acme")
	stop = again.load(t, 100)
	defer stop()
	allMove(t, tabs)
	eventually(t, first, "the silence is over", `!/Nothing heard/.test(document.querySelector(".verdict").innerText)`)
	eventually(t, first, "served is a rate again", value("served")+" > 10 && "+value("served")+" < 400")
}

// allMove checks that every tab gets frames.
func allMove(t *testing.T, tabs []context.Context) {
	t.Helper()
	const frames = `Number(document.querySelector("main").dataset.frames ?? 0)`
	each(tabs, func(tab context.Context) {
		eventually(t, tab, "the feed is there", `["live", "poll"].includes(document.querySelector("#status").dataset.state)`)
		eventually(t, tab, "its numbers move", frames+" > "+quote(ask[int](t, tab, frames)+1))
	})
}

// each does something in all tabs at once.
func each(tabs []context.Context, f func(context.Context)) {
	var all sync.WaitGroup
	for _, tab := range tabs {
		all.Go(func() { f(tab) })
	}
	all.Wait()
}

// value is an expression for the number on a tile.
func value(key string) string {
	return `parseFloat(document.querySelector('[data-value="` + key + `"]')?.firstChild?.textContent)`
}

// keep copies a picture to where the README shows it from, when asked to.
func keep(t *testing.T, path string) {
	t.Helper()
	png, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(png) > 200<<10 {
		t.Errorf("%s is %d kB, too big to show", path, len(png)>>10)
	}
	if os.Getenv("HEADGATE_UPDATE_IMAGES") == "1" {
		name := path[strings.LastIndex(path, "/")+1:]
		if err := os.WriteFile("../docs/img/"+name, png, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// traffic is what a tab asked for, and what went wrong in it.
type traffic struct {
	mu       sync.Mutex
	asked    []string
	types    map[string]string // by the last part of the path
	problems []string
}

func watch(t testing.TB, tab context.Context) *traffic {
	t.Helper()
	s := &traffic{types: map[string]string{}}
	err := chromedp.Listen(tab, func(event any) {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			s.asked = append(s.asked, e.Request.URL)
		case *network.EventResponseReceived:
			s.types[e.Response.URL[strings.LastIndex(e.Response.URL, "/")+1:]] = e.Response.MimeType
		case *runtime.EventExceptionThrown:
			s.problems = append(s.problems, e.ExceptionDetails.Text)
		case *runtime.EventConsoleAPICalled:
			s.problems = append(s.problems, "console: "+string(e.Type))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *traffic) mime(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.types[name]
}

// clean checks that only one host was asked, and that no script failed.
func (s *traffic) clean(t *testing.T, base string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	want, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	for _, asked := range s.asked {
		if u, err := url.Parse(asked); err != nil || u.Host != want.Host {
			t.Errorf("the page asked for %s", asked)
		}
	}
	if len(s.asked) < 5 {
		t.Errorf("only %d requests were seen", len(s.asked))
	}
	for _, p := range s.problems {
		t.Errorf("in the page: %s", p)
	}
}
