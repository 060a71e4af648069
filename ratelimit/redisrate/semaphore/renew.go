package semaphore

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/account"
	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/store"
)

// How a Semaphore keeps its permits, and finds out that the store is back.

// renew prolongs what is held and enters what was taken during an outage. It runs
// every third of a permit's life, and sooner while the store is away.
func (s *Semaphore) renew() {
	ctx, cancel := context.WithTimeout(context.Background(), s.conf.budget)
	n, beatErr := s.store.Beat(ctx, "slots:"+s.conf.name, s.peers.ID, max(account.BeatLife, s.conf.ttl), false)
	cancel()
	if beatErr == nil {
		s.peers.Heard(n)
	}
	s.mu.Lock()
	old, young := s.tokensLocked(true), s.tokensLocked(false)
	s.mu.Unlock()
	sent := time.Now()
	done, err := s.call(context.Background(), "renew", old...)
	if err == nil && len(young) > 0 {
		_, err = s.call(context.Background(), "adopt", young...)
	}
	if err != nil {
		s.fail(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.away, s.why, s.tries = false, account.WhyNothing, 0
		s.renewedLocked(sent, old, done, young)
	}
	s.lapseLocked(time.Now())
	s.againLocked()
}

func (s *Semaphore) againLocked() {
	if s.closed {
		return
	}
	wait := s.conf.ttl / 3
	if s.away {
		wait = min(wait, account.RetryDelay(s.tries))
	}
	s.tick.Reset(wait)
}

// tokensLocked lists what is held, of the kind the store knows or does not know.
func (s *Semaphore) tokensLocked(known bool) (tokens []string) {
	for t, p := range s.held {
		if p.known == known {
			tokens = append(tokens, t)
		}
	}
	return tokens
}

func (s *Semaphore) renewedLocked(sent time.Time, old []string, done []bool, young []string) {
	until := sent.Add(s.conf.ttl)
	for i, t := range old {
		if p := s.held[t]; p != nil && done[i] {
			p.until = until
		} else if p != nil {
			p.lose()
			p.known = false // taken in again: the work goes on, whichever process has the slot
		}
	}
	for _, t := range young {
		if p := s.held[t]; p != nil {
			p.known, p.until = true, until
		}
	}
}

// lapseLocked finds permits that the store may have given to others.
func (s *Semaphore) lapseLocked(now time.Time) {
	for _, p := range s.held {
		if p.known && now.After(p.until) {
			p.lose()
		}
	}
}

func (p *Permit) lose() {
	if !p.closed {
		p.closed = true
		close(p.lost)
	}
}

// fail makes the outage policy decide until a renewal is answered.
func (s *Semaphore) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := !s.away
	s.away, s.why = true, store.WhyOf(err)
	s.tries++
	if first && !s.closed && s.tick != nil {
		s.tick.Reset(account.RetryDelay(0))
	}
}

func retryJitter(d time.Duration) time.Duration { return rand.N(d) }

// call runs the script and returns what became of each token.
func (s *Semaphore) call(ctx context.Context, op string, tokens ...string) ([]bool, error) {
	for range 2 { // a server with another clock refuses the first
		used, done, err := s.store.Permits(ctx, op, s.conf.name, s.conf.most, s.conf.ttl, tokens)
		if errors.Is(err, store.ErrLate) {
			continue
		}
		if err == nil {
			s.mu.Lock()
			s.inUse = used
			s.mu.Unlock()
		}
		return done, err
	}
	return nil, store.ErrLate
}

// Snapshot is a cap at one moment.
type Snapshot struct {
	Name  string
	Cap   int
	InUse int    // in all processes, as last heard
	Held  int    // by this process
	Peers int    // processes that share the cap; 0 until the first beat was answered
	Away  bool   // the store is away
	Why   string // what was wrong with the store; empty while it answers
}

// Snapshot returns the state of the cap.
func (s *Semaphore) Snapshot() Snapshot {
	st := Snapshot{Name: s.conf.name, Cap: s.conf.most}
	if s.bad != nil {
		return st
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st.InUse, st.Held, st.Peers, st.Away, st.Why = s.inUse, len(s.held), s.peers.Count(), s.away, s.why.String()
	return st
}
