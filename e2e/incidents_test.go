package e2e

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// The incidents that wake people, staged with real processes: the page's first words say
// who is hurt, since when, why, and what to do, within half a minute.

// stage is a shop behind edges, with a database of sixteen connections.
type stage struct {
	*httptest.Server
	took atomic.Int64 // nanoseconds that the database takes
}

func newStage(t *testing.T, took time.Duration) *stage {
	s := new(stage)
	s.took.Store(int64(took))
	mux := http.NewServeMux()
	mux.Handle("/", newDatabase(16, &s.took))
	mux.HandleFunc("/slow", slow)
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

const stageFile = `
gate:
  callers:
    - api_key:
        header: X-API-Key
        keys: [{key: k-acme, alias: Acme}, {key: k-globex, alias: Globex}, {key: k-bulk, alias: Bulk Corp}]
  routes: {GET /checkout: {level: critical}, GET /browse: {level: normal}, GET /export: {level: batch}}
`

// client is who sends what, and how often.
type client struct {
	key, path string
	perSecond int
}

// play sends what the clients send to where to says, until the test ends.
func (s *stage) play(t *testing.T, to func() string, clients ...client) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	http := newClients()
	for i, c := range clients {
		all.Go(func() {
			tick := time.NewTicker(time.Second / time.Duration(c.perSecond))
			defer tick.Stop()
			for ctx.Err() == nil {
				<-tick.C
				all.Go(func() { ask1(ctx, http[i%len(http)], to()+c.path, c.key) })
			}
		})
	}
	t.Cleanup(func() { cancel(); all.Wait() })
}

func ask1(ctx context.Context, by *http.Client, url, key string) {
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		return
	}
	req.Header.Set("X-API-Key", key)
	if resp, err := by.Do(req); err == nil {
		resp.Body.Close()
	}
}

// tells waits until the page's judgement has all of these, keeps a picture of it, and
// checks where the advice leads.
func tells(t *testing.T, tab context.Context, picture, section string, patterns ...string) {
	t.Helper()
	began := time.Now()
	expression := "true"
	for _, p := range patterns {
		expression += ` && new RegExp(` + quote(p) + `).test(document.querySelector(".verdict").innerText)`
	}
	eventually(t, tab, picture+" is told", expression)
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %v until the page said so", took)
	}
	if got := ask[string](t, tab, `document.querySelector(".verdict a")?.hash ?? ""`); got != section {
		t.Errorf("the advice leads to %q, want %q", got, section)
	}
	t.Log(ask[string](t, tab, `document.querySelector(".verdict").innerText`))
	keep(t, shoot(t, tab, "incident-"+picture, chromedp.CaptureScreenshot()))
}

// open shows an edge's page, and waits until it has seen quiet times.
func open(t *testing.T, tab context.Context, e *edge) {
	t.Helper()
	look(t, tab, 1000, "light")
	do(t, tab, chromedp.Navigate(e.admin+"/headgate/"))
	eventually(t, tab, "the page has seen quiet times", `Number(document.querySelector("main").dataset.frames) > 8 && /^All is served/.test(document.querySelector(".verdict").innerText)`)
}

func fixed(to string) func() string { return func() string { return to } }

var shoppers = []client{{"k-globex", "/checkout", 30}, {"k-acme", "/browse", 90}, {"k-bulk", "/export", 180}}

func TestThePageTellsOfASlowDatabase(t *testing.T) {
	tab, s := browse(t), newStage(t, 4*time.Millisecond)
	e := startEdge(t, s.URL, stageFile)
	s.play(t, fixed(e.base), shoppers...)
	open(t, tab, e)
	s.took.Store(int64(200 * time.Millisecond))
	tells(t, tab, "slow-database", "#headgatecriticalshed",
		`^Refusing \d+/s of .*batch for want of capacity on GET /export`, `(since \d+:\d\d|for \d+ s at least)`,
		`Work takes \d+ ms instead of [\d.]+ ms`,
		`There is room for all .*critical.* work`, `What to do: Ask what the handlers call: it got slower`)
	eventually(t, tab, "the limit's fall is told", `/The limit fell from \d+ to \d+: /.test(document.querySelector(".log").innerText)`)
}

func TestThePageTellsOfAGreedyCaller(t *testing.T) {
	tab, s := browse(t), newStage(t, 4*time.Millisecond)
	e := startEdge(t, s.URL, stageFile+"  limits: {rate: {rate: 100/s, burst: 100}}\n")
	s.play(t, fixed(e.base), client{"k-globex", "/checkout", 20}, client{"k-acme", "/browse", 40}, client{"k-bulk", "/export", 40})
	open(t, tab, e)
	s.play(t, fixed(e.base), client{"k-bulk", "/export", 200})
	tells(t, tab, "greedy-caller", "#callers-over-their-limits",
		`^Bulk Corp is over its own limits: \d+/s get 429, since \d+:\d\d`, `All else is served`, `What to do: Nothing, if the limits are right`)
}

func TestThePageTellsOfAStoreThatIsAway(t *testing.T) {
	need(t, "redis-server")
	tab, s, redis := browse(t), newStage(t, 4*time.Millisecond), startRedis(t)
	e := startEdge(t, s.URL, "redis: redis://"+redis.addr+stageFile+"  limits: {rate: {rate: 400/s, burst: 400}}\n")
	s.play(t, fixed(e.base), shoppers...)
	open(t, tab, e)
	redis.kill()
	tells(t, tab, "store-away", "#headgateceilingdegraded",
		`^The shared limit \S+ has been decided without its store since \d+:\d\d:\d\d.*: (no connection can be made|connections break off|it answers late)`, `This process admits \d+/s of 400/s by itself`,
		`All is served, and nothing waits`, `What to do: Mend the store; do not restart the service`)
}

// Half of the processes leave at once, and the others get what was theirs.
func TestThePageTellsOfADeployStorm(t *testing.T) {
	tab, s := browse(t), newStage(t, 40*time.Millisecond)
	file := "drain: {notice: 1s, grace: 40s}" + stageFile + "  capacity: {limit: {fixed: 8}}\n"
	leaves, stays := startEdge(t, s.URL, file), startEdge(t, s.URL, file)
	var gone atomic.Bool
	s.play(t, fixed(stays.base), client{"k-acme", "/browse", 40}, client{"k-bulk", "/export", 80})
	s.play(t, func() string {
		if gone.Load() {
			return stays.base
		}
		return leaves.base
	}, client{"k-acme", "/browse", 40}, client{"k-bulk", "/export", 120})
	other := openTab(t, tab)
	open(t, tab, stays)
	open(t, other, leaves)
	gone.Store(true)
	long := later(leaves.base + "/slow?ms=12000") // it holds the leaving process up
	within(t, 5*time.Second, "it runs", func() bool { return leaves.metric("headgate_in_flight") >= 1 })
	leaves.signal(syscall.SIGTERM)
	tells(t, other, "deploy-leaving", "#deploys", `^Shutting down since \d+:\d\d:\d\d.*: newcomers are refused, and `, `What to do: Wait, if this is a deploy`)
	tells(t, tab, "deploy-storm", "#headgateshedratehigh",
		`^Refusing \d+/s of batch for want of capacity on GET /export, since \d+:\d\d`,
		`Work takes \d+ ms, as before`, `More arrives: \d+/s instead of \d+/s`, `What to do: Demand is above capacity`)
	<-long
}
