package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// tally counts answers, and holds them against the ceiling: a bucket of its own
// that everything admitted is taken from.
type tally struct {
	rate, burst float64
	mu          sync.Mutex
	admitted    []int // this second, by replica
	refused     int
	failed      int
	level       float64
	lowest      float64
	last        time.Time
	total       [3]int // admitted, refused, failed
}

func newTally(rate, burst, replicas int) *tally {
	return &tally{rate: float64(rate), burst: float64(burst), admitted: make([]int, replicas), level: float64(burst), last: time.Now()}
}

func (t *tally) count(replica, status int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch status {
	case http.StatusOK:
		now := time.Now()
		t.level = min(t.burst, t.level+now.Sub(t.last).Seconds()*t.rate) - 1
		t.last, t.lowest = now, min(t.lowest, t.level)
		t.admitted[replica]++
		t.total[0]++
	case http.StatusTooManyRequests:
		t.refused++
		t.total[1]++
	default:
		t.failed++
		t.total[2]++
	}
}

// print writes a line a second.
func (t *tally) print(ctx context.Context, fleet []*replica) {
	fmt.Printf("%4s  %-22s %8s %8s %7s %6s  %-20s %s\n", "s", "admitted by replica", "together", "ceiling", "429", "other", "store", "calls/s")
	calls := 0
	for second := 1; ; second++ {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
		state, now := "", 0
		for _, r := range fleet {
			s := r.limiter.Snapshot()
			state += fmt.Sprintf("%.6s ", s.State)
			for _, c := range s.Calls {
				now += int(c.Count)
			}
		}
		t.line(second, state, now-calls)
		calls = now
	}
}

func (t *tally) line(second int, state string, calls int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	together := 0
	for _, n := range t.admitted {
		together += n
	}
	fmt.Printf("%4d  %-22s %8d %8.0f %7d %6d  %-20s %d\n", second, fmt.Sprint(t.admitted), together, t.rate, t.refused, t.failed, state, calls)
	clear(t.admitted)
	t.refused, t.failed = 0, 0
}

// verdict says whether the ceiling held in every window. Answers are counted when
// they reach the client, a little unevenly; that blur is allowed for.
func (t *tally) verdict() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	over, blur := max(0, -t.lowest), t.rate/50
	fmt.Printf("\n%d admitted, %d refused, %d other; fullest window %.0f above burst + rate x time\n", t.total[0], t.total[1], t.total[2], over)
	switch {
	case t.total[2] > 0:
		return fmt.Errorf("%d requests got neither 200 nor 429", t.total[2])
	case over > blur:
		return fmt.Errorf("the ceiling was exceeded by %.0f", over)
	}
	fmt.Println("the ceiling held")
	return nil
}
