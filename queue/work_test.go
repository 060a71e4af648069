package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/shed"
)

func newQueue(t *testing.T, c queue.WorkConfig[string]) *queue.Queue[string] {
	t.Helper()
	q, err := queue.NewQueue(c)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// popAll takes out everything there is at now.
func popAll(q *queue.Queue[string], now time.Time) string {
	var all []string
	for {
		v, _, ok := q.TryPop(now)
		if !ok {
			return strings.Join(all, " ")
		}
		all = append(all, v)
	}
}

func TestWorkIsServedInTheOrderOfSlots(t *testing.T) {
	q := newQueue(t, queue.WorkConfig[string]{})
	now := time.Now()
	for _, w := range []struct {
		name   string
		level  priority.Level
		caller string
	}{{"export", priority.Batch, "a"}, {"a1", priority.Normal, "a"}, {"a2", priority.Normal, "a"}, {"b1", priority.Normal, "b"}, {"pay", priority.Critical, "b"}} {
		if err := q.Push(now, w.name, queue.Ticket{Level: w.level, Caller: w.caller}); err != nil {
			t.Fatal(err)
		}
	}
	if n, by := q.Len(), q.Waiting(); n != 5 || by != [priority.Count]int{1, 3, 0, 1} {
		t.Fatalf("%d wait, %v", n, by)
	}
	if got := q.Oldest(now.Add(time.Second)); got != time.Second {
		t.Fatalf("oldest %v", got)
	}
	if got, want := popAll(q, now), "pay a1 b1 a2 export"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	if q.Len() != 0 || q.Oldest(now) != 0 {
		t.Fatal("not empty")
	}
}

// An address and a key that read alike are two callers, each with turns of its own.
func TestEqualNamesOfTwoKindsTakeTurns(t *testing.T) {
	q := newQueue(t, queue.WorkConfig[string]{})
	now := time.Now()
	for _, w := range []struct{ name, space string }{{"k1", "key"}, {"k2", "key"}, {"k3", "key"}, {"a1", "addr"}, {"a2", "addr"}} {
		if err := q.Push(now, w.name, queue.Ticket{Caller: "10.0.0.1", Space: w.space}); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := popAll(q, now), "k1 a1 k2 a2 k3"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
}

func TestAFullQueueDropsTheOldestOrTheLast(t *testing.T) {
	for _, c := range []struct {
		oldest  bool
		refused string // which of the two pushed last
		dropped string
		left    string
	}{
		{true, "", "old normal", "high batch"},
		{false, "batch", "old", "high normal"},
	} {
		var dropped []string
		q := newQueue(t, queue.WorkConfig[string]{MaxWaiting: 2, DropOldest: c.oldest, OnDrop: func(v string, _ queue.Ticket, r shed.Reason) {
			if r != shed.Evicted {
				t.Errorf("%s dropped with %v", v, r)
			}
			dropped = append(dropped, v)
		}})
		now := time.Now()
		var refused []string
		for _, w := range []struct {
			name  string
			level priority.Level
		}{{"old", priority.Batch}, {"normal", priority.Normal}, {"high", priority.High}, {"batch", priority.Batch}} {
			switch err := q.Push(now, w.name, queue.Ticket{Level: w.level}); {
			case errors.Is(err, shed.QueueFull):
				refused = append(refused, w.name)
			case err != nil:
				t.Fatal(err)
			}
		}
		got := []string{strings.Join(refused, " "), strings.Join(dropped, " "), popAll(q, now)}
		if want := []string{c.refused, c.dropped, c.left}; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("oldest %v: refused, dropped, left = %q, want %q", c.oldest, got, want)
		}
		if q.Dropped() != uint64(len(dropped)) {
			t.Errorf("oldest %v: %d dropped, counted %d", c.oldest, len(dropped), q.Dropped())
		}
	}
}

func TestExpiredWorkIsNeverDelivered(t *testing.T) {
	drops := map[string]shed.Reason{}
	var q *queue.Queue[string]
	q = newQueue(t, queue.WorkConfig[string]{MaxWait: time.Second, OnDrop: func(v string, _ queue.Ticket, r shed.Reason) {
		drops[v] = r
		q.Len() // no lock is held
	}})
	now := time.Now()
	q.Push(now, "stale", queue.Ticket{})
	q.Push(now, "short", queue.Ticket{MaxWait: time.Millisecond})
	q.Push(now, "late", queue.Ticket{Deadline: now.Add(time.Millisecond)})
	if err := q.Push(now, "dead", queue.Ticket{Deadline: now}); !errors.Is(err, shed.DeadlineUnmeetable) {
		t.Errorf("dead work: %v", err)
	}
	if err := q.Push(now, "now", queue.Ticket{MaxWait: queue.NoWait}); !errors.Is(err, shed.Capacity) {
		t.Errorf("work that does not wait: %v", err)
	}
	q.Push(now.Add(500*time.Millisecond), "fresh", queue.Ticket{})
	if got := popAll(q, now.Add(time.Second)); got != "fresh" {
		t.Errorf("delivered %s", got)
	}
	want := map[string]shed.Reason{"stale": shed.WaitedTooLong, "short": shed.WaitedTooLong, "late": shed.DeadlineUnmeetable}
	if fmt.Sprint(drops) != fmt.Sprint(want) {
		t.Errorf("dropped %v, want %v", drops, want)
	}
}

func TestPopWaitsForWorkForItsContextAndForTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, queue.WorkConfig[string]{})
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		start := time.Now()
		if _, _, err := q.Pop(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		got := make(chan string)
		go func() {
			v, _, _ := q.Pop(t.Context())
			got <- v
		}()
		synctest.Wait()
		q.Push(time.Now(), "x", queue.Ticket{})
		if v := <-got; v != "x" {
			t.Errorf("got %q", v)
		}
		q.Push(time.Now(), "last", queue.Ticket{})
		q.Close()
		q.Close()
		if err := q.Push(time.Now(), "y", queue.Ticket{}); !errors.Is(err, shed.Draining) {
			t.Errorf("push after close: %v", err)
		}
		if v, _, err := q.Pop(t.Context()); v != "last" || err != nil {
			t.Errorf("%q, %v", v, err)
		}
		if _, _, err := q.Pop(t.Context()); !errors.Is(err, shed.Draining) {
			t.Errorf("pop of a closed, empty queue: %v", err)
		}
	})
}

