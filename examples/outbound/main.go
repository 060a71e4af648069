// Outbound replays an incident: 50 workers push notifications through an API with a
// quota of 100 calls per second, which its owner tightens to 5 without notice.
//
//	go run ./examples/outbound          # paced by an outbound.Transport
//	go run ./examples/outbound -naive   # as it went wrong
//
// Everything runs on the loopback, in one process, and ends within 30 seconds.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// scenario is what happens.
type scenario struct {
	naive     bool
	workers   int
	devices   int
	latency   time.Duration
	quota     rate.Limit
	tightened rate.Limit
	after     int           // calls the API accepts before its quota tightens
	limit     time.Duration // when the run ends at the latest
}

var incident = scenario{
	workers: 50, devices: 530, latency: 30 * time.Millisecond,
	quota: 100, tightened: 5, after: 500, limit: 30 * time.Second,
}

// report is how it ended.
type report struct {
	delivered, deleted, lost int
	before, after            int // most calls the API accepted in one second, before and after
	refused                  int // calls the API turned away
	opened                   int // times the circuit breaker opened
	took                     time.Duration
}

func main() {
	s := incident
	flag.BoolVar(&s.naive, "naive", false, "no ceiling, immediate retries, every failure is the device's")
	flag.Parse()
	r, err := run(os.Stdout, s, loopback)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	r.print(os.Stdout, s)
}

// run plays s and logs the numbers in force every second.
func run(w io.Writer, s scenario, n network) (report, error) {
	ctx, cancel := context.WithTimeout(context.Background(), s.limit)
	defer cancel()
	api := newAPI(s)
	url, err := api.serve(ctx, n)
	if err != nil {
		return report{}, err
	}
	t := &tally{}
	var p pusher = newPaced(url, n.transport(s.workers), s, t)
	if s.naive {
		p = newNaive(url, n.transport(s.workers), t)
	}
	start := time.Now()
	stop := make(chan struct{})
	var logging sync.WaitGroup
	logging.Go(func() { logEverySecond(w, start, api, p, t, stop) })
	work(ctx, s, p)
	close(stop)
	logging.Wait()
	return sum(s, api, p, t, start), nil
}

// work lets the workers push until every device is done with or time is up. A device
// that is not goes back to the end of the queue.
func work(ctx context.Context, s scenario, p pusher) {
	queue := make(chan int, s.devices)
	for d := range s.devices {
		queue <- d
	}
	var left, wg sync.WaitGroup
	left.Add(s.devices)
	for range s.workers {
		wg.Go(func() {
			for d := range queue {
				switch {
				case ctx.Err() != nil, p.push(ctx, d):
					left.Done()
				default:
					queue <- d
				}
			}
		})
	}
	left.Wait()
	close(queue)
	wg.Wait()
}

func logEverySecond(w io.Writer, start time.Time, a *api, p pusher, t *tally, stop <-chan struct{}) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case now := <-tick.C:
			c := a.counts()
			fmt.Fprintf(w, "%3.0f s  quota %3.0f/s | %s | delivered %3d, deleted %3d | API turned away %d\n",
				now.Sub(start).Seconds(), float64(c.quota), p.numbers(), t.delivered.Load(), t.deleted.Load(), c.refused)
		}
	}
}

func sum(s scenario, a *api, p pusher, t *tally, start time.Time) report {
	r := report{
		delivered: int(t.delivered.Load()), deleted: int(t.deleted.Load()),
		refused: a.counts().refused, opened: p.breaker().timesOpened(), took: time.Since(start),
	}
	r.before, r.after = a.busiest()
	r.lost = s.devices - r.delivered
	return r
}

// allowed is what a quota lets through in one second: its rate, and what may come at
// once.
func allowed(quota rate.Limit) int { return int(quota) + burstOf(quota) }

func (r report) print(w io.Writer, s scenario) {
	fmt.Fprintf(w, "\nafter %.1f s: %d of %d delivered, %d lost, %d healthy devices deleted, breaker opened %d times\n",
		r.took.Seconds(), r.delivered, s.devices, r.lost, r.deleted, r.opened)
	fmt.Fprintf(w, "the API turned %d calls away; in its busiest second it accepted %d (its quota allows %d)",
		r.refused, r.before, allowed(s.quota))
	if r.after > 0 {
		fmt.Fprintf(w, ", and %d after it was tightened (%d)", r.after, allowed(s.tightened))
	}
	fmt.Fprintln(w)
}
