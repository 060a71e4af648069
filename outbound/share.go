package outbound

import "time"

// share tells how large a part of the answers were overloads of late. A single 503
// among a thousand answers is one instance in trouble, and a client that halved its
// rate for it would starve itself of a service that is well.
type share struct {
	since               time.Time
	answered, overloads uint64 // totals then
}

const (
	shareWindow = time.Second
	fewAnswers  = 10
	largeShare  = 0.1
)

// large notes the totals at now and reports whether the share since the last look, a
// second ago at least, is a tenth or more of at least ten answers.
func (s *share) large(now time.Time, answered, overloads uint64) bool {
	total, bad := answered-s.answered, overloads-s.overloads
	if now.Sub(s.since) >= shareWindow {
		*s = share{now, answered, overloads}
	}
	return total >= fewAnswers && float64(bad) >= largeShare*float64(total)
}

// bare reports whether v is a 503 that says nothing but that.
func bare(v Verdict) bool { return v.Kind == Overloaded && !v.Hinted && !v.Reason.Refused() }

// overloaded reports whether bare overloads are more than an accident.
func (o *operation) overloaded(now time.Time) bool {
	var answered uint64
	for k := range o.counts.kinds {
		if Kind(k) != LocalRefusal && Kind(k) != Canceled {
			answered += o.counts.kinds[k].Load()
		}
	}
	overloads := o.counts.kinds[Overloaded].Load()
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.share.large(now, answered, overloads)
}
