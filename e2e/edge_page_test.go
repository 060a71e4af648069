package e2e

import (
	"encoding/json"
	"net/http"
	"sync"
	"testing"
	"time"
)

// pageData is what the live page is told.
type pageData struct {
	Gates []struct {
		Admitted, Refused [4]uint64
		Reasons           map[string][4]uint64
		Pools             []struct{ Limit, InFlight int }
	}
	Calls []struct {
		Operations []struct{ Attempts, Failed uint64 }
	}
}

func (e *edge) page() (d pageData) {
	e.t.Helper()
	resp, err := http.Get(e.admin + "/headgate/data.json")
	if err != nil {
		e.t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&d); err != nil || len(d.Gates) != 1 || len(d.Calls) != 1 {
		e.t.Fatalf("%+v, %v", d, err)
	}
	return d
}

// Break the server on purpose, and the page tells the truth.
func TestThePageTellsTheTruthAboutABrokenServer(t *testing.T) {
	need(t)
	b := newBackend(t)
	e := startEdge(t, b.URL, "gate:\n  capacity: {limit: {fixed: 2}, max_wait: 50ms}\n")
	for range 5 {
		status(t, e.base+"/hello")
	}
	var slowed sync.WaitGroup
	for range 6 { // it became slow: two run, the others are told to come back
		slowed.Go(func() { status(t, e.base+"/slow?ms=1000") })
	}
	within(t, 5*time.Second, "the page shows full slots", func() bool {
		p := e.page().Gates[0].Pools[0]
		return p.InFlight == 2 && p.Limit == 2
	})
	slowed.Wait()
	within(t, 5*time.Second, "the page shows refusals, and why", func() bool {
		g := e.page().Gates[0]
		return g.Refused[1] == 4 && g.Admitted[1] == 7 && g.Reasons["waited-too-long"][1]+g.Reasons["deadline-unmeetable"][1]+g.Reasons["queue-full"][1] == 4
	})
	b.Close() // it is gone
	if got := status(t, e.base+"/hello"); got != 502 {
		t.Errorf("status %d without a server", got)
	}
	within(t, 5*time.Second, "the page shows failed calls", func() bool {
		ops := e.page().Calls[0].Operations
		return len(ops) == 1 && ops[0].Failed > 0
	})
}
