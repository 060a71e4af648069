// Package admission is the gate: it decides, at the edge and before any work
// starts, which requests a service takes, which wait, and which are turned away
// with an answer the client can act on.
//
// One request takes these steps, in this order, and ends at the first that says no:
//
//	identify   who is calling?                    Options.Identify, ClientIP
//	rate       may this caller send this much?    Options.Rate, Anonymous, Quota   429
//	caps       route's and caller's own           Cap, Stream, CallerCap           503, 429
//	capacity   is there a slot?                   Pool.Limit, CriticalReserve              503
//	wait       is it worth waiting?               Pool.MaxWait, MaxWaiting                 503
//	run        the handler, with what is left of the deadline
//
// 429 is policy: this caller's quota, with Retry-After when its limit would admit
// it. 503 is overload: our capacity, with Retry-After from what is really being
// admitted, spread so that those refused do not return together. A caller over its
// own rate gets 429 however full the service is, since the rate is asked first.
//
// # Where it goes
//
// [Gate.At] is the admission point, on the route and behind the router's matching.
// A router runs its outer middleware before it knows the route, so a level can
// only be given there:
//
//	r.With(gate.At(priority.Critical)).Post("/checkout", checkout)
//
// [Gate.Handler] admits everything behind it. Both may meet one request: it is
// decided once, where it is met first. Requests that the router does not match
// never meet At.
//
// # What is kept
//
// A slot taken is given back exactly once however the handler ends: return, panic,
// [net/http.ErrAbortHandler], [runtime.Goexit], hijack. A refusal takes nothing
// from any limit, reads no body, and moves no adaptive signal. A request refused
// for capacity has spent its token, since attempts count, but not its long quota.
// Every visit ends in exactly one [shed.Reason], and they add up.
//
// # What a request costs
//
// An admitted request costs one allocation: an object that is the handler's request,
// its context, its ResponseWriter and the permit at once. A deadline's timer is made at the first call of
// Done. [Gate.Admit], for work without HTTP, costs none.
//
// # Where to read on
//
// The files in the order in which a request meets them:
//
//	options.go   what a service says
//	gate.go      New, the admission points Handler and At, and Admit for work without HTTP
//	routes.go    which route a request belongs to, where the gate is met first
//	route.go     what was said about one route, and its cap
//	serve.go     HTTP in: who asks (package caller), by when (deadline.go), at which level
//	visit.go     the steps, in order: open, rate, caps, slot
//	rate.go      the rate step, and what a caller's plan does
//	request.go   the handler's context, ResponseWriter (internal/writer) and permit
//	admit.go     tickets, permits, rejections (internal/answer has their bytes)
//	event.go     what an observer is told; stats.go: what the gate counts
//	lifecycle.go reload, drain, close
//
// Then package queue.
package admission
