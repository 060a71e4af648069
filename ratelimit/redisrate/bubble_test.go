package redisrate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/account"
	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/account/accounttest"
)

// sick is a store that can hang or refuse, in fake time.
type sick struct {
	mu    sync.Mutex
	model *accounttest.Model
	state string // "", "hangs" or "refuses"
	peers int
	calls int
	debit int64
	delay func() (there, back time.Duration) // half a millisecond each by default
}

func newSick() *sick {
	return &sick{model: accounttest.NewModel(func() int64 { return time.Now().UnixMicro() }), peers: 1}
}

func (s *sick) set(state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = state
}

func (s *sick) fail(ctx context.Context) error {
	s.mu.Lock()
	state := s.state
	s.calls++
	s.mu.Unlock()
	switch state {
	case "hangs":
		<-ctx.Done()
		return ctx.Err()
	case "refuses":
		return &net.OpError{Op: "dial", Err: errors.New("refused")}
	}
	return nil
}

func (s *sick) Lease(ctx context.Context, r account.Request) (account.Reply, error) {
	if err := s.fail(ctx); err != nil {
		return account.Reply{}, err
	}
	there, back := s.travel()
	if err := pass(ctx, there); err != nil {
		return account.Reply{}, err
	}
	s.mu.Lock()
	s.debit += r.Debit
	rep, err := s.model.Lease(ctx, r)
	s.mu.Unlock()
	if late := pass(ctx, back); late != nil {
		return account.Reply{}, late
	}
	return rep, err
}

// travel says how long a call and its answer are under way.
func (s *sick) travel() (there, back time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.delay == nil {
		return time.Millisecond / 2, time.Millisecond / 2
	}
	return s.delay()
}

// pass lets time go by, until ctx ends.
func pass(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *sick) Beat(ctx context.Context, _, _ string, _ time.Duration, _ bool) (int, error) {
	if err := s.fail(ctx); err != nil {
		return 0, err
	}
	there, back := s.travel()
	if err := pass(ctx, there+back); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.peers, nil
}

func (s *sick) alone() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.peers = 1
}

func (s *sick) debited() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.debit
}

func (s *sick) Warm(context.Context) {}
func (s *sick) Parts() bool          { return false }
func (s *sick) Close() error         { return nil }

// inBubble runs f with a limiter on a sick store, in fake time.
func inBubble(t *testing.T, r float64, burst int, options []option, f func(t *testing.T, l *Limiter, s *sick)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := with(append([]option{quiet}, options...)...).config()
		c.Limit.Rate, c.Limit.Burst = r, burst
		c.Law.Trip = c.budget
		c.setPlans(ratelimit.Plan{Rate: 1, Burst: 1}, nil)
		s := newSick()
		l := newLimiter(&c, s)
		defer l.Close()
		f(t, l, s)
	})
}

// timed takes once and says how long that took.
func timed(l *Limiter, key string) (ratelimit.Decision, time.Duration) {
	from := time.Now()
	d := take(l, key, 1, 0)
	return d, time.Since(from)
}

func TestOnlyTheFirstRequestWaitsForAStoreThatHangs(t *testing.T) {
	inBubble(t, 1000, 1000, nil, func(t *testing.T, l *Limiter, s *sick) {
		s.set("hangs")
		if d, took := timed(l, "a"); !d.OK || d.Source != ratelimit.SourceShare || took != account.FirstPatience {
			t.Errorf("first: %+v after %v", d, took)
		}
		for i := range 100 {
			time.Sleep(7 * time.Millisecond)
			if d, took := timed(l, "a"); !d.OK || d.Source != ratelimit.SourceShare || took != 0 {
				t.Fatalf("request %d: %+v after %v", i, d, took)
			}
		}
	})
}

func TestThoseWhoComeTogetherWaitTogether(t *testing.T) {
	inBubble(t, 1000, 1000, nil, func(t *testing.T, l *Limiter, s *sick) {
		s.set("hangs")
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				delay := time.Duration(i) * 3 * time.Millisecond
				time.Sleep(delay)
				if _, took := timed(l, "a"); took != max(0, account.FirstPatience-delay) {
					t.Errorf("the one that came at %v waited %v", delay, took)
				}
			})
		}
		wg.Wait()
	})
}

func TestNewKeysDoNotWaitOnceTheStoreIsKnownToBeAway(t *testing.T) {
	inBubble(t, 1000, 1000, nil, func(t *testing.T, l *Limiter, s *sick) {
		s.set("hangs")
		waited := 0
		for i := range 50 {
			if _, took := timed(l, fmt.Sprint(i)); took > 0 {
				waited++
			}
		}
		if st := l.Snapshot(); waited > 4 || waited < account.TripRow || st.State != account.Degraded.String() || st.Why != account.WhyTimeout.String() {
			t.Errorf("%d new keys waited: %+v", waited, st)
		}
	})
}

