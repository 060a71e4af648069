package admission_test

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// full returns a gate whose only slot is held, and how to free it.
func full(t *testing.T, opts admission.Options) (*admission.Gate, func()) {
	t.Helper()
	opts.Pool.Limit = shed.Fixed(1)
	g := admission.MustNew(opts)
	p, err := g.Admit(t.Context(), admission.Ticket{Caller: caller.Caller{Key: "holder", Verified: true}})
	if err != nil {
		t.Fatal(err)
	}
	return g, func() { p.Release(shed.Served) }
}

func TestWaiterLeavesAtTheFirstReason(t *testing.T) {
	for name, c := range map[string]struct {
		opts   admission.Options
		header string
		want   shed.Reason
		after  time.Duration
	}{
		"MaxWait ends":          {admission.Options{Pool: admission.Pool{MaxWait: 400 * time.Millisecond}}, "", shed.WaitedTooLong, 400 * time.Millisecond},
		"the deadline ends":     {admission.Options{Pool: admission.Pool{MaxWait: time.Minute}, Deadline: admission.TimeoutHeader("X-Timeout", 0)}, "300", shed.DeadlineUnmeetable, 300 * time.Millisecond},
		"the longest ends":      {admission.Options{Pool: admission.Pool{MaxWait: time.Minute}, Deadline: admission.Within(200 * time.Millisecond)}, "", shed.DeadlineUnmeetable, 200 * time.Millisecond},
		"MaxWait before it all": {admission.Options{Pool: admission.Pool{MaxWait: 100 * time.Millisecond}, Deadline: admission.Within(time.Second)}, "", shed.WaitedTooLong, 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, free := full(t, c.opts)
				start := time.Now()
				mustRefuse(t, do(g.Handler(okHandler()), request("GET", "/", "X-Timeout", c.header)), 503, c.want)
				if d := time.Since(start); d != c.after {
					t.Errorf("left after %v, want %v", d, c.after)
				}
				free()
				atRest(t, g)
			})
		})
	}
}

func TestClientThatLeavesTheQueueFreesItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, free := full(t, admission.Options{Pool: admission.Pool{MaxWait: time.Minute}})
		ctx, cancel := context.WithCancel(t.Context())
		ran := false
		h := g.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { ran = true }))
		go do(h, request("GET", "/").WithContext(ctx))
		synctest.Wait()
		cancel()
		synctest.Wait()
		if n := g.Stats().Count(shed.ClientGone); n != 1 {
			t.Errorf("client gone = %d, want 1", n)
		}
		free()
		synctest.Wait()
		if ran {
			t.Error("the handler ran for a client that had left")
		}
		atRest(t, g)
	})
}

func TestTheWaitEndsBeforeTheServersWriteTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, free := full(t, admission.Options{Pool: admission.Pool{MaxWait: time.Minute}})
		w := newWire(t, g.Handler(okHandler()), func(s *http.Server) { s.WriteTimeout = time.Second })
		start := time.Now()
		res := w.get(t, "/")
		if d := time.Since(start); res.StatusCode != 503 || d >= time.Second {
			t.Errorf("answer = %d after %v, want a 503 within the second", res.StatusCode, d)
		}
		free()
	})
}

func TestExpiredRequestNeverRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.MustNew(admission.Options{Pool: admission.Pool{Limit: shed.Fixed(5)}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		time.Sleep(2 * time.Second)
		h := g.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it ran") }))
		mustRefuse(t, do(h, request("GET", "/").WithContext(ctx)), 503, shed.DeadlineUnmeetable)
		if _, err := g.Admit(ctx, admission.Ticket{}); !errors.Is(err, shed.DeadlineUnmeetable) {
			t.Errorf("Admit: %v", err)
		}
		atRest(t, g)
	})
}

func TestHigherClassEvictsALowerOneFromAFullQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, free := full(t, admission.Options{Pool: admission.Pool{MaxWaiting: 1, MaxWait: time.Minute}})
		codes := make(chan int, 1)
		go func() { codes <- get(g.At(priority.Batch)(okHandler())).Code }()
		synctest.Wait()
		go get(g.At(priority.Critical)(okHandler()))
		synctest.Wait()
		if got := <-codes; got != 503 || g.Stats().Count(shed.Evicted) != 1 {
			t.Errorf("batch got %d, evicted %d", got, g.Stats().Count(shed.Evicted))
		}
		free()
		synctest.Wait()
		atRest(t, g)
	})
}

