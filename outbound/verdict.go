package outbound

import (
	"time"

	"github.com/headgate-go/headgate/shed"
)

// Verdict says what the end of one attempt means for whoever paces, retries,
// breaks the circuit or cleans up. It is a plain value.
type Verdict struct {
	Kind   Kind
	Scope  Scope         // whom a throttle or an overload concerns
	Reason shed.Reason   // what a Headgate gate said; Admitted when none spoke
	Hinted bool          // the server said how long to stay away
	Hint   time.Duration // for how long, when Hinted; zero means: come back at once
	Final  bool          // the server, or a hop between, asked not to retry
}

// Refused reports whether the server turned the attempt away before working on it,
// so that sending it again cannot do anything twice, whatever its method.
func (v Verdict) Refused() bool { return v.Kind == Throttled || v.Kind == Overloaded }

// Kind is what an answer, or the lack of one, amounts to. The list is closed, for
// metrics and logs.
type Kind uint8

// The kinds.
const (
	OK             Kind = iota // answered: 1xx to 3xx, and everything that is nobody's fault
	Throttled                  // the server asks us to send less
	Overloaded                 // the server cannot take more at present (503, 529)
	QuotaExhausted             // a long quota or a budget is spent: not worth asking again soon
	Conflict                   // somebody else holds the object: try again shortly, at the same rate
	Transient                  // a fault that may pass: 500, 502, 504, a broken connection
	Permanent                  // asking again gives the same answer: most of 4xx
	LocalRefusal               // never sent: refused on this side
	Canceled                   // the caller gave up or its deadline passed
)

// KindCount is the number of kinds, for arrays indexed by Kind.
const KindCount = int(Canceled) + 1

var kindNames = [KindCount]string{
	"ok", "throttled", "overloaded", "quota-exhausted", "conflict",
	"transient", "permanent", "local-refusal", "canceled",
}

// String returns the kind's name in metrics and logs.
func (k Kind) String() string {
	if int(k) >= KindCount {
		return "unknown"
	}
	return kindNames[k]
}

// Scope says how far a throttle or an overload reaches.
type Scope uint8

const (
	// ScopeOperation concerns the operation that was called: one key.
	ScopeOperation Scope = iota
	// ScopeService concerns everything behind the same service: all keys that
	// share a Space. An account-wide limit is one, a 503 of a Headgate gate is
	// another.
	ScopeService
)

// String returns the scope's name.
func (s Scope) String() string {
	if s == ScopeService {
		return "service"
	}
	return "operation"
}
