package admission_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// A panic gives the slot back and reaches the outer recoverer unchanged.
//
// Case IF-01: from reports about work in flight in other middleware
func TestSlotsComeBackAfterPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := capped(2)
		boom := errors.New("boom")
		broken := g.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(boom) }))
		for range 3 {
			func() {
				defer func() {
					if got := recover(); got != any(boom) {
						t.Errorf("the outer recoverer saw %v", got)
					}
				}()
				get(broken)
			}()
		}
		block := newHeld()
		var codes [2]int
		for i := range codes {
			go func() { codes[i] = get(g.Handler(block)).Code }()
		}
		synctest.Wait()
		if n := block.inside.Load(); n != 2 {
			t.Errorf("inside = %d, want 2", n)
		}
		close(block.release)
		synctest.Wait()
		if codes != [2]int{200, 200} {
			t.Errorf("codes = %v", codes)
		}
		atRest(t, g)
	})
}

// Real sockets: what happens to an unread body is the kernel's and net/http's
// doing as much as ours.
//
// Case IF-05: from reports about work in flight in other middleware
func TestRefusedUploadsSeeTheAnswer(t *testing.T) {
	g := capped(1)
	p, err := g.Admit(t.Context(), admission.Ticket{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Release(shed.Served) })
	for _, size := range []int64{1 << 10, 200 << 10, 10 << 20, 100 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			large := size > 256<<10
			if n := refusedUploads(t, g, size, 20); !large && n != 1 {
				t.Errorf("20 refusals took %d connections, want 1", n)
			}
		})
	}
}

// refusedUploads posts bodies of the given size, all of which g must refuse, and
// returns over how many TCP connections.
func refusedUploads(t *testing.T, g *admission.Gate, size int64, tries int) int64 {
	var opened atomic.Int64
	srv := httptest.NewUnstartedServer(g.Handler(okHandler()))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	srv.Start()
	defer srv.Close()
	client := srv.Client()
	for range tries {
		body := &countedZeros{left: size}
		r, _ := http.NewRequest(http.MethodPost, srv.URL, body)
		r.ContentLength = size
		res, err := client.Do(r)
		if err != nil {
			t.Fatalf("transport error: %v", err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if res.StatusCode != 503 || res.Header.Get("Retry-After") == "" {
			t.Errorf("answer = %d, Retry-After %q", res.StatusCode, res.Header.Get("Retry-After"))
		}
		if large := size > 256<<10; res.Close != large {
			t.Errorf("Connection: close = %v for %d bytes", res.Close, size)
		}
		if sent := body.sent.Load(); size > 10<<20 && sent > size/2 {
			t.Errorf("%d of %d bytes were taken in", sent, size)
		}
	}
	return opened.Load()
}

// countedZeros is a body that knows how much of it was sent.
type countedZeros struct {
	left int64
	sent atomic.Int64
}

func (z *countedZeros) Read(b []byte) (int, error) {
	if z.left == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(b)), z.left)
	z.left -= n
	z.sent.Add(n)
	return int(n), nil
}

func upgrade(hold <-chan struct{}) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			http.Error(w, err.Error(), 500)
			return
		}
		defer conn.Close()
		fmt.Fprint(buf, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_ = buf.Flush()
		<-hold
	})
}

func (w *wire) upgrade(t *testing.T) (status int) {
	t.Helper()
	r, _ := http.NewRequest("GET", "http://gate.test/ws", nil)
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "websocket")
	res, err := w.Do(r)
	if err != nil {
		t.Error(err)
		return 0
	}
	t.Cleanup(func() { res.Body.Close() })
	return res.StatusCode
}

// Declared sockets take no slots; undeclared, the one above the cap is refused before any 101.
//
// Case IF-07: from reports about work in flight in other middleware
func TestUpgradesAreRefusedBeforeTheySwitch(t *testing.T) {
	for name, c := range map[string]struct {
		opts   []admission.RouteOption
		fourth int
		get    int
	}{
		"declared a stream": {[]admission.RouteOption{admission.Stream(3)}, 503, 200},
		"not declared":      {nil, 503, 503},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := capped(3)
				hold := make(chan struct{})
				mux := http.NewServeMux()
				mux.Handle("/ws", g.At(priority.Normal, c.opts...)(upgrade(hold)))
				mux.Handle("/", g.Handler(okHandler()))
				w := newWire(t, mux, nil)
				for range 3 {
					if got := w.upgrade(t); got != 101 {
						t.Fatalf("upgrade answered %d", got)
					}
				}
				if got := w.get(t, "/").StatusCode; got != c.get {
					t.Errorf("GET beside three sockets = %d, want %d", got, c.get)
				}
				if got := w.upgrade(t); got != c.fourth {
					t.Errorf("fourth socket = %d, want %d", got, c.fourth)
				}
				close(hold)
				synctest.Wait()
				atRest(t, g)
			})
		})
	}
}

// Of a thousand at once exactly as many run as there are slots.
//
// Case IF-08: from reports about work in flight in other middleware
func TestConcurrencyNeverExceedsTheCap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := capped(10)
		block := newHeld()
		h := g.Handler(block)
		var refused, served atomic.Int64
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() {
				switch w := get(h); {
				case w.Code == 200:
					served.Add(1)
				case w.Code == 503 && w.Header().Get("Retry-After") != "":
					refused.Add(1)
				default:
					t.Errorf("answer = %d", w.Code)
				}
			})
		}
		synctest.Wait()
		close(block.release)
		wg.Wait()
		if m := block.most.Load(); m != 10 || served.Load() != 10 || refused.Load() != 990 {
			t.Errorf("most inside %d, served %d, refused %d; want 10, 10, 990", m, served.Load(), refused.Load())
		}
		atRest(t, g)
	})
}