// TestRetryAfterOn429IsKept: a caller that waits exactly as long as it is told is
// admitted, and Retry-After is the longest of the limits that refuse.
func TestRetryAfterOn429IsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.MustNew(admission.Options{Rate: ratelimit.PerKey(0.3, 2)})
		h := g.At(priority.Normal, admission.Rate(ratelimit.PerKey(0.07, 1)))(okHandler())
		refusals := 0
		for range 20 {
			w := get(h)
			if w.Code == 200 {
				continue
			}
			refusals++
			seconds, err := strconv.Atoi(w.Header().Get("Retry-After"))
			if err != nil || w.Code != 429 {
				t.Fatalf("answer = %d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
			}
			time.Sleep(time.Duration(seconds) * time.Second)
			if w := get(h); w.Code != 200 {
				t.Errorf("told to wait %d s, then %d", seconds, w.Code)
			}
		}
		if refusals == 0 {
			t.Error("nothing was ever refused")
		}
	})
}

func TestCostAboveTheBurstIsNeverWithoutRetryAfter(t *testing.T) {
	g := admission.MustNew(admission.Options{Rate: ratelimit.PerKey(10, 5)})
	w := get(g.At(priority.Normal, admission.Cost(6))(okHandler()))
	if w.Code != 429 || w.Header().Get("Retry-After") != "" || w.Header().Get("Headgate-Reason") != "not-admissible" {
		t.Errorf("answer = %d %v", w.Code, w.Header())
	}
	if w := get(g.At(priority.Normal, admission.CostOf(func(*http.Request) int { return 5 }))(okHandler())); w.Code != 200 {
		t.Errorf("a refusal took from the limit: %d", w.Code)
	}
}

func TestDrainAnswersWaitersAndWaitsForTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.MustNew(admission.Options{Pool: admission.Pool{Limit: shed.Fixed(1), MaxWait: time.Minute}})
		slow := g.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(500 * time.Millisecond) }))
		running, waiting := make(chan int, 1), make(chan int, 1)
		go func() { running <- get(slow).Code }()
		synctest.Wait()
		go func() { waiting <- get(slow).Code }()
		synctest.Wait()
		start := time.Now()
		if err := g.Drain(t.Context()); err != nil {
			t.Errorf("drain: %v", err)
		}
		if d := time.Since(start); d != 500*time.Millisecond {
			t.Errorf("drained in %v", d)
		}
		if a, b := <-running, <-waiting; a != 200 || b != 503 {
			t.Errorf("running got %d, waiting %d", a, b)
		}
		w := get(slow)
		mustRefuse(t, w, 503, shed.Draining)
		if w.Header().Get("Connection") != "close" {
			t.Error("a newcomer is not told to close the connection")
		}
		if w := get(g.At(priority.Normal, admission.Exempt())(okHandler())); w.Code != 200 {
			t.Errorf("health while draining = %d", w.Code)
		}
	})
}

func TestDrainSaysWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, free := full(t, admission.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := g.Drain(ctx)
		var left *admission.DrainError
		if !errors.As(err, &left) || left.Running != 1 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("drain: %v", err)
		}
		both := make(chan error, 2)
		for range 2 {
			go func() { both <- g.Drain(t.Context()) }()
		}
		synctest.Wait()
		free()
		if a, b := <-both, <-both; a != nil || b != nil {
			t.Errorf("drains: %v, %v", a, b)
		}
	})
}

// Gates start no goroutine; a second Close is harmless; a request after Close is answered.
//
// Case SH-02: from reports about shutting down in other middleware
func TestGatesLeaveNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 1000 {
			g := admission.MustNew(admission.Options{Rate: ratelimit.PerKey(10, 10)})
			get(g.Handler(okHandler()))
			if err := errors.Join(g.Close(), g.Close()); err != nil {
				t.Fatal(err)
			}
			mustRefuse(t, get(g.Handler(okHandler())), 503, shed.Draining)
		}
	}) // the bubble fails if a goroutine is left
}

// The slot of a client that left at the moment it was let in comes back without a
// handler having run; Drain must hear of that too.
func TestDrainHearsOfSlotsThatNobodyUsed(t *testing.T) {
	for range 50 { // whether the waiter sees its slot before the drain begins is up to the scheduler
		synctest.Test(t, func(t *testing.T) {
			g, free := full(t, admission.Options{Pool: admission.Pool{MaxWait: time.Hour}})
			ctx, leave := context.WithCancel(t.Context())
			go g.Admit(ctx, admission.Ticket{})
			synctest.Wait()
			grace, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			leave()
			free()
			if err := g.Drain(grace); err != nil {
				t.Fatal(err)
			}
		})
	}
}
