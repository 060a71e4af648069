package ratelimit

import (
	"context"
	"time"

	"golang.org/x/time/rate"
)

// Limiter decides how often a key may pass. Everything in this kit that limits a
// rate speaks it: buckets in memory, long windows, a ceiling shared through Redis,
// inbound and outbound. Implementations are safe for concurrent use.
type Limiter interface {
	// Take asks for cost tokens, all or nothing, and never blocks on other
	// callers; ctx bounds a call to a remote store, where there is one. With
	// maxWait > 0 it may grant tokens that mature within it: the caller waits
	// Decision.Wait, then goes. A cost below 1 counts as 1.
	Take(ctx context.Context, now time.Time, key Key, cost int, maxWait time.Duration) Decision
	// Policy returns the numbers in force for key.
	Policy(key Key) Policy
	// Validate reports what is wrong with the limiter's configuration, naming the
	// field. It is called once, at set-up.
	Validate() error
}

// Owner is implemented by limiters in memory. Own returns a limiter with the
// receiver's numbers whose balances belong to the caller alone, so that one
// configuration may build two gates. When prev is a limiter of the same kind, its
// balances are kept and the new numbers count from now on: that is a reload.
// Limiters whose state is elsewhere by nature do not implement it and are used as
// they are.
type Owner interface {
	Own(prev Limiter) Limiter
}

// Key says whose tokens are asked for.
type Key struct {
	Space string // what kind of name ID is ("key", "addr"), so that kinds never collide
	ID    string // the caller
	Plan  string // which numbers apply; not part of the identity: a change of plan keeps the balance
}

// Decision is a limiter's answer. It is a value; making one allocates nothing.
type Decision struct {
	OK        bool
	Never     bool          // no waiting helps: the cost is above the burst, or the rate is zero
	Wait      time.Duration // OK: when the granted tokens mature; refused: when this limit would admit the same request
	Remaining int           // whole tokens left, never negative
	Reset     time.Duration // OK: when the quota would be whole again if nothing else were taken; refused: Wait
	Policy    string        // name of the limit that decided
	Source    Source
	Grant     Grant // what was taken; zero when refused
}

// Undo returns the tokens of an unspent grant, exactly, as if they had never been
// taken. It does nothing for a refusal. Call it at most once.
func (d Decision) Undo(now time.Time) {
	if d.OK && d.Grant.From != nil {
		d.Grant.From.Undo(now, d.Grant)
	}
}

// Adjust charges by more tokens for a grant, or gives -by of them back. It does
// nothing for a refusal and for limiters that cannot. Call it, or Undo, once.
func (d Decision) Adjust(now time.Time, by int) {
	if a, ok := d.Grant.From.(Adjuster); ok && d.OK {
		a.Adjust(now, d.Grant, by)
	}
}

// Grant is a record of tokens taken. Key, Cost and At are always those of the Take
// that made it, so that whoever keeps several grants of one request may keep them
// once; a limiter that asks another one under a different key puts itself in From.
type Grant struct {
	From Undoer
	Key  Key
	Cost int // at least 1
	At   time.Time
	Mark uint64 // in the limiter's own terms: a lease, a window
}

// Undoer takes tokens back.
type Undoer interface {
	Undo(now time.Time, g Grant)
}

// Adjuster is implemented by limiters that can change a grant after the fact: by
// more tokens (the work cost more than was asked; the balance may go into debt), or
// by fewer, at most all of the grant. A grant is adjusted or undone once; the
// caller keeps count.
type Adjuster interface {
	Adjust(now time.Time, g Grant, by int)
}

// Policy is what a limit promises: the numbers that documentation, headers and
// dashboards show.
type Policy struct {
	Name   string
	Rate   rate.Limit    // tokens per second; rate.Inf when unlimited
	Burst  int           // most tokens at once
	Window time.Duration // for quotas per window; zero for buckets: Burst/Rate
}

// Unlimited reports whether there is no limit to tell anybody about.
func (p Policy) Unlimited() bool { return p.Rate >= rate.Inf }

// Source says what a decision was based on.
type Source uint8

// The sources. In memory all decisions are Local.
const (
	SourceLocal       Source = iota // a bucket in this process, the whole truth
	SourceOverflow                  // the strict bucket that newcomers share when the table is full
	SourceSlot                      // a slot leased from the shared ceiling
	SourceDirect                    // one call to the shared ceiling
	SourceDenialCache               // refused from the store's last hint, without a call
	SourceShare                     // this process' share while the store is away
	SourceOpen                      // let through because the store is away
	SourceClosed                    // refused because the store is away
)

// SourceCount is the number of sources, for arrays indexed by Source.
const SourceCount = int(SourceClosed) + 1

var sourceNames = [SourceCount]string{
	"local", "overflow", "slot", "direct", "denial-cache", "share", "open", "closed",
}

// String returns the source's name in metrics and logs.
func (s Source) String() string {
	if int(s) >= SourceCount {
		return "unknown"
	}
	return sourceNames[s]
}