func TestOutageRunsItsCourse(t *testing.T) {
	var lines bytes.Buffer
	log := logger(slog.New(slog.NewTextHandler(&lines, nil)))
	inBubble(t, 10, 100, []option{log}, func(t *testing.T, l *Limiter, s *sick) {
		s.mu.Lock()
		s.peers = 4
		s.mu.Unlock()
		if got := admit(l, "a", 60); got != 60 {
			t.Fatal(got)
		}
		time.Sleep(time.Second) // peers are known
		s.set("refuses")
		for i := range 2 { // the first finds out
			time.Sleep(10 * time.Second)
			got := admit(l, "a", 100)
			// At most a quarter of the burst is known to be left when it finds out.
			if i == 0 && (got < 10 || got > 25) || i == 1 && (got < 24 || got > 26) {
				t.Errorf("round %d: %d admitted", i, got)
			}
		}
		if p := l.Policy(ratelimit.Key{ID: "a"}); p.Rate != 2.5 || p.Burst != 25 {
			t.Errorf("in force: %+v", p)
		}
		if text, ok := l.Health(); ok || !strings.Contains(text, "refused") {
			t.Errorf("health: %q", text)
		}
		s.set("")
		s.alone() // the store lost its data: nobody may believe to be alone
		time.Sleep(3 * time.Second)
		if st := l.Snapshot(); st.State != account.Shared.String() || st.Peers != 4 {
			t.Errorf("%+v", st)
		}
		admit(l, "a", 1)
		time.Sleep(time.Second)
		if d := s.debited(); d < 25*account.Micro || d > 100*account.Micro {
			t.Errorf("debited %d tokens", d/account.Micro)
		}
		time.Sleep(10 * time.Second)
		if st := l.Snapshot(); st.Degraded || st.Peers != 1 || st.Changes != 3 {
			t.Errorf("%+v", st)
		}
	})
	if n := strings.Count(lines.String(), "\n"); n != 2 {
		t.Errorf("%d log lines:\n%s", n, lines.String())
	}
}

func TestOutagePolicies(t *testing.T) {
	for o, want := range map[ratelimit.Fail]ratelimit.Source{ratelimit.FailOpen: ratelimit.SourceOpen, ratelimit.FailClosed: ratelimit.SourceClosed} {
		inBubble(t, 1, 10, []option{onOutage(o)}, func(t *testing.T, l *Limiter, s *sick) {
			s.set("refuses")
			admit(l, "a", 5)
			d := take(l, "a", 1, 0)
			if d.Source != want || d.OK != (o == ratelimit.FailOpen) || !d.OK && d.Wait < time.Second {
				t.Errorf("%v: %+v", o, d)
			}
		})
	}
}

func TestAFlapMintsNothing(t *testing.T) {
	inBubble(t, slow, 100, nil, func(t *testing.T, l *Limiter, s *sick) {
		total := 0
		for i := range 40 {
			s.set([]string{"", "refuses"}[i%2])
			total += admit(l, "a", 30)
			time.Sleep(2 * time.Second)
		}
		if total > 101 {
			t.Errorf("40 flaps admitted %d of burst 100", total)
		}
	})
}

func TestProbesAreFewAndSpread(t *testing.T) {
	inBubble(t, 1000, 100, nil, func(t *testing.T, l *Limiter, s *sick) {
		s.set("hangs")
		for i := range 200 {
			take(l, fmt.Sprint(i), 1, 0)
		}
		s.mu.Lock()
		before := s.calls
		s.mu.Unlock()
		for range 3000 {
			time.Sleep(10 * time.Millisecond)
			take(l, "a", 1, 0)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if n := s.calls - before; n > 90 { // in 30 s: a beat every 2 s, a probe every 0.6 s
			t.Errorf("%d calls to a store that is away", n)
		}
	})
}

func TestNothingRunsBeforeTheFirstTakeNorAfterClose(t *testing.T) {
	inBubble(t, 1000, 100, nil, func(t *testing.T, l *Limiter, s *sick) {
		time.Sleep(time.Minute)
		if s.calls != 0 {
			t.Errorf("%d calls before the first request", s.calls)
		}
		admit(l, "a", 10)
		time.Sleep(time.Minute)
		l.Close()
		synctest.Wait()
		before := s.calls
		time.Sleep(time.Minute)
		if s.calls != before {
			t.Errorf("%d calls after Close", s.calls-before)
		}
	})
}

func TestHotPathAllocatesNothing(t *testing.T) {
	s := newSick()
	c := Options{}.config()
	c.Limit, c.log = account.Limit{Rate: 1e6, Burst: 1e6}, nil
	c.setPlans(ratelimit.Plan{Rate: 1, Burst: 1}, nil)
	l := newLimiter(&c, s)
	defer l.Close()
	key, ctx := ratelimit.Key{Space: "key", ID: "a"}, context.Background()
	l.Take(ctx, time.Now(), key, 1, 0)
	e := l.table.find(key)
	e.mu.Lock()
	stock(e, 1e6)
	e.mu.Unlock()
	now := time.Now()
	if n := testing.AllocsPerRun(1000, func() { l.Take(ctx, now, key, 1, 0) }); n != 0 {
		t.Errorf("%v allocations for a slot", n)
	}
}

// stock gives e a lease of n slots.
func stock(e *entry, n int) {
	r := e.account.Ask(0, n, 1, 0)
	e.account.Apply(0, 0, r, account.Reply{
		Granted: n, Before: int64(n) * account.Micro, Multiplier: 1, Limit: account.Limit{Rate: 1e6, Burst: math.MaxInt32},
	}, account.View{Peers: 1})
}
