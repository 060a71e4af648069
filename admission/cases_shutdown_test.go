package admission_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/shed"
	"github.com/headgate-go/headgate/shed/pressure"
)

// Those who wait are answered with 503 at once: the process is about to go, and
// another one can serve them sooner.
//
// Case SH-01: from reports about shutting down in other middleware
func TestDrainAnswersWaitersAndLetsWorkFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.MustNew(admission.Options{Pool: admission.Pool{Limit: shed.Fixed(1), MaxWait: time.Minute}})
		slow := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(500 * time.Millisecond) })
		w := newWire(t, g.Handler(slow), nil)
		running, waiting := make(chan *http.Response, 1), make(chan *http.Response, 2)
		go func() { running <- w.get(t, "/") }()
		synctest.Wait()
		for range 2 {
			go func() { waiting <- w.get(t, "/") }()
		}
		synctest.Wait()
		start, drained := time.Now(), make(chan error, 1)
		go func() {
			grace, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			drained <- g.Drain(grace)
		}()
		synctest.Wait()
		for range 2 {
			if res := <-waiting; res.StatusCode != 503 || res.Header.Get("Retry-After") == "" {
				t.Errorf("a waiting one got %d, Retry-After %q", res.StatusCode, res.Header.Get("Retry-After"))
			}
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("the waiting ones were answered after %v", d)
		}
		res := w.get(t, "/")
		if res.StatusCode != 503 || res.Header.Get("Retry-After") == "" || !res.Close {
			t.Errorf("a new one got %d, Retry-After %q, close %v", res.StatusCode, res.Header.Get("Retry-After"), res.Close)
		}
		if res := <-running; res.StatusCode != 200 {
			t.Errorf("the running one got %d", res.StatusCode)
		}
		if err := <-drained; err != nil || time.Since(start) > 2*time.Second {
			t.Errorf("drained after %v: %v", time.Since(start), err)
		}
	})
}

// The only interval the gate has is that of its signals: nothing here is cleaned
// up on a clock.
//
// Case SH-05: from reports about shutting down in other middleware
func TestAnIntervalOfZeroOrLessIsNamedOrTheDefault(t *testing.T) {
	with := func(every time.Duration) admission.Options {
		return admission.Options{Pressure: pressure.Guard{
			Every:   every,
			Signals: []pressure.Signal{{Name: "never", Read: func() float64 { return 0 }, High: 1}},
		}}
	}
	if _, err := admission.New(with(-1)); err == nil || !strings.Contains(err.Error(), "Every") {
		t.Errorf("a negative interval: %v", err)
	}
	g, err := admission.New(with(0)) // the documented default
	if err != nil {
		t.Fatal(err)
	}
	if w := get(g.Handler(okHandler())); w.Code != 200 {
		t.Errorf("answer = %d", w.Code)
	}
}
