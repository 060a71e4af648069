package ratelimit

import (
	"context"
	"math"
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

// Key says whose tokens are asked for.
type Key struct {
	Space string // what kind of name ID is ("key", "addr"), so that kinds never collide
	ID    string // the caller
	Plan  string // which numbers apply; not part of the identity: a change of plan keeps the balance
	Units *Units // what the request takes of limits that count other units; nil: nothing. No part of the identity either
}

// Decision is a limiter's answer. It is a value; making one allocates nothing.
type Decision struct {
	OK        bool
	Never     bool          // no waiting helps: the cost is above the burst, or the rate is zero
	Wait      time.Duration // OK: when the granted tokens mature; refused: when this limit would admit the same request
	Remaining int           // whole tokens left, never negative
	Cost      int           // what the request takes of the limit that decided; 0: the cost it was asked with
	Reset     time.Duration // OK: when the quota would be whole again if nothing else were taken; refused: Wait
	Policy    string        // name of the limit that decided
	Source    Source
	Shadow    string // name of a limit in shadow that would have refused; empty for none
	Grant     Grant  // what was taken; zero when refused
}

// Undo returns the tokens of an unspent grant, exactly, as if they had never been
// taken. It does nothing for a refusal. Call it at most once.
func (d Decision) Undo(now time.Time) {
	if d.OK && d.Grant.From != nil {
		d.Grant.From.Undo(now, d.Grant)
	}
}

// Adjust charges by more tokens for a grant, or gives -by of them back, wherever its
// cost was taken. It does nothing for a refusal and for limiters that cannot. Call it, or
// Undo, once.
func (d Decision) Adjust(now time.Time, by int) {
	from := d.Grant.From
	if d.Grant.Unit != "" && !countsUnits(from) {
		return
	}
	if a, ok := from.(Adjuster); ok && d.OK {
		a.Adjust(now, d.Grant, by)
	}
}

// Settle is Adjust for a unit: it charges by more of it, or gives -by back, at the limits
// that count it and took some. Call it once for each unit.
func (d Decision) Settle(now time.Time, unit string, by int) {
	if d.Grant.Unit = unit; unit != "" {
		d.Adjust(now, by)
	}
}

// Grant is a record of tokens taken. Key, Cost and At are always those of the Take
// that made it, so that code that keeps several grants of one request may keep them
// once; a limiter that asks another one under a different key puts itself in From.
type Grant struct {
	From  Undoer // the limiter that was asked; nil when there is nothing to give back
	Key   Key
	Cost  int    // at least 1
	Unit  string // in Adjust: the unit it is about; empty: requests
	At    time.Time
	Mark  uint64 // in the limiter's own terms: a lease, a window
	Parts Parts  // when several limits granted it together
}

// Parts are what [All] remembers of its parts' grants. It is to be kept with the
// Mark, and only All reads it.
type Parts struct {
	marks [maxLimits]uint64
	held  uint8 // which parts have something to give back
}

// keep remembers the grant of the part whose place is at.
func (p *Parts) keep(at place, g *Grant) {
	if at.several {
		copy(p.marks[at.first:], g.Parts.marks[:at.width])
		p.held |= g.Parts.held << at.first
		return
	}
	p.marks[at.first] = g.Mark
	p.held |= 1 << at.first
}

// into puts what is remembered of that part into its grant, and reports whether there is
// anything to give back.
func (p *Parts) into(at place, g *Grant) bool {
	held := p.held >> at.first & (1<<at.width - 1)
	if at.several {
		copy(g.Parts.marks[:at.width], p.marks[at.first:])
		g.Parts.held = held
	} else if held != 0 {
		g.Mark = p.marks[at.first]
	}
	return held != 0
}

// Any reports whether there is something to remember.
func (p *Parts) Any() bool { return p.held != 0 }

// place is a part's room among [Parts]: as many marks as it is made of limits.
type place struct {
	first, width int
	several      bool // it is made of several itself, inside of a wrapper
}

// placeOf is the room that the grants of l need.
func placeOf(l Limiter) place {
	switch l := l.(type) {
	case *allOf:
		width := 0
		for _, p := range l.places {
			width += p.width
		}
		return place{width: width, several: true}
	case wrapper:
		return placeOf(l.inner())
	}
	return place{width: 1}
}

// Unlimited admits every request. It is the only way to have no limit: no number
// means it by accident.
var Unlimited Limiter = unlimited{}

type unlimited struct{}

func (unlimited) Take(context.Context, time.Time, Key, int, time.Duration) Decision {
	return Decision{OK: true, Remaining: math.MaxInt}
}

func (unlimited) Policy(Key) Policy { return Policy{Rate: rate.Inf, Burst: math.MaxInt} }
func (unlimited) Validate() error   { return nil }
