// Package outbound is the client side: it keeps the calls a service makes within
// what the other side allows, follows it when that changes, and never takes a
// throttle for a fault.
//
//	client := &http.Client{Transport: outbound.MustNew(outbound.Options{
//		Rate: ratelimit.PerKey(100, 20), // the quota, shared by all who use the client
//	})}
//
// # The order
//
//	caller ─► retrier ─► attempter ─► breaker ─► pacer ─► sender ─► base
//	            │            │                     │
//	            │            └─ the verdict ──────►│ the rate, the pause
//	            └─ retry budget                    └─ a token and a slot per attempt
//
// The files in the order in which a call meets them: transport.go, retry.go,
// decide.go, attempt.go with breaker.go, then package pacer (operation.go, line.go),
// flight.go, body.go, classify.go with package verdict, and pacer/report.go.
//
// The thing counted is the thing the quota counts. So the pacer stands below
// everything that can turn one call into several: each retry, each redirect that
// http.Client follows, each resend that net/http makes by itself on a dead
// connection pays (the last with [Options].CountResends). What never left is not
// charged: a refused connection, a breaker that is open.
//
// Each end of an attempt is judged once, above the breaker and below the retry: what
// the breaker refused is no answer. The breaker sees attempts, not calls, and never
// counts a throttle as a failure. The retry is outermost, so that a retry waits for
// its turn like every other attempt.
//
// Package pacer needs no HTTP: a middleware of an SDK can use it alone.
//
// # Verdicts
//
// [Classify] says what the end of an attempt means, and everything else follows:
//
//	verdict          rate        pause     retry            breaker     clean-up
//	OK               -           -         -                success     -
//	Throttled        × 0.7       the hint  after the hint   excluded    never
//	Overloaded       × 0.5 (1)   hint (2)  after the hint   excluded    never
//	QuotaExhausted   -           hint, 1m  no               excluded    never
//	Conflict         -           -         soon             success     never
//	Transient        -           -         if idempotent    failure     never
//	Permanent        -           -         no               success     may
//	LocalRefusal     -           -         no               excluded    never
//	Canceled         -           -         no               excluded    never
//
// (1) A bare 503, without hint or reason, cuts only when a tenth of the answers are
// such: one instance in trouble is no reason to stay away from the others.
// (2) A Headgate gate sheds the lowest levels first, so the hint of its 503 keeps
// away the level of the call and those below.
//
// Clean-up is what [IsConclusive] answers: whether a failure is about the thing that
// was asked for. [IsThrottle] is the other half of the question. "Excluded" needs a
// breaker that knows the notion; see [Breaker].
//
// # Laws
//
// The rate in force is m·R: R the limiter's rate, m the multiplier. One throttle
// cuts m, once per epoch of max(1 s, hint) however many answers say the same, and m
// returns by 5 % of R per second, carefully up to where the server last objected.
// A token is taken at the moment of sending, never ahead, so in any window of
// length T at most burst + R·T calls leave, whatever pauses and cuts came before.
// With a Rate of nil R is not known until the first throttle; it is then the rate
// measured, at least 10/s, and let go again when twice that met no objection.
//
// A hint pauses all callers who share the key, or the whole service if that is what
// it is about. It is never shortened: a call that cannot wait that long returns the
// response at once, because no sleep is worth it that cannot end in an attempt. It is
// spread upwards only: the pause by U(0, clamp(hint/10, 50 ms, 5 s)), so that processes
// do not return together, and each call that was refused by U(0, clamp(0.4·hint, 50 ms,
// 5 s)), or half of what is left before its deadline, so that calls do not. Calls that
// the pause held back leave over the same span, at a rate that grows with the square of
// the time, from 50/s.
//
// Backoff without a hint is full jitter, U(0, min(20 s, base·2ⁿ⁻¹)) plus a floor of
// 10 ms. The base is 50 ms after a fault, 500 ms after an overload, 1 s after a
// throttle, and 2 s after a Headgate gate's 503, which speaks for all callers.
//
// Retries are bounded by Finagle's budget: those of the last 10 s may not exceed
// 20 % of the calls + 10 per second.
//
// # Services that run Headgate
//
// A gate says in Headgate-Reason why it refused. Its 429 is one caller's rate for
// one operation; its 503 concerns all of the service, and all callers stand back
// together, instead of each finding out alone. A service that passes
// such a refusal on to its own caller marks it with [Relay], so that one refusal
// deep in a chain is retried in one place and not once per hop.
//
// # Known limits
//
// The in-process ceiling is one process'. For a fleet, give Rate a limiter that is
// shared (package redisrate): it carries pause and multiplier to the others, and the
// law here steps back. Predictions of waiting time assume that no call of a higher
// level arrives; a call that is overtaken leaves at its deadline instead of at once.
// The time limit of an attempt ends with the answer's header. What net/http sends
// again by itself (over HTTP/2 also after REFUSED_STREAM, and after a GOAWAY that did
// not take the request) is charged with CountResends; why it was refused is not shown,
// so that the rate cannot follow it.
package outbound
