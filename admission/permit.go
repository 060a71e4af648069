package admission

import (
	"time"

	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/shed"
)

// Permit is a slot held. It must be given back with [Permit.Release]; a copy is
// the same permit. The zero Permit, which a nil gate gives, holds nothing.
type Permit struct {
	pool  *pool
	slot  queue.Grant
	visit *visit // only to be touched while the slot is held: afterwards it is somebody else's
}

// Release gives the slot back and says how the work ended. Only the first call on
// a permit counts, whichever copy it is made on. It never blocks.
func (p Permit) Release(o shed.Outcome) {
	if p.pool == nil {
		return
	}
	if held, live := p.pool.slots.Release(p.slot, o); live {
		p.visit.ended(o, held, false)
	}
}

// Waited returns how long the work stood in the queue.
func (p Permit) Waited() time.Duration { return p.slot.Waited }
