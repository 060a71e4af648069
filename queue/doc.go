// Package queue decides which work waits for a slot, for how long, and what goes next.
//
// [Slots] is what programs use: take a slot, wait for one within bounds, give it
// back. It is a lock and a wait around a [Core], which holds all the rules and is
// pure: the time is an argument, so programs in virtual time drive it directly.
// [Queue] is the same order for work behind a handler. Read on in core.go, arrival.go
// (what comes in), line.go (what goes next, over the levels), class.go (over the
// callers of a level) and share.go (what they have had).
//
// # What comes in
//
// With n waiting and all slots taken, a newcomer joins if these hold
// (entry.Check decides, from these figures):
//
//   - There is a place: n is under the bound (by default twice the limit in force,
//     at least 2048), and the classes up to its own fill less than their share of it.
//     The share binds only while a higher class waits. Or another waiter yields.
//   - Its predicted wait w = (ahead + 1) / X [s] is at most its longest stay [s],
//     where X [1/s] is the rate at which slots came free while all were taken.
//   - Where higher levels ask for λ slots a second, measured, they are served first as
//     well: once newcomers have found no slot for a quarter of a stay, w = (ahead + 1) /
//     (X − λ − X/20), and it has to fit in half the stay. Where that is not positive the
//     newcomer is refused at once. The lowest level that waits counts on X/20 for its own
//     line, the turns that are always its own.
//   - A level that asks for λ₁ itself is short of slots while λ + λ₁ > X; beside levels
//     below, where it exceeds X by two standard deviations of the two rates (1.5 X). Its
//     line is full in any case, and only decides how long those wait who are refused in the
//     end. So w has to fit in a quarter of the stay (or be behind fewer than four, which
//     keep the line from running dry); for the highest level in the time of one round,
//     limit / X, if that is more, since slots that come free together would else go to
//     lower levels.
//   - The stay is no longer than what its deadline leaves once the median service time
//     [s] of its level is taken off.
//
// Work whose deadline has passed, or leaves less than the median service time, gets
// no slot even when one is free; the median is scaled down while fewer are in flight
// than when it was taken. Without evidence for X or the service time, neither
// refuses any work; a median that would refuse is put to the test by one request at
// a time, so that an old slow estimate cannot keep itself alive (see entry.Meter).
//
// # What goes next
//
// What a service runs out of is slot time, so that is what is shared. One total order:
//
//   - Classes go strictly by rank, except that the lowest class that waits gets a
//     twentieth of the slot time while it does: low work is slowed down, not shut out.
//   - A slot that was taken while a waiter of the highest class waiting ran out of time
//     is kept for the next arrival of that class, for one mean gap between its arrivals,
//     within 2 % of the slot time: a stay shorter than the work does not hand the slots
//     to lower classes (see entry.Hold).
//   - Inside a class the caller that has had least slot time for its weight goes next.
//   - Inside a caller the oldest goes first until it has waited half its longest
//     stay; where its level is known to get all it asks for, half of what its deadline
//     leaves, or the whole of its longest stay. From then on the newest goes first: under lasting overload the oldest
//     are lost in any case, and serving them in order would only make every
//     wait as long as the longest (adaptive LIFO). While the oldest goes first
//     no work overtakes within a caller.
//
// # Virtual time
//
// For a caller f of weight w (by default 1) its virtual time is
//
//	v(f) = ( Σ slot time of ended work + Σ max(estimate, time held) of running work ) / w   [s]
//
// so that work counts with its estimate as soon as it is dispatched, with what it
// takes once that is more, and with what it took when it has ended. The estimate is
// the mean of the latest work of its route or of its caller, whichever has been closer,
// else of its level; without any, 1 ms, which makes turns equal in requests. Of the callers that wait, the one with
// the least v goes next; of equals, the one that came or was served longest ago.
//
// The present V is the largest v that a dispatch has found. A caller that begins to
// wait has v = max(v, V + e/w), e the estimate of its work: no credit for having been
// away, and one piece behind, as though it had just been served. So V moves on with
// every round, and newcomers without end keep none waiting for good. A caller that
// leaves with v > V is in debt and remembered until V has passed it, or until nothing
// of its class waits or holds a slot that it waited for. Work that finds a slot free
// while none waits is charged to no caller.
//
// The two sides between levels, the lowest that waits and all above, are shared in the
// same way with weights of 1 and 19.
//
// The bound. Let L be the number of slots and M the largest piece of a caller's work, or
// estimate of one if that is larger, in slot time. In every interval in which callers f
// and g of a class both wait, the slot time S that they get differs by at most
//
//	| S(f)/w(f) − S(g)/w(g) | ≤ (L + 1) · ( M(f)/w(f) + M(g)/w(g) )
//
// Proof. Split v = u + x: u is slot time received, ended or running, and x what the
// estimates of running work still exceed it by, both over w. Let D = u(f) − u(g), and
// let r be what running work will yet receive, over w. At a dispatch of f, v(f) ≤ v(g),
// so D ≤ x(g) − x(f). Until the next one f receives at most r(f), the new piece
// included, and g may only gain; so since f's latest dispatch
//
//	D ≤ x(g) + ( r(f) − x(f) )
//
// and in the same way −D ≤ x(f) + ( r(g) − x(g) ) since g's. Before the first dispatch
// of g in the interval, take the latest one earlier: f began to wait at V + e(f)/w(f)
// or more, and V is no less than the v which that dispatch found, so the same holds
// with one estimate of f more. Over the interval D rises by no more than the sum. Each of
// the slots counts in x with at most an estimate and in r − x with at most what its
// piece takes beyond its estimate, together at most M while a caller's estimates stay
// as they are, and only the piece just dispatched counts with both: L+1 pieces of each
// at most. If f is not dispatched at all, it receives at most r(f) ≤ L·M(f)/w(f). ∎
//
// The property test plays callers that come and go, with estimates that are wrong
// either way, and holds every pair in every interval to the bound. What is dispatched
// cannot be taken back, so no rule does without the L; between callers whose estimates
// are right the differences seen are far smaller, since x runs down on both sides.
//
// # Wide work
//
// Work may take several slots at once. All accounts are in slots: the limit, the
// reserve, what is charged, and what the law is told, for which wide work is as many
// narrow pieces that end together. When its turn has come and too few slots are free,
// those that are stay free for it and the turn stays its own, in its class. Meanwhile
// other work may fill the gap if it is expected to end before enough of the work that
// held slots at that turn has; work that is late is expected to be late by as much
// again. Nothing fills the gap once that work has ended, so the wide one starts within
// two of the longest pieces. What fills a gap is charged, but comes on top of the bound
// above: no other work could have used those slots. Critical may use what is left of its
// reserve in any case. Work wider than the limit that its level may use gets all of it,
// alone.
//
// # What is ahead
//
// A newcomer of caller B has before it the slot time
//
//	ahead(B) = all of the higher classes + Σ over callers t of its class of min(Q(t), w(t) · s)
//
// where Q is what a caller's waiters are estimated to take and s = (v(B) − V) + Q(B)/w(B)
// is how much B will have had, by weight, when the newcomer's turn comes. So one
// caller's backlog adds to the wait of another's first request no more than one piece
// of that. For the predicted wait it is counted in mean pieces, since X is. The sum is
// kept by spans Q/w in steps of a quarter of an octave. While newest goes first it is
// an upper bound.
//
// # What yields
//
// When the queue is full, the work that this order would serve last goes, the newcomer
// included. In a lower class that is the last-ranked of the caller with the largest
// v + Q/w; in the newcomer's own class the same, if it begins, in virtual time, no
// earlier than the newcomer would end (else the two would change places for ever); and
// once newest goes first, the oldest of its own caller. A bound in bytes yields by the
// same order.
//
// # Cost
//
// With n waiting, to come, to be dispatched, to leave and to be evicted cost
// O(log n) each, with no allocation besides the waiter itself, which is used again;
// a dispatch looks again at callers whose running work has outlasted its estimate and
// whose turn it would be, and at all work in flight while a wide request has its turn. Nothing polls: one timer serves all stays.
//
// # Sources
//
// Start tags and the bound for one server: Goyal, Vin, Cheng, "Start-time fair
// queueing" (1996); for several, Jin, Chase, Kaur, "Interposed proportional sharing for
// a storage service utility" (2004). Estimates corrected at the end: Kubernetes' API
// Priority and Fairness. The rule for newcomers, work that outlasts its estimate and
// the proof above are our own. Newest first under overload: adaptive LIFO, as described
// by Maurer, "Fail at scale" (ACM Queue, 2015). Predicted wait: Little, "A proof for the
// queuing formula L = λW" (1961).
//
// # Known limits
//
// While newest goes first, ahead counts the newcomer's own caller although it
// would go before them. [Queue] does not know how long its work takes: there, turns are
// equal in pieces. A Slots that has had waiters inside a testing/synctest bubble
// belongs to that bubble, as its channels do.
package queue
