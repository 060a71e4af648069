package redisrate

import (
	"context"
	"testing"
	"time"

	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/redistest"
)

// A process that shares a limit on requests and one on tokens with others.
type seller struct {
	requests, tokens *Limiter
	both             ratelimit.Limiter
}

func newSeller(t *testing.T, s *redistest.Server) seller {
	t.Helper()
	rdb := s.Client(t)
	of := seller{requests: perKey(t, rdb, slow, 5, name("requests")), tokens: perKey(t, rdb, slow, 1000, name("tokens"))}
	of.both = ratelimit.All(of.requests, ratelimit.Counting("tokens", of.tokens))
	return of
}

func (s seller) take(tokens int) ratelimit.Decision {
	var u ratelimit.Units
	u.Set("tokens", tokens)
	return s.both.Take(context.Background(), time.Now(), ratelimit.Key{ID: "a", Units: &u}, 1, 0)
}

// finds reports whether a process that knows nothing yet is given so many tokens.
func finds(t *testing.T, s *redistest.Server, tokens int) bool {
	t.Helper()
	return take(newSeller(t, s).tokens, "a", tokens, 0).OK
}

func TestARefusalByASharedUnitTakesNoSharedRequest(t *testing.T) {
	s := redistest.Start(t)
	one, two := newSeller(t, s), newSeller(t, s)
	if d := one.take(900); !d.OK || d.Policy != "tokens" || d.Remaining != 100 || d.Cost != 900 {
		t.Fatalf("900 of 1,000: %+v", d)
	}
	for range 10 { // more often than there are requests
		if d := two.take(101); d.OK || d.Policy != "tokens" || d.Cost != 101 {
			t.Fatalf("101 of 100: %+v", d)
		}
	}
	if got := admit(two.requests, "a", 9); got != 4 {
		t.Errorf("%d requests left of 5, one was admitted", got)
	}
}

func TestASharedUnitIsSettledForAllProcesses(t *testing.T) {
	for by, left := range map[int]int{-800: 900, 50: 50, 0: 100} {
		s := redistest.Start(t)
		one := newSeller(t, s)
		d := one.take(900)
		d.Settle(time.Now(), "rows", -900) // no limit counts them
		d.Settle(time.Now(), "tokens", by)
		redistest.Eventually(t, 5*time.Second, "the settlement is in the store", func() bool {
			return (by == 0 || calls(one.tokens) > 1) && finds(t, s, left)
		})
		if finds(t, s, 1) {
			t.Errorf("by %d: more than %d are left", by, left)
		}
		if got := admit(newSeller(t, s).requests, "a", 9); got != 4 {
			t.Errorf("by %d: %d requests left of 5, one was admitted", by, got)
		}
	}
}
