package outbound

import (
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/queue"
)

// service is what all operations behind one Space share.
type service struct {
	start  time.Time
	paused atomic.Int64 // since start, on the monotonic clock
	slots  *queue.Slots // nil: calls in flight are not bounded
	ops    []*operation // guarded by the Pacer
}

func (p *Pacer) newService() (*service, error) {
	s := &service{start: p.start}
	if p.opts.InFlight == nil {
		return s, nil
	}
	var err error
	s.slots, err = queue.NewSlots(queue.Config{Limit: p.opts.InFlight, MaxWait: p.opts.MaxWait, Bound: slotBound})
	return s, err
}

func (s *service) pauseLeft(now time.Time) time.Duration {
	return time.Duration(s.paused.Load()) - now.Sub(s.start)
}

// pause keeps everybody away from the service until t.
func (s *service) pause(t time.Time) {
	end := int64(t.Sub(s.start))
	for {
		old := s.paused.Load()
		if end <= old || s.paused.CompareAndSwap(old, end) {
			return
		}
	}
}
