package admission

import (
	"context"
	"time"

	"github.com/headgate-go/headgate/priority"
)

// Charge says what the work cost after all, in place of the cost it was admitted
// at: more is charged even if the balance goes into debt, less is given back. The
// factor of the caller's plan applies to it, as it did to the first cost. It
// reaches every limit that the work was admitted by, and counts once: the
// first call reports true, later ones change nothing and report false, as does one
// after Release. A cost below zero counts as zero. It must not run while another
// goroutine releases the permit.
func (p Permit) Charge(cost int) bool {
	if p.pool == nil || !p.pool.slots.Once(p.slot) {
		return false
	}
	p.visit.charge(cost)
	return true
}

func (v *visit) charge(cost int) {
	v.taken.adjust(time.Now(), v.price(max(cost, 0)))
}

// Charge says what the request that ctx belongs to cost after all; see
// [Permit.Charge]. A handler may call it at any time until it returns, a stream's
// at its end. Outside of a request that a gate admitted it reports false. Behind
// several gates it speaks to the innermost.
func Charge(ctx context.Context, cost int) bool {
	r, _ := ctx.Value(anyRequestKey{}).(*request)
	return r != nil && r.charge(cost)
}

// Visitor is what the gate knows of an admitted request.
type Visitor struct {
	Caller   Caller
	Level    priority.Level
	Deadline time.Time     // zero: none
	Waited   time.Duration // in the queue
}

// FromContext returns what the innermost gate knows of the request that ctx belongs to.
// It reports false outside of an admitted request.
func FromContext(ctx context.Context) (Visitor, bool) {
	r, _ := ctx.Value(anyRequestKey{}).(*request)
	if r == nil {
		return Visitor{}, false
	}
	at, _ := r.Deadline()
	return Visitor{Caller: r.caller, Level: r.level, Deadline: at, Waited: r.waited}, true
}
