package admission_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/priority"
)

// life is one admitted request whose context is held beyond its end, beside the
// context of package context that it stands for.
type life struct {
	t      *testing.T
	probe  bool // look after every event, not only at the end
	ctx    context.Context
	model  context.Context
	leave  context.CancelFunc // the client
	end    context.CancelFunc // the model's, at the handler's return
	asked  bool               // for Done
	seen   error
	own    bool                    // the deadline's error is that of the model
	over   map[string]func() error // what was derived, and whether it is over
	events []string
}

// layout is a way to set a deadline before the handler.
type layout struct {
	name  string
	wrap  func(http.Handler) http.Handler
	model func(context.Context) (context.Context, context.CancelFunc)
	own   bool
}

func layouts() []layout {
	within := func(d time.Duration) *admission.Gate {
		return admission.MustNew(admission.Options{Deadline: admission.Within(d)})
	}
	at := func(g *admission.Gate, opts ...admission.RouteOption) func(http.Handler) http.Handler {
		return g.At(priority.Normal, opts...)
	}
	after := func(d time.Duration) func(context.Context) (context.Context, context.CancelFunc) {
		return func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, d) }
	}
	type key struct{}
	valued := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), key{}, 1)))
		})
	}
	twice := within(time.Second)
	return []layout{
		{"one gate", at(within(time.Second)), after(time.Second), true},
		{"a gate met twice", func(h http.Handler) http.Handler { return twice.Handler(valued(at(twice)(h))) }, after(time.Second), true},
		{"a later deadline outside", func(h http.Handler) http.Handler { return at(within(time.Hour))(at(within(time.Second))(h)) }, after(time.Second), true},
		{"an earlier deadline outside", func(h http.Handler) http.Handler { return at(within(time.Second))(valued(at(within(time.Hour))(h))) }, after(time.Second), true},
		{"a stream", at(within(time.Second), admission.Stream(1)), after(time.Second), false},
		{"no deadline", at(admission.MustNew(admission.Options{})), func(ctx context.Context) (context.Context, context.CancelFunc) { return ctx, func() {} }, true},
	}
}

// Done closed and Err non-nil are one thing, whatever happens in whatever order, and
// what package context and net/http derive behaves as on a context of their own.
//
// Case GA-01: tried on the product
func TestContextIsOverAsOneOfPackageContext(t *testing.T) {
	orders := permutations([]string{"deadline", "done", "cancel", "end", "derive"})
	for _, l := range layouts() {
		for _, probe := range []bool{true, false} {
			for _, events := range orders {
				t.Run(fmt.Sprintf("%s/probe=%v/%s", l.name, probe, strings.Join(events, ",")), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						(&life{t: t, probe: probe, own: l.own, events: events, over: map[string]func() error{}}).play(l)
					})
				})
			}
		}
	}
}

// play runs the events up to the end inside the handler, and the others after it.
func (l *life) play(how layout) {
	outer, leave := context.WithCancel(l.t.Context())
	defer leave()
	l.leave = leave
	l.model, l.end = how.model(outer)
	h := how.wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		l.ctx = r.Context()
		for len(l.events) > 0 && l.events[0] != "end" {
			l.next()
		}
	}))
	do(h, request("GET", "/").WithContext(outer))
	for len(l.events) > 0 {
		l.next()
	}
	l.check("the last event")
}

func (l *life) next() {
	event := l.events[0]
	l.events = l.events[1:]
	switch event {
	case "deadline":
		time.Sleep(2 * time.Second)
	case "done":
		l.asked = true
		l.ctx.Done()
	case "cancel":
		l.leave()
	case "end":
		l.end()
	case "derive":
		l.derive()
	}
	if l.probe {
		l.check(event)
	}
}

// check compares all views of the context.
func (l *life) check(after string) {
	l.t.Helper()
	synctest.Wait()
	err, cause, model := l.ctx.Err(), context.Cause(l.ctx), l.model.Err()
	if (err != nil) != (model != nil) || l.probe && l.own && err != model {
		l.t.Errorf("after %s: Err = %v, want %v", after, err, model)
	}
	if (err == nil) != (cause == nil) {
		l.t.Errorf("after %s: Err = %v, cause %v", after, err, cause)
	}
	if l.seen != nil && err != l.seen {
		l.t.Errorf("after %s: Err = %v, was %v", after, err, l.seen)
	}
	l.seen = err
	if l.asked && closed(l.ctx) != (err != nil) {
		l.t.Errorf("after %s: Done closed: %v, Err = %v", after, closed(l.ctx), err)
	}
	for name, over := range l.over {
		if got := over(); (got != nil) != (err != nil) {
			l.t.Errorf("after %s: %s says %v, its parent %v", after, name, got, err)
		}
	}
}

func closed(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	default:
		return false
	}
}

// derive hangs on the context all that a handler may.
func (l *life) derive() {
	child, cancel := context.WithCancel(l.ctx)
	l.t.Cleanup(cancel)
	l.over["WithCancel"] = child.Err
	timed, cancel := context.WithTimeoutCause(l.ctx, time.Hour, errors.New("an hour"))
	l.t.Cleanup(cancel)
	l.over["WithTimeoutCause"] = timed.Err
	l.over["its cause"] = func() error { return context.Cause(timed) }
	ran := make(chan struct{})
	context.AfterFunc(l.ctx, func() { close(ran) })
	l.over["AfterFunc"] = func() error { return errIf(isClosed(ran)) }
	l.over["http.Client"] = call(l.ctx, l.t.Context())
}

// call sends a request to a server that is not reached until the test ends, and tells
// whether the call ended.
func call(ctx, test context.Context) func() error {
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		<-test.Done()
		return nil, test.Err()
	}}
	r, _ := http.NewRequestWithContext(ctx, "GET", "http://192.0.2.1/", nil)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if resp, err := (&http.Client{Transport: transport}).Do(r); err == nil {
			resp.Body.Close()
		}
	}()
	return func() error { return errIf(isClosed(ended)) }
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func errIf(over bool) error {
	if over {
		return errors.New("over")
	}
	return nil
}

func permutations(of []string) (all [][]string) {
	if len(of) <= 1 {
		return [][]string{of}
	}
	for i, first := range of {
		for _, rest := range permutations(slices.Delete(slices.Clone(of), i, i+1)) {
			all = append(all, append([]string{first}, rest...))
		}
	}
	return all
}
