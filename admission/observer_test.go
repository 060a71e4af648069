package admission_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

// spiteful panics on every event.
type spiteful struct{ recorder }

func (o *spiteful) Observe(e admission.Event) {
	o.recorder.Observe(e)
	panic("the observer's own")
}

// recovering runs f and returns what it panicked with.
func recovering(f func()) (p any) {
	defer func() { p = recover() }()
	f()
	return nil
}

// A Drain returns although the observer panics on the event it waits for, and the panic
// goes up where the request ends.
//
// Case GA-06: tried on the product
func TestDrainOutlivesAnObserverThatPanics(t *testing.T) {
	sleep := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f, ok := w.(http.Flusher); ok && r.URL.Path == "/stream" {
			f.Flush()
		}
		time.Sleep(time.Second)
		if r.URL.Path == "/panic" {
			panic(http.ErrAbortHandler)
		}
	})
	for name, work := range map[string]func(g *admission.Gate){
		"request": func(g *admission.Gate) { get(g.Handler(sleep)) },
		"panic":   func(g *admission.Gate) { do(g.Handler(sleep), request("GET", "/panic")) },
		"stream": func(g *admission.Gate) {
			do(g.At(priority.Normal, admission.Stream(1))(sleep), request("GET", "/stream"))
		},
		"work": func(g *admission.Gate) {
			p, _ := g.Admit(t.Context(), admission.Ticket{})
			time.Sleep(time.Second)
			p.Release(shed.Served)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := admission.MustNew(admission.Options{Observer: new(spiteful)})
				panicked := make(chan any, 1)
				go func() { panicked <- recovering(func() { work(g) }) }()
				synctest.Wait()
				begun := time.Now()
				if err := g.Drain(t.Context()); err != nil || time.Since(begun) != time.Second {
					t.Errorf("drain: %v after %v", err, time.Since(begun))
				}
				if p := <-panicked; p != "the observer's own" {
					t.Errorf("panic = %v", p)
				}
				atRest(t, g)
			})
		})
	}
}

// A caller that is refused has its answer although the observer panics.
func TestRefusalsAreAnsweredBeforeTheObserverIsTold(t *testing.T) {
	g := admission.MustNew(admission.Options{Observer: new(spiteful), Pool: admission.Pool{Limit: shed.Fixed(1), MaxWait: admission.NoWait}})
	p, _ := g.Admit(t.Context(), admission.Ticket{})
	w := httptest.NewRecorder()
	if recovering(func() { g.Handler(okHandler()).ServeHTTP(w, request("GET", "/")) }) == nil {
		t.Error("the panic is lost")
	}
	mustRefuse(t, w, http.StatusServiceUnavailable, shed.Capacity)
	_ = recovering(func() { p.Release(shed.Served) })
	atRest(t, g)
}

// One observer's panic is its own: the others are told all the same.
func TestObserversAfterOneThatPanicsAreTold(t *testing.T) {
	first, last := &recorder{}, &recorder{}
	g := admission.MustNew(admission.Options{Observer: admission.Observers(first, new(spiteful), last)})
	if p := recovering(func() { get(g.Handler(okHandler())) }); p != "the observer's own" {
		t.Errorf("panic = %v", p)
	}
	if len(first.all()) != 1 || len(last.all()) != 1 {
		t.Errorf("told %d and %d times, want once each", len(first.all()), len(last.all()))
	}
}

// What a client is told goes out before the panic of an observer, which ends the
// connection.
func TestARefusalReachesItsClientThoughTheObserverPanics(t *testing.T) {
	g := admission.MustNew(admission.Options{Observer: new(spiteful), Pool: admission.Pool{Limit: shed.Fixed(1), MaxWait: admission.NoWait}})
	srv := httptest.NewUnstartedServer(g.Handler(okHandler()))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.Start()
	defer srv.Close()
	p, _ := g.Admit(t.Context(), admission.Ticket{})
	resp, err := http.Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" || len(body) == 0 || err != nil {
		t.Errorf("%d, %v, body of %d bytes, %v", resp.StatusCode, resp.Header, len(body), err)
	}
	_ = recovering(func() { p.Release(shed.Served) })
}

// An observer is told of every refusal, also when the service's own answer panics.
func TestARefusalWhoseAnswerPanicsIsToldOf(t *testing.T) {
	heard := &recorder{}
	g := admission.MustNew(admission.Options{
		Observer: heard, Pool: admission.Pool{Limit: shed.Fixed(1), MaxWait: admission.NoWait},
		HTTP: admission.HTTP{Refuse: func(http.ResponseWriter, *http.Request, admission.Rejection) { panic(http.ErrAbortHandler) }},
	})
	p, _ := g.Admit(t.Context(), admission.Ticket{})
	if p := recovering(func() { get(g.Handler(okHandler())) }); p != http.ErrAbortHandler {
		t.Errorf("panic = %v", p)
	}
	if all := heard.all(); len(all) != 1 || all[0].Reason != shed.Capacity {
		t.Errorf("told of %v", all)
	}
	p.Release(shed.Served)
	atRest(t, g)
}
