package admission_test

import (
	"bufio"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

// What the queue cannot hold is refused at once with Retry-After.
//
// Case QU-06: from reports about waiting and priority in other limiters
func TestAFullQueueRefusesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.MustNew(admission.Options{Pool: admission.Pool{Limit: shed.Fixed(1), MaxWaiting: 2, MaxWait: time.Minute}})
		block := newHeld()
		h := g.Handler(block)
		var served, refused atomic.Int64
		for range 10 {
			go func() {
				start := time.Now()
				switch w := get(h); {
				case w.Code == 200:
					served.Add(1)
				case w.Code == 503 && w.Header().Get("Retry-After") != "" && time.Since(start) < 50*time.Millisecond:
					refused.Add(1)
				default:
					t.Errorf("answer = %d after %v", w.Code, time.Since(start))
				}
			}()
		}
		synctest.Wait()
		if refused.Load() != 7 || block.inside.Load() != 1 || g.Stats().Pools[0].Waiting[priority.Normal.Index()] != 2 {
			t.Errorf("refused %d, inside %d, waiting %v", refused.Load(), block.inside.Load(), g.Stats().Pools[0].Waiting)
		}
		close(block.release)
		synctest.Wait()
		if served.Load() != 3 {
			t.Errorf("served = %d, want 3", served.Load())
		}
		atRest(t, g)
	})
}

// Time spent in the queue is taken from the deadline; with none configured it stays as it was.
//
// Case QU-08: from reports about waiting and priority in other limiters
func TestTheHandlerGetsWhatTheWaitLeft(t *testing.T) {
	for name, c := range map[string]struct {
		deadline admission.Deadline
		wait     time.Duration
		left     time.Duration
	}{
		"budget of one second": {admission.Within(time.Second), 900 * time.Millisecond, 100 * time.Millisecond},
		"none configured":      {admission.Deadline{}, 900 * time.Millisecond, -1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := admission.MustNew(admission.Options{
					Pool: admission.Pool{Limit: shed.Fixed(1), MaxWait: 2 * time.Second}, Deadline: c.deadline,
				})
				p, err := g.Admit(t.Context(), admission.Ticket{})
				if err != nil {
					t.Fatal(err)
				}
				left := time.Duration(-2)
				h := g.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					left = -1
					if at, ok := r.Context().Deadline(); ok {
						left = time.Until(at)
					}
				}))
				go get(h)
				time.Sleep(c.wait)
				p.Release(shed.Served)
				synctest.Wait()
				if left != c.left {
					t.Errorf("the handler saw %v left, want %v", left, c.left)
				}
				atRest(t, g)
			})
		})
	}
}

// Without a queue a request goes at once or is refused; zero is the default stay.
//
// Case QU-10: from reports about waiting and priority in other limiters
func TestNoWaitRefusesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.MustNew(admission.Options{Pool: admission.Pool{Limit: shed.Fixed(1), MaxWaiting: 10, MaxWait: admission.NoWait}})
		p, _ := g.Admit(t.Context(), admission.Ticket{})
		start := time.Now()
		mustRefuse(t, get(g.Handler(okHandler())), 503, shed.Capacity)
		if d := time.Since(start); d != 0 {
			t.Errorf("refused after %v", d)
		}
		p.Release(shed.Served)

		// Zero is the documented default, not "for ever".
		g = admission.MustNew(admission.Options{Pool: admission.Pool{Limit: shed.Fixed(1), MaxWaiting: 10}})
		p, _ = g.Admit(t.Context(), admission.Ticket{})
		start = time.Now()
		mustRefuse(t, get(g.Handler(okHandler())), 503, shed.WaitedTooLong)
		if d := time.Since(start); d != time.Second {
			t.Errorf("refused after %v, want the default of 1 s", d)
		}
		p.Release(shed.Served)
	})
}

