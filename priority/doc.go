// Package priority says who matters.
//
// Four levels, and no more: every finer ranking that services tried ended as
// "everything is critical". A level is a property of the work (the route), never
// a wish of the caller: a client may lower its own level, never raise it.
//
// The names map onto the vocabularies in use elsewhere:
//
//	Headgate   Google criticality   RFC 9218 urgency   example
//	Batch      SHEDDABLE            u=6, u=7           exports, backfills
//	Normal     SHEDDABLE_PLUS       u=3 … u=5          browsing, search
//	High       CRITICAL             u=1, u=2           writes a person waits for
//	Critical   CRITICAL_PLUS        u=0                login, checkout
package priority
