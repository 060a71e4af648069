package outbound

import (
	"context"
	"sync/atomic"
)

// Attempts is a job's budget of calls. It counts attempts, not successes: every
// retry, redirect and resend made under its context pays, so that a run in which
// every call fails still ends at its budget. Calls that never left are not counted.
// Once it is spent, every further call is a [*pacer.Refusal] with AttemptsSpent. It is
// safe for concurrent use and shared by all copies of the context.
type Attempts struct {
	limit int64
	used  atomic.Int64
}

// NewAttempts returns a budget of n attempts. With n below 1 nothing is sent.
func NewAttempts(n int) *Attempts { return &Attempts{limit: int64(n)} }

// Context returns a context under which calls through a [Transport] are charged to
// the budget. Of several budgets in one context the innermost counts.
func (a *Attempts) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, attemptsKey{}, a)
}

// Take charges one attempt, for calls that do not go through a Transport. It
// reports false, and charges nothing, when the budget is spent.
func (a *Attempts) Take() bool {
	for {
		n := a.used.Load()
		if n >= a.limit {
			return false
		}
		if a.used.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Used returns how many attempts were made. It may exceed the budget by what
// net/http sent again by itself, which cannot be refused beforehand.
func (a *Attempts) Used() int { return int(a.used.Load()) }

// Left returns how many attempts are left, never below zero.
func (a *Attempts) Left() int { return int(max(0, a.limit-a.used.Load())) }

func (a *Attempts) undo() { a.used.Add(-1) }
func (a *Attempts) owe()  { a.used.Add(1) }

type attemptsKey struct{}

func attemptsFrom(ctx context.Context) *Attempts {
	a, _ := ctx.Value(attemptsKey{}).(*Attempts)
	return a
}
