package redisrate

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/account/accounttest"
)

// Case ST-04: tried on the product
func TestAnOutageForAllKeepsTheBound(t *testing.T) {
	for _, c := range []struct {
		procs int
		rate  float64
		burst int
		trip  time.Duration
	}{
		{8, 1000, 60, time.Millisecond}, {8, 1000, 100, time.Millisecond}, {8, 1000, 500, time.Millisecond}, {2, 200, 60, time.Millisecond},
		{8, 1000, 500, 25 * time.Millisecond}, {4, 1000, 500, 100 * time.Millisecond},
		{4, 20, 20, time.Millisecond}, {4, 20, 20, 25 * time.Millisecond}, {1, 4, 20, 50 * time.Millisecond},
	} {
		for _, how := range []string{"hangs", "refuses"} {
			t.Run(fmt.Sprintf("%dx%v,%d/%v/%s", c.procs, c.rate, c.burst, c.trip, how), func(t *testing.T) {
				atDistance(t, c.procs, c.rate, c.burst, c.trip, c.trip/10, nil, func(t *testing.T, w *far) {
					w.load("other", 1, time.Second)
					w.arrived, w.admitted, w.local = nil, nil, 0
					w.wg.Go(func() {
						time.Sleep(2 * time.Second)
						w.store.set(how)
						time.Sleep(3 * time.Second)
						w.store.set("")
					})
					w.load("a", 4*c.rate/float64(c.procs), 12*time.Second)
					over := accounttest.Excess(w.admitted, c.rate, c.burst)
					t.Logf("admitted %d, at most %.0f; %.2f over", len(w.admitted), float64(c.burst)+c.rate*12, over)
					if over > 1 {
						t.Errorf("%.2f tokens above burst + rate·t", over)
					}
				})
			})
		}
	}
}

// Case ST-03: tried on the product
func TestKeysThatAreNotAskedForComeBackToo(t *testing.T) {
	for _, how := range []string{"hangs", "refuses"} {
		t.Run(how, func(t *testing.T) {
			inBubble(t, 10, 5, nil, func(t *testing.T, l *Limiter, s *sick) {
				for i := range 20 {
					admit(l, fmt.Sprint(i), 2)
				}
				time.Sleep(time.Second)
				s.set(how)
				for i := range 20 {
					admit(l, fmt.Sprint(i), 2)
				}
				time.Sleep(time.Second)
				if !l.Snapshot().Degraded {
					t.Fatalf("%+v", l.Snapshot())
				}
				s.set("")
				back := time.Now()
				for l.Snapshot().Degraded && time.Since(back) < time.Minute {
					time.Sleep(100 * time.Millisecond)
					take(l, "0", 1, 0)
				}
				if took := time.Since(back); took > 10*time.Second {
					t.Errorf("degraded for %v after the store's return: %+v", took, l.Snapshot())
				}
			})
		})
	}
}

// Case ST-05: tried on the product
func TestAReplyThatIsLostIsChargedOnce(t *testing.T) {
	atDistance(t, 1, slow, 10, time.Millisecond, 0, nil, func(t *testing.T, w *far) {
		l, lost := w.procs[0], 0
		if got := admit(l, "a", 2); got != 2 {
			t.Fatal(got)
		}
		w.store.mu.Lock()
		w.store.delay = func() (there, back time.Duration) {
			if lost++; lost == 1 {
				return 0, time.Hour
			}
			return 0, time.Millisecond
		}
		w.store.mu.Unlock()
		if got := admit(l, "a", 1); got != 1 {
			t.Fatal(got)
		}
		time.Sleep(2 * time.Second)
		if got := admit(l, "a", 20); got != 7 {
			t.Errorf("%d admitted after 3 of 10, one of them with its reply lost", got)
		}
	})
}

// Case ST-02: tried on the product behind a link of 2 ms
func TestDiallingIsNoOutage(t *testing.T) {
	atDistance(t, 1, 10, 10, 2*time.Millisecond, 0, nil, func(t *testing.T, w *far) {
		dials := 0
		w.store.delay = func() (there, back time.Duration) {
			if dials++; dials <= 30 { // connect, greet, send the script
				return 30 * time.Millisecond, 4 * time.Millisecond
			}
			return time.Millisecond, time.Millisecond
		}
		begin := time.Now()
		for i := range 30 {
			w.wg.Go(func() { w.take(w.procs[0], fmt.Sprint(i), begin) })
		}
		w.wg.Wait()
		if s := w.procs[0].Snapshot(); w.local > 0 || len(w.admitted) != 30 || s.Degraded || s.Changes > 0 {
			t.Errorf("%d admitted, %d locally: %+v", len(w.admitted), w.local, s)
		}
	})
}
