// Package redisrate shares one ceiling among processes through Redis or Valkey.
//
// A rate limit in memory counts for one process; the second replica doubles it.
// [PerKey] is ratelimit.PerKey with the buckets in Redis, and one line changes:
//
//	Rate: redisrate.PerKey(rdb, 50, 100, redisrate.Options{})
//
// # What it costs
//
// Asking the store about every request costs a round trip for each, refusals
// included. Instead, processes lease slots ahead of need and decide locally. Let R
// be tokens per second, B the burst, N the processes that share the ceiling, and
// τ = 50 ms the lease interval.
//
//   - Grant. The bucket may go down to -D, D = min(R·(50 ms + round trip), ¾B). A call
//     for w slots gets g = min(w, ⌊tokens + D⌋), and at most q = ⌊D/N⌋ or half of what
//     is free, whichever is more. Slot k matures max(0, (k - tokens)/R) after the reply
//     arrives, so no clocks need agree. The union of all processes' slots is what one
//     bucket would have let through, each position of that stream handed out once.
//   - Size. w follows what the key was asked for in the last τ + round trip. The next
//     lease is fetched when what is left lasts until it arrives: half of it beside a near
//     store, by one call in flight per key and process.
//   - Return. A slot perishes 4τ after its maturity. When a key has not been asked
//     for in τ, its slots are given back.
//   - Bound. The bucket counts the slots that are out: it refills no higher than
//     B - out, where slots leave the count when they are reported spent, and at the
//     latest when they must have perished. So tokens + out ≤ B at all times, and any
//     window of length t lets at most B + R·t through: not on average, but always.
//
// Leases need q ≥ 2, that is R/N ≥ 40 and B/N ≥ 2.7. Below that (keys of single
// users, small limits, many replicas) each admission is a call, and a refusal is
// remembered until the moment the bucket's answer says that asking is of use.
//
// # When the store is away
//
// A request that only the store can decide waits for an answer up to 1.5 times the
// measured round trip, 20 to 250 ms. An answer that is later than that is late, not
// lost: the request is decided by this process' part of what the bucket held when it
// was last heard, the answer pays for it, and what it grants beyond that is kept for
// the key's next request until it perishes. Tokens are charged once, whatever the
// order of answers.
//
// Only a store that is silent (four round trips, at least 100 ms, without any answer)
// or refuses is away. States go shared → degraded → probing → shared. Then, without
// waiting, each process admits its share:
// R/N and B/N with the last known N (at least [Options].MinPeers), never less than a burst
// of one. A share starts with what the process was entitled to at that moment, not
// full, so flaps mint nothing. The store counts as away after three failures in a
// row or when half of at least five calls in a second failed; it is looked at with
// the real script, in the background, after 0.2 to 1 s. On the way back the bucket
// is told what was spent meanwhile, less what it refilled before it was last full,
// and a process stays inside its share for another
// 1.5 s, while others may not have noticed yet. [Options].OnOutage chooses otherwise.
//
// A call whose answer is lost is never repeated: it counts as charged. What was spent
// meanwhile is told in numbered bills, again until one is answered, and the bucket
// takes each once. A call that
// runs long after it was sent, on a server that had been stopped, sees from the
// server's own clock that it is late and does nothing.
//
// # The bound
//
// In any window of length t at most B + R·t passes, wherever the store kept its data and
// all processes see it, or none does; returns included. Elsewhere:
//
//   - k of N processes cannot reach it: B + R·(1 + k/N)·t while that lasts. What they let
//     through is charged on their return.
//   - It lost its data: one burst more, and the slots that were out, at most R·(50 ms +
//     round trip). Use a database without eviction. Replication is asynchronous, so a
//     failover may forget the last moments in the same way.
//   - Processes that start during an outage are not known to the others: each takes a
//     share more, R/N and B/N, unless MinPeers counts them.
//
// Sources: the generic cell rate algorithm (ITU-T I.371), kept as tokens and a time
// so that limits may change; token leasing with a bounded reserve; the pages in
// docs/replicas.md say what one server carries.
package redisrate
