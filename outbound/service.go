package outbound

import (
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/queue"
)

// service is what all operations behind one Space share.
type service struct {
	start  time.Time
	paused [priority.Count]atomic.Int64 // by level; since start, on the monotonic clock
	slots  *queue.Slots                 // nil: calls in flight are not bounded
	ops    []*operation                 // guarded by the Pacer
}

func (p *Pacer) newService() (*service, error) {
	s := &service{start: p.start}
	if p.opts.InFlight == nil {
		return s, nil
	}
	var err error
	s.slots, err = queue.NewSlots(queue.Config{Limit: p.opts.InFlight, MaxWait: p.opts.MaxWait, MaxWaiting: slotBound})
	return s, err
}

func (s *service) pauseLeft(now time.Time, level int) time.Duration {
	return time.Duration(s.paused[level].Load()) - now.Sub(s.start)
}

// pause keeps the levels up to the given one away from the service until t.
func (s *service) pause(t time.Time, level int) {
	end := int64(t.Sub(s.start))
	for i := range s.paused[:level+1] {
		for {
			old := s.paused[i].Load()
			if end <= old || s.paused[i].CompareAndSwap(old, end) {
				break
			}
		}
	}
}
