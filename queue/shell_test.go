package queue_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/internal/entry"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/shed"
)

// job is one piece of work of the workload that the shell and the core both run.
type job struct {
	at      time.Duration // when it arrives; no two at once
	service time.Duration
	ticket  queue.Ticket
	due     time.Duration // after its arrival; zero: never
}

// end is what became of it.
type end struct {
	reason shed.Reason
	start  time.Duration // when it got its slot or was refused
}

// TestSlotsFollowTheirCore plays random work through Slots in a bubble and through
// a bare Core in a loop over events. Every job must end the same way at the same
// instant.
func TestSlotsFollowTheirCore(t *testing.T) {
	config := queue.Config{Limit: shed.Fixed(3), MaxWaiting: 10, CriticalReserve: 1, MaxWait: 80 * time.Millisecond}
	for seed := range uint64(20) {
		jobs := workload(seed, 300)
		want := playCore(t, config, jobs)
		var got []end
		synctest.Test(t, func(t *testing.T) { got = playSlots(t, config, jobs) })
		reasons := map[shed.Reason]int{}
		for i := range jobs {
			reasons[want[i].reason]++
			if got[i] != want[i] {
				t.Fatalf("seed %d, job %d %+v: slots %+v, core %+v", seed, i, jobs[i], got[i], want[i])
			}
		}
		if len(reasons) < 4 {
			t.Fatalf("seed %d: the workload shows too little: %v", seed, reasons)
		}
	}
}

// workload draws jobs whose arrivals, ends and deadlines never fall on the same
// nanosecond, so that both players see the same order of events.
func workload(seed uint64, n int) []job {
	r := rand.New(rand.NewPCG(seed, 2))
	jobs := make([]job, n)
	at := time.Duration(0)
	for i := range jobs {
		at += time.Duration(1 + r.ExpFloat64()*float64(4*time.Millisecond))
		jobs[i] = job{
			at:      at,
			service: time.Duration(float64(5*time.Millisecond) + r.ExpFloat64()*float64(20*time.Millisecond)),
			ticket:  queue.Ticket{Level: priority.All()[r.IntN(priority.Count)], Caller: string(rune('a' + r.IntN(3)))},
		}
		if r.IntN(2) == 0 {
			jobs[i].due = time.Duration(r.ExpFloat64() * float64(60*time.Millisecond))
		}
	}
	return jobs
}

func (j job) ticketAt(now time.Time) queue.Ticket {
	t := j.ticket
	if j.due > 0 {
		t.Deadline = now.Add(j.due)
	}
	return t
}

func playSlots(t *testing.T, config queue.Config, jobs []job) []end {
	s := newSlots(t, config)
	ends := make([]end, len(jobs))
	start := time.Now()
	var all sync.WaitGroup
	for i, j := range jobs {
		time.Sleep(j.at - time.Since(start))
		all.Go(func() {
			now := time.Now()
			g, err := s.Acquire(t.Context(), now, j.ticketAt(now))
			ends[i].start = time.Since(start)
			if err != nil {
				ends[i].reason = err.(shed.Reason)
				return
			}
			time.Sleep(j.service)
			s.Release(g, shed.Served)
		})
		synctest.Wait()
	}
	all.Wait()
	return ends
}

func playCore(t *testing.T, config queue.Config, jobs []job) []end {
	core, err := queue.NewCore(config)
	if err != nil {
		t.Fatal(err)
	}
	epoch := time.Unix(1e9, 0)
	ends := make([]end, len(jobs))
	waiters := make([]queue.Waiter, len(jobs))
	index := make(map[*queue.Waiter]int)
	finish := map[int]time.Duration{} // work in flight
	started := func(w *queue.Waiter, at time.Duration) {
		i := index[w]
		ends[i] = end{shed.Admitted, at}
		finish[i] = at + jobs[i].service
	}
	refused := func(w *queue.Waiter, at time.Duration) { ends[index[w]] = end{w.Reason, at} }
	drain := func(at time.Duration) {
		for w := core.Expire(epoch.Add(at)); w != nil; w = core.Expire(epoch.Add(at)) {
			refused(w, at)
		}
		for w := core.Next(epoch.Add(at)); w != nil; w = core.Next(epoch.Add(at)) {
			started(w, at)
		}
	}
	last := time.Duration(0)
	for next := 0; next < len(jobs) || len(finish) > 0; {
		at, done := time.Duration(1<<62), -1
		for i, f := range finish {
			if f < at {
				at, done = f, i
			}
		}
		if next < len(jobs) && jobs[next].at < at {
			at, done = jobs[next].at, -1
		}
		if leave, ok := core.NextExpiry(); ok && leave.Sub(epoch) < at {
			last = max(last, leave.Sub(epoch)) // what has to leave already leaves now
			drain(last)
			continue
		}
		last = at
		now := epoch.Add(at)
		if done >= 0 {
			delete(finish, done)
			core.Release(now, waiters[done].Grant, shed.Served)
		} else {
			w := &waiters[next]
			w.Ticket = jobs[next].ticketAt(now)
			index[w] = next
			switch v, evictee := core.Offer(now, w); {
			case v == entry.In:
				started(w, at)
			case v == entry.Out:
				refused(w, at)
			case evictee != nil:
				refused(evictee, at)
			}
			next++
		}
		drain(at)
	}
	return ends
}

// Any mix of callers, ends and interruptions leaves nothing behind.
func TestNothingIsLostUnderContention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(t, queue.Config{Limit: shed.Fixed(4), MaxWaiting: 20, MaxWait: 20 * time.Millisecond})
		reasons := make([]shed.Reason, 3000)
		var all sync.WaitGroup
		for i := range reasons {
			all.Go(func() {
				r := rand.New(rand.NewPCG(uint64(i), 3))
				time.Sleep(time.Duration(r.IntN(1000)) * time.Millisecond)
				ctx, stop := contextFor(t, r)
				defer stop()
				g, err := s.Acquire(ctx, time.Now(), queue.Ticket{Level: priority.All()[r.IntN(4)], Caller: string(rune('a' + r.IntN(9)))})
				if err != nil {
					reasons[i] = err.(shed.Reason)
					return
				}
				time.Sleep(time.Duration(r.IntN(6)) * time.Millisecond)
				s.Release(g, shed.Outcome(r.IntN(4)))
			})
		}
		all.Wait()
		st := s.Stats()
		if st.InFlight != 0 || st.Waiting != [priority.Count]int{} || st.WaitingBytes != [priority.Count]int64{} {
			t.Fatalf("left behind: %+v", st)
		}
		var want, got [shed.ReasonCount]uint64
		for _, r := range reasons {
			want[r]++
		}
		for i := range st.Refused {
			got[shed.Admitted] += st.Admitted[i]
			for r := range st.Refused[i] {
				got[r] += st.Refused[i][r]
			}
		}
		if got != want {
			t.Fatalf("counted %v, callers saw %v", got, want)
		}
		if n := len(slices.DeleteFunc(slices.Clone(want[:]), func(n uint64) bool { return n == 0 })); n < 5 {
			t.Fatalf("the load shows too little: %v", want)
		}
	})
}

func contextFor(t *testing.T, r *rand.Rand) (context.Context, context.CancelFunc) {
	d := time.Duration(r.IntN(20)) * time.Millisecond
	if r.IntN(4) == 1 {
		return context.WithTimeout(t.Context(), d)
	}
	ctx, stop := context.WithCancel(t.Context())
	if r.IntN(4) == 0 {
		time.AfterFunc(d, stop)
	}
	return ctx, stop
}