// Every piece of work ends once: delivered, dropped or refused.
func TestNoWorkIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		ends := make([]int, 2000)
		count := func(i int) {
			mu.Lock()
			ends[i]++
			mu.Unlock()
		}
		q, err := queue.NewQueue(queue.WorkConfig[int]{MaxWaiting: 20, MaxWait: 50 * time.Millisecond,
			OnDrop: func(i int, _ queue.Ticket, _ shed.Reason) { count(i) }})
		if err != nil {
			t.Fatal(err)
		}
		var workers, pushers sync.WaitGroup
		for range 4 {
			workers.Go(func() {
				for {
					i, _, err := q.Pop(t.Context())
					if err != nil {
						return
					}
					time.Sleep(3 * time.Millisecond)
					count(i)
				}
			})
		}
		for i := range ends {
			pushers.Go(func() {
				time.Sleep(time.Duration(i*i%997) * time.Millisecond)
				if q.Push(time.Now(), i, queue.Ticket{Level: priority.All()[i%4], Caller: string(rune('a' + i%5))}) != nil {
					count(i)
				}
			})
		}
		pushers.Wait()
		q.Close()
		workers.Wait()
		for i, n := range ends {
			if n != 1 {
				t.Fatalf("work %d ended %d times", i, n)
			}
		}
	})
}

func TestBadWorkConfigsNameTheField(t *testing.T) {
	for field, c := range map[string]queue.WorkConfig[string]{"MaxWaiting": {MaxWaiting: -1}, "MaxWait": {MaxWait: -1}} {
		if _, err := queue.NewQueue(c); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}
