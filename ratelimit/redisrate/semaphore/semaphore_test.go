package semaphore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/redistest"
	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/store"
)

func newSlots(t *testing.T, s *redistest.Server, most int, o Options) *Semaphore {
	t.Helper()
	sl := New(s.Client(t), "jobs", most, o)
	if err := sl.Validate(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sl.Close() })
	return sl
}

func TestSlotsCapAllProcessesTogether(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	var running, most, done atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		sl := newSlots(t, s, 5, Options{})
		for range 8 {
			wg.Go(func() {
				for range 5 {
					ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
					p, err := sl.Acquire(ctx)
					cancel()
					if err != nil {
						t.Error(err)
						return
					}
					n := running.Add(1)
					for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
					}
					time.Sleep(2 * time.Millisecond)
					running.Add(-1)
					p.Release()
					p.Release()
					done.Add(1)
				}
			})
		}
	}
	wg.Wait()
	if most.Load() > 5 || done.Load() != 160 {
		t.Errorf("%d at once of 5, %d done of 160", most.Load(), done.Load())
	}
	redistest.Eventually(t, 2*time.Second, "all are given back", func() bool { return s.Do("zcard", store.SlotsKey("jobs")).(int64) == 0 })
}

func TestSlotsOfTheDeadComeFree(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	dead, alive := newSlots(t, s, 2, Options{TTL: time.Second}), newSlots(t, s, 2, Options{TTL: time.Second})
	ctx := context.Background()
	for range 2 {
		if _, err := dead.Take(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := alive.Take(ctx); !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
	time.Sleep(1500 * time.Millisecond) // renewals keep them
	if _, err := alive.Take(ctx); !errors.Is(err, ErrFull) {
		t.Error("renewed slots lapsed")
	}
	dead.mu.Lock()
	dead.closed = true // dies: no renewals, nothing given back
	dead.tick.Stop()
	dead.mu.Unlock()
	redistest.Eventually(t, 3*time.Second, "a slot is free", func() bool {
		_, err := alive.Take(ctx)
		return err == nil
	})
}

func TestSlotsInAnOutage(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	sl := newSlots(t, s, 10, Options{MinPeers: 2, TTL: time.Second})
	ctx := context.Background()
	held := []*Permit{}
	for range 3 {
		p, err := sl.Take(ctx)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, p)
	}
	s.Kill()
	for range 20 {
		if p, err := sl.Take(ctx); err == nil {
			held = append(held, p)
		} else if !errors.Is(err, ErrFull) {
			t.Errorf("an error reached the caller: %v", err)
		}
	}
	if len(held) != 5 || !sl.Snapshot().Away {
		t.Errorf("%d held; the part of a cap of 10 for two is 5: %+v", len(held), sl.Snapshot())
	}
	select {
	case <-held[0].Lost():
	case <-time.After(3 * time.Second):
		t.Error("nobody said that the slot may be lost")
	}
	s.Start()
	redistest.Eventually(t, 5*time.Second, "permits of the outage are entered", func() bool {
		return s.Do("zcard", store.SlotsKey("jobs")).(int64) == 5 && !sl.Snapshot().Away
	})
	for _, p := range held {
		p.Release()
	}
	redistest.Eventually(t, 2*time.Second, "all are given back", func() bool { return s.Do("zcard", store.SlotsKey("jobs")).(int64) == 0 })
}

func TestSlotsWaitEndsWithTheContext(t *testing.T) {
	t.Parallel()
	sl := newSlots(t, redistest.Start(t), 1, Options{})
	if _, err := sl.Acquire(context.Background()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	from := time.Now()
	if _, err := sl.Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(from) > 50*time.Millisecond+80*time.Millisecond {
		t.Errorf("%v after %v", err, time.Since(from))
	}
}

func TestSlotsNameWhatIsWrong(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{})
	defer rdb.Close()
	for want, sl := range map[string]*Semaphore{
		"nil": New(nil, "a", 1, Options{}), "name": New(rdb, "", 1, Options{}), "cap": New(rdb, "a", 0, Options{}),
		"TTL": New(rdb, "a", 1, Options{TTL: time.Millisecond}), "Peers": New(rdb, "a", 1, Options{MinPeers: -1}),
		"Outage": New(rdb, "a", 1, Options{OnOutage: 7}),
	} {
		if err := sl.Validate(); err == nil || !redistest.ContainsFold(err.Error(), want) {
			t.Errorf("%v, want %q named", err, want)
		}
		if _, err := sl.Take(context.Background()); err == nil {
			t.Error("admitted")
		}
		sl.Snapshot()
		sl.Close()
	}
}
