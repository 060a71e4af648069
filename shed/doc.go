// Package shed decides how much work is let in: the control laws, and the closed lists
// of outcomes and reasons. Which work is turned away is decided in package queue.
//
// It holds pure decisions: every function takes the time as an argument, and
// nothing here starts a goroutine, takes a lock, or knows HTTP. The lock lives one
// layer up, in package queue. Package shed/pressure is the part that reads the world.
//
// # The question
//
// A service has slots: how many pieces of work may be in flight at once. Too few
// waste what the backend could do. Too many do not make it faster; they queue
// inside it, where they can be neither ranked nor taken back. The right number is a
// property of the backend this minute, and it is not known beforehand: it falls twentyfold
// when a database goes from 4 ms to 90 ms and its pool stays 16 wide, and it rises
// twentyfold when the same latency comes without any pool at all. Latency alone
// cannot tell the two apart.
//
// # The default law: Throughput
//
//	N  work in flight, averaged over a window [1]
//	X  throughput: work served in the window over its length [1/s]
//	R  latency: mean time that work holds its slot [s]
//	R₀ latency when nothing queues below [s]
//	D  time that admitted work has left until its deadline [s]
//	L  the limit
//
// Little's law (Little 1961) ties them in any stable system: N = X·R.
//
// Elasticity. While the limit holds work back, the law tries another one and looks
// at what came of it:
//
//	e = Δ ln X / Δ ln N
//
// e = 1: concurrency buys throughput, nothing queues, more is better. e = 0:
// saturated, what was added only queues. e < 0: thrashing, more costs throughput.
// A trial upwards (at first ×2, later smaller) is kept when e ≥ 0.7: with three
// instances on one backend, what each gains at the cost of the others is 0.58. A trial
// downwards (×0.8, later ×0.7) is kept unless X fell by more than 5 %; what several lose
// adds up. When it did fall, nothing queued at the lower number, so R there is R₀, and
// Little's law gives the limit that the capacity needs without a queue:
//
//	L = 1.1 · X · R₀
//
// A refused trial is repeated after 1, 2, 4, at most 8 seconds or ten latencies, by
// smaller steps. While R stays near R₀, the limit follows X·R₀ upwards by itself,
// and no trial downwards is made: in a long outage the law rests on its number.
//
// Use. A raise goes no further than what is there to fill it at once, in flight and
// waiting, or 1.5 times the most ever in use. One that does not fill is undone.
//
// Little's clamp. What is in flight has to end before its deadline whatever it buys:
//
//	N ≤ X · max(D/1.5, R₀)
//
// Beyond that the limit is cut in one step. The second term keeps the clamp from
// chasing a backend that simply takes that long: if less in flight was no faster,
// R₀ is raised to what it takes, and the limit comes back. Clients that leave without
// having announced how long they wait count as work that missed a deadline, no longer
// than they stayed, once they stay 1.5 times the lowest latency and are a tenth of all
// ends.
//
// The freeze. Before there is evidence, a backend that has slowed down is filled up to
// a limit that was right before. So the law keeps account of the ends that are missing
// (Page's CUSUM, 1954): Σ N·Δt/2R less the ends that came, never below zero. Above 8, and
// above N/2, which a round that began together owes at its end, the limit is frozen at
// what is in flight. What works in there tells R and X of the slower backend with the
// least queue, and trials start from that. It is lifted when no work is held back. Where
// no deadlines are known a surplus does less harm than a freeze might, and there is none.
//
// The brake. A window takes time to close. Between windows the brake looks at nothing
// but the instants of the latest ends: k of them in a time T mean a rate of at most about
// (k + 2√k)/T, and if even that is too little for the clamp (out of a calm, for three
// quarters of it), the limit follows it at once. It lets go when the ends say so, or when
// a window closes.
//
// Evidence. A window is at least 100 ms and 30 samples long, or a second or two
// latencies with five. After a trial, one round passes before anything counts, and the
// window of a trial spans one round at least: the time in which what holds the slots is
// replaced, its mean weighed by how long each piece holds its slot, R·(1 + v²), where v is
// the spread of that time over its mean, measured. For work of one size that is R; of
// pieces of 10 ms beside some of a second, those of a second hold the slots (it is waited
// for half a second, or R if that is more: a trial may cost something while it lasts). A
// trial ends when its effect stands out from chance: a rate from n samples is good to v/√n,
// v at least 0.35. So slow work and work of many kinds wait for samples and not for the
// clock. A throughput that jumps by more than 2v/√n and a quarter is another backend, and
// what was learned is forgotten. While the limit holds no work back, nothing is learned and
// nothing moves. Failures, the caller's mistakes and cancellations are no throughput;
// timeouts are the opposite; a stream's opening is served work. Nothing is ever refused for
// the sake of a measurement.
//
// Life. Every end counts as life, whatever kind it is. A stall is N·T/R > 8: while the
// limit is full, nothing at all has ended for a time T in which eight pieces of work
// should have, at the known time R that work holds its slot (by chance, one case in
// 3000). The limit is halved, and again when T has doubled.
//
// Every move carries its [Cause].
//
// # Where the constants come from
//
// The number 8 is the chance of one in 3000 (e⁻⁸) that ends which come at random make
// such a gap. 0.35 is the spread of log-normal work with σ = 0.3, 2 and 3 standard
// deviations separate an effect from chance, 1.5 is the 93rd percentile of that work
// over its mean: what is planned at the mean still ends in time. The others (steps,
// waits, 5 %, 10 %, a quarter) were picked by trying, on seeds that no reported figure uses.
//
// # When it is wrong
//
//   - It needs to be filled to learn. A backend that slows down within the limit in use
//     is filled to it once.
//   - With very few samples (a handful a second) trials take minutes, and the limit
//     stays near what it was when they began.
//   - A slowdown without a bottleneck that needs many more slots is frozen first: for
//     about half a second lower levels may be refused.
//   - Where deadlines are under about 1.7 R₀, one slot too many is late work and one
//     too few is lost throughput; it comes within some ten percent.
//   - One limit, one resource. Cached and database routes behind one limit average
//     into a number that is wrong for both: give them pools of their own.
//   - X counts pieces of work. Where sizes differ a hundredfold and the large take most of
//     the slots, trials take seconds, and the small pieces that wait inside the backend
//     behind large ones count as slow themselves: behind pieces of 1 s beside pieces of
//     10 ms, on 8 slots, the limit wanders between 12 and 48. Such work needs pools of its
//     own, or [Fixed]. At twentyfold, it serves three quarters of what the best limit does.
//   - A shared backend: several processes probe it at once, and what one gains
//     another loses. They still shrink under saturation, but share unevenly for seconds.
//   - It does not see memory or the scheduler: package shed/pressure does.
//
// [Fixed], [AIMD], [Vegas] and [Gradient2] are there to compare with, and for services
// whose operator knows better. The program in bench runs them all through the same overloads.
package shed