// An exempt route is served while slots, queue and bucket are used up, and takes none of them.
//
// Case IF-10: from reports about work in flight in other middleware
func TestExemptRoutesAnswerUnderFullLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.MustNew(admission.Options{
			Pool: admission.Pool{Limit: shed.Fixed(1), MaxWaiting: 1, MaxWait: time.Hour}, Rate: ratelimit.PerKey(0, 2),
		})
		block := newHeld()
		for range 2 { // one in the slot, one in the queue; the bucket is empty
			go get(g.Handler(block))
		}
		synctest.Wait()
		if w := get(g.Handler(block)); w.Code != 429 {
			t.Fatalf("a third request = %d, want 429", w.Code)
		}
		health := g.At(priority.Normal, admission.Exempt())(okHandler())
		start := time.Now()
		for range 1000 {
			if w := get(health); w.Code != 200 {
				t.Fatalf("health = %d", w.Code)
			}
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("health checks waited %v", d)
		}
		s := g.Stats()
		if s.Count(shed.Exempt) != 1000 || s.Count(shed.Admitted) != 1 || s.InFlight() != 1 {
			t.Errorf("exempt %d, admitted %d, in flight %d", s.Count(shed.Exempt), s.Count(shed.Admitted), s.InFlight())
		}
		close(block.release)
		synctest.Wait()
		atRest(t, g)
	})
}

// Each event reaches the client at its flush, by Flusher and by ResponseController.
//
// Case IF-12: from reports about work in flight in other middleware
func TestEventsLeaveAtTheirFlush(t *testing.T) {
	flushes := map[string]func(http.ResponseWriter) error{
		"flusher":    func(w http.ResponseWriter) error { w.(http.Flusher).Flush(); return nil },
		"controller": func(w http.ResponseWriter) error { return http.NewResponseController(w).Flush() },
	}
	for name, flush := range flushes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := capped(3)
				events := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					ctl := http.NewResponseController(w)
					if err := errors.Join(ctl.SetWriteDeadline(time.Now().Add(time.Minute)),
						ctl.SetReadDeadline(time.Now().Add(time.Minute)), ctl.EnableFullDuplex()); err != nil {
						t.Errorf("controls: %v", err)
					}
					for range 3 {
						fmt.Fprintf(w, "%d\n", time.Now().UnixNano())
						if err := flush(w); err != nil {
							t.Errorf("flush: %v", err)
						}
						time.Sleep(200 * time.Millisecond)
					}
				})
				w := newWire(t, g.Handler(events), nil)
				res, err := w.Get("http://gate.test/")
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				lines := bufio.NewScanner(res.Body)
				for n := 0; lines.Scan(); n++ {
					var sent int64
					fmt.Sscan(lines.Text(), &sent)
					if late := time.Since(time.Unix(0, sent)); late >= 100*time.Millisecond {
						t.Errorf("event %d came %v after its flush", n, late)
					}
				}
			})
		})
	}
}

// A cap of zero or less is an error at set-up.
//
// Case IF-15: from reports about work in flight in other middleware
func TestLimitsThatMakeNoSenseAreErrors(t *testing.T) {
	for _, limit := range []shed.Limit{shed.Fixed(0), shed.Fixed(-1), shed.Throughput{Max: -1}} {
		if _, err := admission.New(admission.Options{Pool: admission.Pool{Limit: limit}}); err == nil {
			t.Errorf("%#v was accepted", limit)
		}
	}
	g := admission.MustNew(admission.Options{Pool: admission.Pool{Limit: shed.Throughput{Max: 0}}}) // the documented default
	if w := get(g.Handler(okHandler())); w.Code != 200 || g.Stats().Pools[0].Limit < 1 {
		t.Errorf("answer = %d at a limit of %d", w.Code, g.Stats().Pools[0].Limit)
	}
}

// A caller over its own rate gets 429, full or not; lack of capacity is 503; both say when to return.
//
// Case IF-18: from reports about work in flight in other middleware
func TestTheRateIsAskedBeforeCapacity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.MustNew(admission.Options{
			Identify: caller.Header("X-Tenant"), Pool: admission.Pool{Limit: shed.Fixed(1), MaxWait: admission.NoWait},
			Rate: ratelimit.PerKey(1, 1),
		})
		h := g.Handler(okHandler())
		from := func(tenant string) *httptest.ResponseRecorder {
			return do(h, request("GET", "/", "X-Tenant", tenant))
		}
		if w := from("b"); w.Code != 200 {
			t.Fatalf("first = %d", w.Code)
		}
		mustRefuse(t, from("b"), 429, shed.RateLimited) // (b) idle, over its own rate
		p, err := g.Admit(t.Context(), admission.Ticket{})
		if err != nil {
			t.Fatal(err)
		}
		mustRefuse(t, from("a"), 503, shed.Capacity) // (a) full, its first request
		for range 5 {
			mustRefuse(t, from("b"), 429, shed.RateLimited) // (c) both: the rate is asked first
		}
		p.Release(shed.Served)
	})
}
