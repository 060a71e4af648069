package admission

import (
	"context"
	"time"

	"github.com/headgate-go/headgate/priority"
)

// Ticket is what a piece of work says about itself at the gate.
type Ticket struct {
	Caller   Caller         // who asks; one that nothing vouches for is limited by Options.Anonymous
	Level    priority.Level // who goes first, were it not for the caller's own rank and plan
	Cost     int            // tokens it takes, times the factor of the caller's plan; below 1 counts as 1
	Deadline time.Time      // when its answer becomes worthless; zero: the context's
	MaxWait  time.Duration  // longest stay in the queue; zero: the pool's, which is also the most; NoWait: none
	Pool     string         // which pool its slot comes from; a name that is not there is the unnamed one
	Bytes    int64          // announced size of its body; -1: unknown
}

// Admit asks for a slot for work that is not an HTTP request: a message, a job.
// It returns at once when the work is admitted or refused at the door; otherwise
// it waits in the queue until a slot is free, the work's allowance ends, or ctx
// does. A refusal is a *[Rejection], with the [shed.Reason] behind it. It
// allocates nothing unless it refuses. On a nil gate everything is admitted.
//
//	permit, err := gate.Admit(ctx, admission.Ticket{Level: priority.Batch})
//	if err != nil {
//		return err
//	}
//	defer permit.Release(shed.Served)
func (g *Gate) Admit(ctx context.Context, t Ticket) (Permit, error) {
	if g == nil {
		return Permit{}, nil
	}
	if t.Deadline.IsZero() {
		t.Deadline, _ = ctx.Deadline()
	}
	v := g.arrive(nil)
	v.Ticket = t
	v.Level = v.asSold(t.Level)
	if !v.admit(ctx) {
		v.refused()
		rej := v.rejection()
		v.leave()
		return Permit{}, rej
	}
	return Permit{pool: v.at, slot: v.slot, visit: v}, nil
}