// A thousand waiting uploads cost little memory.
//
// Case QU-13: from reports about waiting and priority in other limiters
func TestBodiesOfWaitersAreNotBuffered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.MustNew(admission.Options{Pool: admission.Pool{Limit: shed.Fixed(1), MaxWaiting: 1000, MaxWait: time.Minute}})
		p, _ := g.Admit(t.Context(), admission.Ticket{})
		w := newWire(t, g.Handler(okHandler()), nil)
		body := make([]byte, 1<<20)
		before := heap()
		var wg sync.WaitGroup
		for range 1000 { // by hand: http.Client holds 32 KiB per body it sends
			conn, err := w.dial(t.Context(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			wg.Go(func() {
				defer conn.Close()
				fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: gate.test\r\nContent-Length: %d\r\n\r\n", len(body))
				go conn.Write(body)
				res, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Error(err)
					return
				}
				res.Body.Close()
			})
		}
		synctest.Wait()
		if n := g.Stats().Pools[0].Waiting[priority.Normal.Index()]; n != 1000 {
			t.Errorf("waiting = %d, want 1000", n)
		}
		if grown := heap() - before; grown > 64<<20 {
			t.Errorf("heap grew by %d MiB", grown>>20)
		}
		p.Release(shed.Served)
		wg.Wait()
		synctest.Wait()
		atRest(t, g)
	})
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A level header that cannot be read changes nothing.
//
// Case PR-04: from reports about waiting and priority in other limiters
func TestUnreadableLevelHeadersLeaveTheRoutesLevel(t *testing.T) {
	heard := &recorder{}
	g := admission.MustNew(admission.Options{HTTP: admission.HTTP{LevelHeader: "x-priority"}, Observer: heard, Pool: admission.Pool{Limit: shed.Fixed(10)}})
	h := g.At(priority.High)(okHandler())
	for _, values := range [][]string{
		{"banana"}, {"-5"}, {"99999999999999999999"}, {""}, {"batch", "critical"}, {"critical"}, {strings.Repeat("9", 1<<20)},
	} {
		r := request("GET", "/")
		r.Header["X-Priority"] = values
		if w := do(h, r); w.Code != 200 {
			t.Errorf("%.20q: %d", values, w.Code)
		}
		events := heard.all()
		if got := events[len(events)-1].Level; got != priority.High {
			t.Errorf("%.20q: level %v, want the route's", values, got)
		}
	}
	r := request("GET", "/", "X-Priority", "batch")
	do(h, r)
	events := heard.all()
	if got := events[len(events)-1].Level; got != priority.Batch {
		t.Errorf("a client that lowers itself has %v", got)
	}
}

// A newcomer does not pass those that wait.
//
// Case PR-06: from reports about waiting and priority in other limiters
func TestOneClassStartsInOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.MustNew(admission.Options{Pool: admission.Pool{Limit: shed.Fixed(1), MaxWaiting: 200, MaxWait: time.Minute}})
		var mu sync.Mutex
		var started []int
		h := g.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			mu.Lock()
			started = append(started, len(r.URL.Path))
			mu.Unlock()
			time.Sleep(10 * time.Millisecond) // a release falls on an arrival, twice as slow
		}))
		for i := range 100 {
			go do(h, request("GET", "/"+strings.Repeat("x", i)))
			time.Sleep(5 * time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		for i, n := range started {
			if n != i+1 {
				t.Fatalf("place %d went to arrival %d: %v", i, n-1, started)
			}
		}
		if len(started) != 100 {
			t.Errorf("started %d of 100", len(started))
		}
		atRest(t, g)
	})
}

// Lower levels never hold the reserved slots.
//
// Case PR-08: from reports about waiting and priority in other limiters
func TestTheReserveIsForCriticalAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.MustNew(admission.Options{Pool: admission.Pool{Limit: shed.Fixed(10), CriticalReserve: 2, MaxWait: time.Minute}})
		var low, most, high atomic.Int64
		lowly := g.At(priority.Normal)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			n := low.Add(1)
			most.Store(max(most.Load(), n))
			time.Sleep(5 * time.Second)
			low.Add(-1)
		}))
		top := g.At(priority.Critical)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { high.Add(1) }))
		for range 20 {
			go get(lowly)
		}
		synctest.Wait()
		start := time.Now()
		for range 2 {
			if w := get(top); w.Code != 200 {
				t.Errorf("critical = %d", w.Code)
			}
		}
		if d := time.Since(start); d != 0 || high.Load() != 2 {
			t.Errorf("critical started after %v, %d of 2", d, high.Load())
		}
		time.Sleep(time.Minute)
		if most.Load() != 8 {
			t.Errorf("low held %d slots, want 8", most.Load())
		}
		atRest(t, g)
	})
}
