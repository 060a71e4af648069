package redisrate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// How Slots keeps its permits, and finds out that the store is back.

// renew prolongs what is held and enters what was taken during an outage. It runs
// every third of a permit's life, and sooner while the store is away.
func (s *Slots) renew() {
	n, beatErr := s.store.beat(s.conf.budget, "slots:"+s.conf.name, s.peers.id, max(beatLife, s.conf.ttl))
	if beatErr == nil {
		s.peers.heard(n)
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
		s.away, s.why, s.tries = false, WhyNothing, 0
		s.renewedLocked(sent, old, done, young)
	}
	s.lapseLocked(time.Now())
	s.againLocked()
}

func (s *Slots) againLocked() {
	if s.closed {
		return
	}
	wait := s.conf.ttl / 3
	if s.away {
		wait = min(wait, retryDelay(s.tries))
	}
	s.tick.Reset(wait)
}

// tokensLocked lists what is held, of the kind the store knows or does not know.
func (s *Slots) tokensLocked(known bool) (tokens []string) {
	for t, p := range s.held {
		if p.known == known {
			tokens = append(tokens, t)
		}
	}
	return tokens
}

func (s *Slots) renewedLocked(sent time.Time, old []string, done []bool, young []string) {
	until := sent.Add(s.conf.ttl)
	for i, t := range old {
		if p := s.held[t]; p != nil && done[i] {
			p.until = until
		} else if p != nil {
			p.lose()
			p.known = false // taken in again: the work goes on, whoever has the slot
		}
	}
	for _, t := range young {
		if p := s.held[t]; p != nil {
			p.known, p.until = true, until
		}
	}
}

// lapseLocked finds permits that the store may have given to others.
func (s *Slots) lapseLocked(now time.Time) {
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
func (s *Slots) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := !s.away
	s.away, s.why = true, whyOf(err)
	s.tries++
	if first && !s.closed && s.tick != nil {
		s.tick.Reset(retryDelay(0))
	}
}

func retryJitter(d time.Duration) time.Duration { return rand.N(d) }

// call runs the script and returns what became of each token.
func (s *Slots) call(ctx context.Context, op string, tokens ...string) ([]bool, error) {
	for range 2 { // a server with another clock refuses the first
		used, done, err := s.store.slots(ctx, op, s.conf, tokens)
		if errors.Is(err, errLate) {
			continue
		}
		if err == nil {
			s.mu.Lock()
			s.inUse = used
			s.mu.Unlock()
		}
		return done, err
	}
	return nil, errLate
}

func (s *redisStore) slots(ctx context.Context, op string, c *slotsConfig, tokens []string) (used int, done []bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.budget)
	defer cancel()
	args := []any{op, c.most, c.ttl.Microseconds(), s.deadline()}
	for _, t := range tokens {
		args = append(args, t)
	}
	cmd, err := s.run(ctx, slotsScript, slotsKey(c.name), args...)
	if err != nil {
		return 0, nil, err
	}
	n, err := cmd.Int64Slice()
	if err != nil || len(n) < 2 {
		return 0, nil, fmt.Errorf("redisrate: reply %v is not the script's", cmd.Val())
	}
	s.heard(n[1])
	if n[0] < 0 {
		return 0, nil, errLate
	}
	if len(n) != 2+len(tokens) {
		return 0, nil, fmt.Errorf("redisrate: reply %v is not the script's", cmd.Val())
	}
	for _, ok := range n[2:] {
		done = append(done, ok == 1)
	}
	return int(n[0]), done, nil
}

func (s *redisStore) beat(budget time.Duration, name, id string, life time.Duration) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), budget)
	defer cancel()
	return s.Beat(ctx, name, id, life, false)
}

// SlotsStats is a cap at one moment.
type SlotsStats struct {
	Name  string
	Cap   int
	InUse int  // in all processes, as last heard
	Held  int  // by this process
	Peers int  // processes that share the cap; 0 until the first beat was answered
	Away  bool // the store is away
	Why   Why
}

// Snapshot returns the state of the cap.
func (s *Slots) Snapshot() SlotsStats {
	st := SlotsStats{Name: s.conf.name, Cap: s.conf.most}
	if s.bad != nil {
		return st
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st.InUse, st.Held, st.Peers, st.Away, st.Why = s.inUse, len(s.held), s.peers.count(), s.away, s.why
	return st
}
