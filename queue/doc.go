// Package queue decides who waits for a slot, for how long, and who goes next.
//
// [Slots] is what callers use: take a slot, wait for one within bounds, give it
// back. It is a lock and a wait around a [Core], which holds all the rules and is
// pure: the time is an argument, so programs in virtual time drive it directly.
// [Queue] is the same order for work behind a handler.
//
// # Who comes in
//
// With n waiting and all slots taken, a newcomer joins if these hold
// (shed.EntryCheck decides, from these figures):
//
//   - There is a place: n is under the bound (by default twice the limit in force,
//     at least 2048), and the classes up to its own fill less than their share of it.
//     The share binds only while a higher class waits. Or somebody yields.
//   - Its predicted wait w = (ahead + 1) / X [s] is at most its longest stay [s],
//     where X [1/s] is the rate at which slots came free while all were taken.
//   - Where higher levels arrive at a rate λ [1/s], measured, they are served first as
//     well: once newcomers have found no slot for half a stay, w = (ahead + 1) / (X − λ −
//     X/20), and it has to fit in half the stay. Where that is not positive the newcomer
//     is refused at once. The lowest level that waits counts on X/20 for its own line,
//     the turns that are always its own.
//   - w also fits in what its deadline leaves once the median service time [s] of
//     its level is taken off.
//
// Work whose deadline has passed, or leaves less than the median service time, gets
// no slot even when one is free; the median is scaled down while fewer are in flight
// than when it was taken. Without evidence for X or the service time, neither
// refuses anybody; a median that would refuse is put to the test by one request at
// a time, so that an old slow estimate cannot keep itself alive (see shed.Meter).
//
// # Who goes next
//
// One total order:
//
//   - Classes go strictly by rank, except that every 20th dispatch is the lowest
//     waiting class's: low work is slowed down, not shut out.
//   - A slot that was taken while a waiter of the highest class waiting ran out of time
//     is kept for the next arrival of that class, for one mean gap between its arrivals,
//     within 2 % of the slot time: a stay shorter than the work does not hand the slots
//     to lower classes (see shed.Hold).
//   - Inside a class callers take equal turns, in a ring. A caller that comes gets
//     the last turn; there is no credit for having been away. This is max-min fair
//     in requests: nobody's share grows while somebody with a smaller one waits.
//   - Inside a caller the oldest goes first until it has waited half its longest
//     stay. From then on the newest goes first: under lasting overload the oldest
//     are lost in any case, and serving them in order would only make everybody's
//     wait as long as the longest (adaptive LIFO). While the oldest goes first
//     nobody overtakes within a caller.
//
// In this order a newcomer of caller B has before it
//
//	ahead(B) = n of the higher classes + Σ over callers t of its class of min(n(t), n(B) + 1)
//
// waiters, so that one caller's backlog adds at most one to the wait of another's
// first request. The sum is a prefix sum over the number of callers with at least j
// waiters, kept in a Fenwick tree. While newest goes first it is an upper bound.
//
// # Who yields
//
// When the queue is full, whoever this order would serve last goes, the newcomer
// included. In a lower class that is the last-ranked of its largest caller; in the
// newcomer's own class the same, but only for a caller with at least two waiters
// fewer (with one fewer the two would change places for ever); and once newest goes
// first, the oldest of its own caller. A bound in bytes yields by the same order.
//
// # Cost
//
// With n waiting, to come, to be dispatched, to leave and to be evicted cost
// O(log n) each, with no allocation besides the waiter itself, which is used again.
// Nobody polls: one timer serves all stays.
//
// # Sources
//
// Equal turns: Nagle, "On packet switches with infinite storage" (RFC 970), and
// Demers, Keshav, Shenker, "Analysis and simulation of a fair queueing algorithm"
// (1989). Newest first under overload: adaptive LIFO, as described by Maurer, "Fail
// at scale" (ACM Queue, 2015). Predicted wait: Little, "A proof for the queuing
// formula L = λW" (1961).
//
// # Known limits
//
// A turn is one request, whatever it costs to serve. While newest
// goes first, ahead counts the newcomer's own caller although it would go before
// them. A Slots that has had waiters inside a testing/synctest bubble belongs to
// that bubble, as its channels do.
package queue
