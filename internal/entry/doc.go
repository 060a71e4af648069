// Package entry decides about one arrival: whether it gets a slot, waits or is turned
// away, and when the refused should return.
//
// [Check] decides from what [Meter] has observed of the work that ended and [Demand] of the
// work that came; [Hold] keeps a freed slot for a level whose waiters ran out of time;
// [RetryAfter] tells the refused when to return. All of it is pure: the time is an
// argument, and nothing here takes a lock, starts a goroutine or knows HTTP. Package queue
// drives it, under its own lock.
package entry
