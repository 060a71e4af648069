package admission_test

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/priority"
)

// offer sends one request every gap for the given time, and waits for all answers.
// It returns how many were refused.
func offer(h http.Handler, gap, length time.Duration, patience time.Duration) int64 {
	var refused atomic.Int64
	var wg sync.WaitGroup
	for range int(length / gap) {
		wg.Go(func() {
			ctx, cancel := context.WithCancel(context.Background()) // a client that leaves states no deadline
			defer cancel()
			defer time.AfterFunc(patience, cancel).Stop()
			r := request("GET", "/")
			w := do(h, r.WithContext(ctx))
			if w.Header().Get("Headgate-Reason") != "" {
				refused.Add(1)
			}
		})
		time.Sleep(gap)
	}
	wg.Wait()
	return refused.Load()
}

// answer is a handler that takes its time and then answers with a status.
func answer(after time.Duration, status int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(after)
		w.WriteHeader(status)
	})
}

// The default law reads ends that are no throughput as life: traffic of which
// nothing else ever ends loses no slot and no request, for as long as it lasts and
// when ordinary work comes back.
func TestEndsWithoutThroughputCostNoSlots(t *testing.T) {
	const ms = time.Millisecond
	stream := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(100 * ms)
		w.(http.Flusher).Flush()
		time.Sleep(3 * time.Second)
	})
	for name, c := range map[string]struct {
		work     http.Handler
		opts     []admission.RouteOption
		gap      time.Duration
		patience time.Duration
	}{
		"streams only":        {stream, []admission.RouteOption{admission.Stream(1000)}, 16 * ms, time.Hour}, // needs 6 slots
		"fast errors":         {answer(ms, 500), nil, 2 * ms, time.Hour},
		"slow errors":         {answer(300*ms, 500), nil, 20 * ms, time.Hour},
		"slower, all served":  {answer(300*ms, 200), nil, 20 * ms, time.Hour},
		"mistakes":            {answer(ms, 404), nil, 2 * ms, time.Hour},
		"clients that leave":  {answer(100*ms, 200), nil, 10 * ms, 50 * ms},
		"a few slow a minute": {answer(15*time.Second, 200), nil, 7 * time.Second, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := admission.MustNew(admission.Options{})
				served := g.Handler(answer(4*ms, 200))
				work := g.At(priority.Normal, c.opts...)(c.work)
				initial := g.Stats().Pools[0].Limit
				refused := offer(served, 5*ms, 3*time.Second, time.Hour)
				refused += offer(work, c.gap, 20*time.Second, c.patience)
				if limit := g.Stats().Pools[0].Limit; limit < initial {
					t.Errorf("%d slots left of %d", limit, initial)
				}
				refused += offer(served, 5*ms, 3*time.Second, time.Hour)
				if refused > 0 {
					t.Errorf("%d refused", refused)
				}
				atRest(t, g)
			})
		})
	}
}
