// Package ratelimit decides how often a key may pass. It answers "is this caller
// allowed to send this much?", which is policy and refused with 429; whether the
// service can bear it is asked elsewhere.
//
// A [Limiter] is a value for a gate's options, or for a client's. [PerKey] is the
// usual one; [Tiers] chooses the numbers by plan, [Global] has one bucket for all,
// [All] makes one decision of several limits, [Scoped] gives a limit a space of its
// own, and [Shadow] tries one out. Quotas per day are in the package window, a
// ceiling shared by many processes in redisrate.
//
// # The token bucket
//
//	r  rate, in tokens per second ([rate.Limit])
//	b  burst, in tokens
//	x  balance, in tokens; at most b
//	n  cost of a request, in tokens, at least 1
//
// The balance rises by r a second up to b. A request of cost n passes when x ≥ n,
// and takes n. Otherwise it is told to wait (n−x)/r, or never, when n > b or r = 0.
// So in any window of T seconds a key passes at most b + r·T. This is the bucket of
// Turner, "New directions in communications", 1986, in the form of x/time/rate,
// which is held against it in a test.
//
// # What is exact
//
// Balances are whole numbers of units, a token being so many units that a
// nanosecond brings a whole number of them too. Nothing is rounded in between, so
// the wait in a refusal is right to the nanosecond: at that instant the same
// request passes, if nothing else drew on the bucket, and a nanosecond earlier it
// does not. A float is read as the simplest fraction it can have meant: 3.0/86400
// is one token in 28,800 s.
//
// The bound b + r·T holds through refunds, reloads, evictions, floods of new keys,
// clocks that go back, and calls that overtake each other. A clock that is stepped
// forward is worth b at most; steps of the wall clock are not even seen where
// instants carry Go's monotonic reading. An instant over five minutes behind a bucket's
// own is that of a clock that was ahead and is right again: the bucket goes on from
// there with what it has. The sweep believes a reading that is hours off only when the
// next one agrees, so that one wrong clock frees no other key.
//
// # What is given back
//
// Undo leaves a bucket as if the grant had never been made: not simply n tokens
// more, because a bucket that had kept them might since have been full and lost
// them. What is lost is computed from the grant's own record, exactly when grants
// are undone oldest first or latest first; in another order, close to a full
// bucket, and for grants older than 19.5 hours, the result errs against the caller,
// by at most the grant; so it does for grants of the half second around every
// 128th change of a key's plan. A refund after the fact ([Decision.Adjust]) follows the
// same rule: once the bucket would have been full without the grant, nothing is
// left to refund. A charge after the fact may leave a debt, which is waited off.
//
// # The table
//
// A key is a 127-bit hash under seeds of the process; its bucket and hash are one
// cache line, 64 bytes, up to 96 with the table's slack. At the bound ([MaxKeys])
// newcomers share one strict bucket; [Stats] counts how often. Only buckets that
// are full again are forgotten, by the traffic itself, a few shards at a time: once
// per 30 s, and every 2 s when the table is nearly full. So a flood of keys cannot
// push out one that is owed a refusal. A key that comes into a table that was full
// starts with the shared bucket's balance, and one that comes after a raise of the
// burst with the old burst: a key gains nothing by being new.
//
// A debt never reaches the shared bucket: a key without a bucket that is charged after
// the fact gets one of its own, at most an eighth of the bound (and 64) beyond it.
//
// A limit with rate 0 never forgets a key that took from it.
package ratelimit
