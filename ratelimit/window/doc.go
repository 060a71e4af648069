// Package window limits long quotas, such as 10,000 requests a day, by counting
// them in windows. Any counter made for httprate drops in; without one, counts are
// kept in memory, bounded.
//
// # The estimate
//
// Time is cut into windows of length L (a duration), aligned to UTC: a day starts
// at midnight. For each key two numbers are kept: c, the cost admitted in the
// current window, and p, in the one before. e is how far the current window has
// come. What a key has used is estimated as
//
//	used = c + p·(L−e)/L
//
// as if p had been spread evenly over its window; a request of cost n passes when
// used + n ≤ Q, the quota. This is the sliding-window counter that Cloudflare
// described in 2017 and httprate implements.
//
// With Options.Each a window follows a calendar instead: it is a day or a month in a named
// zone, whatever its length, and what was used before it does not count. At midnight the
// whole quota is there; so Q may pass just before it and Q just after.
//
// # What is exact and what is not
//
// In one aligned window never more than Q passes, where the counter is this
// process' own. In a window of length L that straddles two, up to 2Q may pass in
// the worst case (all of Q in the last instant of one window, and again, as the
// estimate fades, in the next); traffic that comes evenly stays within a few
// percent of Q. A counter in a store is read, then incremented: processes that do
// so at the same moment may pass a few requests too many. Where every request
// counts, use a bucket with a low rate and a large burst instead: it is exact.
//
// A reading of the clock over five minutes from the last may be wrong. The counts that
// it leaves are kept: when readings come back to their time they count again, together
// with what was used meanwhile, so that one wrong clock neither stops the windows nor
// gives a key more than its quota.
//
// Retry-After is exact for the estimate: a caller that waits that long is admitted
// if nothing else drew on its quota.
//
// # When the counter is slow or away
//
// A call to a foreign counter is given Options.Timeout, and Options.OnOutage says what happens
// without its answer: this process' own count decides (the default), every
// request passes, or none. A caller never sees an error. After a failure the counter is
// left alone for a second.
package window
