package overhead

import (
	"fmt"
	"net/http"
)

// prove holds a subject to what its figures rest on: every key has tokens of its
// own, every answer is the one that the bench is about, and the headers are there.
// It leaves the subject with state for every key.
func (g *group) prove(e *entry) error {
	c := newCaller(g.made, 0)
	e.want = e.refusal(g.bench)
	first := e.want
	if g.bench == refused429 {
		first = http.StatusNoContent // each key has one token: keys are told apart
	}
	if err := g.askAll(e, c, first); err != nil {
		return err
	}
	if e.want != first {
		if err := g.askAll(e, c, e.want); err != nil {
			return err
		}
	}
	if e.instance.keys != nil {
		if n := e.instance.keys(); n != g.keys {
			return fmt.Errorf("remembers %d keys of %d", n, g.keys)
		}
	}
	return nil
}

// refusal is the status of every measured answer.
func (s *subject) refusal(bench string) int {
	switch {
	case bench == admitted:
		return http.StatusNoContent
	case s.status != 0:
		return s.status
	case bench == refused429:
		return http.StatusTooManyRequests
	}
	return http.StatusServiceUnavailable
}

func (g *group) askAll(e *entry, c *sender, want int) error {
	for i, key := range g.made {
		c.as(key)
		if got := e.ask(c); got != want {
			return fmt.Errorf("request %d of %d answered %d, not %d", i+1, g.keys, got, want)
		}
	}
	for _, name := range e.carried(g.bench, want) {
		if c.w.header.Get(name) == "" {
			return fmt.Errorf("no %s in %v", name, c.w.header)
		}
	}
	return nil
}

// carried are the headers of an answer: rate headers on every one, and what a
// client has to be told by the kit's refusals.
func (e *entry) carried(bench string, status int) []string {
	if e.bare {
		return nil
	}
	if e.name == bareRefusal && status == http.StatusNoContent {
		return nil
	}
	if isKit(e.name) && status != http.StatusNoContent {
		return append([]string{"Retry-After", "Headgate-Reason", "Content-Type"}, e.headers...)
	}
	return e.headers
}
