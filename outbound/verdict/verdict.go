// Package verdict says what the end of an attempt means: an answer by its status,
// header and body, an error by its type. It is pure: it reads what it is given, and
// knows neither net/http nor a clock. Package outbound applies it to HTTP, package
// pacer acts on it.
package verdict

import (
	"errors"
	"fmt"
	"time"

	"github.com/headgate-go/headgate/shed"
)

// Verdict says what the end of one attempt means for pacing, for retries, for a
// circuit breaker and for clean-up. It is a plain value; the zero Verdict is OK.
type Verdict struct {
	Kind Kind

	// ServiceWide says that a throttle or an overload concerns all operations of
	// the service (all keys that share a Space), not only the one that was called.
	// A limit of the account does, and most 503s of a Headgate gate.
	ServiceWide bool

	Reason shed.Reason   // given by a Headgate gate; Admitted when there was none
	Hinted bool          // the server said how long to stay away
	Hint   time.Duration // for how long, when Hinted; zero means: come back at once
	Final  bool          // the server, or a service between, asked not to retry
}

// Refused reports whether the server turned the attempt away before working on it,
// so that sending it again cannot do anything twice, whatever its method.
func (v Verdict) Refused() bool { return v.Kind == Throttled || v.Kind == Overloaded }

// Kind is what an answer, or the lack of one, amounts to. The list is closed, for
// metrics and logs.
type Kind uint8

// The kinds.
const (
	OK             Kind = iota // answered: 1xx to 3xx
	Throttled                  // the server asks for fewer calls
	Overloaded                 // the server cannot take more at present (503, 529)
	QuotaExhausted             // a long quota or a budget is spent: not worth asking again soon
	Conflict                   // another call holds the object: try again shortly, at the same rate
	Transient                  // a fault that may pass: 500, 502, 504, a broken connection
	Permanent                  // asking again gives the same answer: most of 4xx
	LocalRefusal               // never sent: refused on this side
	Canceled                   // the caller cancelled, or its deadline passed
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

// AsksForLess reports whether the kind is about the rate of calls: a throttle, an
// overload or a quota that is spent.
func (k Kind) AsksForLess() bool { return k == Throttled || k == Overloaded || k == QuotaExhausted }

// ErrLocal matches, through errors.Is, every refusal made on this side: the call
// was not sent, and the server knows nothing of it.
var ErrLocal = errors.New("outbound: not sent")

// Error is the end of a call that did not go well, with its verdict.
type Error struct {
	Verdict Verdict
	Status  int   // of the response, zero when there was none
	Err     error // the transport's error, nil when there was a response
}

// Error describes the failure.
func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("outbound: %s: %v", e.Verdict.Kind, e.Err)
	}
	return fmt.Sprintf("outbound: %s (status %d)", e.Verdict.Kind, e.Status)
}

// Unwrap returns the transport's error, or nil.
func (e *Error) Unwrap() error { return e.Err }
