package entry

import (
	"math"
	"slices"
	"time"

	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

// Meter observes what slots really do: how fast they come free while all are
// taken, and how long work holds one. The zero value is ready, with no evidence.
// It is not safe for concurrent use, allocates nothing, and every method is O(1).
//
// Rate. X = completions / time, both counted only while every slot was taken: an
// idle service completes few requests because few arrive, and that says nothing
// about how fast a queue would drain. Older spells weigh less: each completion
// keeps 31/32 of them, less still when the spell was long, so that a service of
// four a second is known as soon as one of four thousand.
//
// Service time. The median of the last 15 pieces of work per level, because
// levels stand for routes and routes differ. Fast failures do not count: they are
// no sign of speed. With fewer in flight than when those were let in, the median
// is scaled down (beyond what a backend can do at once, time is proportional to
// the crowd), though not below the fastest of them: a limit that was just lowered
// must not leave its queue condemned by what the crowd before it went through.
//
// Trust. A slow median would refuse every short deadline as hopeless, and without
// admissions nothing would ever correct it. So one request at a time that
// the median calls hopeless is tried; while most of those tried are served in
// time, the median of that level is not used for refusals.
type Meter struct {
	done  float64 // completions while full, older ones discounted
	spell float64 // seconds they took
	seen  int     // completions while full, up to minEvidence
	fed   time.Time
	level [priority.Count]service
}

const (
	meterKeep      = 1 - 1.0/24       // what one completion leaves of the older ones
	meterKeepLeast = 1 - 1.0/4        // at least four completions are remembered
	meterHorizon   = 2.0              // seconds: a spell this long keeps 1/e of the older ones
	meterForget    = 10 * time.Second // evidence of a rate lasts this long, or ten gaps
	meterTried     = 1.0 / 4          // weight of one tried request in the trust
)

// Freed tells that one slot came free at now after all of them had been taken for
// the given time. Call it for every outcome but Ignored.
func (m *Meter) Freed(now time.Time, full time.Duration) {
	if !m.known(now) {
		m.done, m.spell, m.seen = 0, 0, 0
	}
	s := max(full, 0).Seconds()
	keep := max(meterKeep*math.Exp(-s/meterHorizon), meterKeepLeast)
	if s == 0 {
		keep = meterKeep
	}
	m.done = m.done*keep + 1
	m.spell = m.spell*keep + s
	m.seen = min(m.seen+1, minEvidence)
	m.fed = now
}

// Rate returns how many slots a second come free while all are taken, and whether
// there is evidence for it. silence is how long all have been taken up to now with
// nothing coming free; pass zero when one is free.
func (m *Meter) Rate(now time.Time, silence time.Duration) (perSecond float64, ok bool) {
	if m.seen < minEvidence || !m.known(now.Add(-silence)) {
		return 0, false
	}
	s := m.spell + max(silence, 0).Seconds()
	if s <= 0 {
		return 0, false
	}
	return m.done / s, true
}

// minEvidence is how many observations make evidence. A cold start is slow, and
// one slow request must not turn its successors away.
const minEvidence = 4

func (m *Meter) known(now time.Time) bool {
	if m.seen == 0 {
		return false
	}
	gaps := time.Duration(10 * m.spell / m.done * float64(time.Second))
	return now.Sub(m.fed) <= max(meterForget, gaps)
}

// Done records that a piece of work of the given level held its slot for so long,
// and how much work was in flight, itself included, when it got it.
func (m *Meter) Done(now time.Time, l priority.Level, held time.Duration, crowd int, o shed.Outcome) {
	if o != shed.Served && o != shed.TimedOut {
		return
	}
	v := &m.level[l.Index()]
	if v.seen > 0 && v.old(now) {
		*v = service{trying: v.trying}
	}
	v.add(held, crowd)
	v.fed = now
}

// Service returns the median time that work of this level holds its slot, and
// whether there is evidence for it.
func (m *Meter) Service(now time.Time, l priority.Level) (time.Duration, bool) {
	v := &m.level[l.Index()]
	return v.median, v.known(now)
}

// Needs returns how much time work of this level must have left to be worth
// starting with so much in flight, itself included: its median service time, or
// zero without evidence or while the median has proved wrong.
func (m *Meter) Needs(now time.Time, l priority.Level, crowd int) time.Duration {
	if v := &m.level[l.Index()]; v.trusted() && v.known(now) {
		return v.among(crowd)
	}
	return 0
}

// Most returns what Needs does not exceed, however many are in flight.
func (m *Meter) Most(l priority.Level) time.Duration { return m.level[l.Index()].median }

// Doubtful reports whether the median calls work with this much time left
// hopeless, trusted or not. When such work is let in, its end belongs in Tried.
func (m *Meter) Doubtful(now time.Time, l priority.Level, crowd int, remaining time.Duration) bool {
	v := &m.level[l.Index()]
	return remaining <= v.among(crowd) && v.known(now)
}

// Try reports whether doubtful work of this level may be let in now to put the
// median to the test, and counts it as let in if so. Every true is followed by
// one Tried or Untried.
func (m *Meter) Try(l priority.Level) bool {
	v := &m.level[l.Index()]
	if v.trying > 0 && v.trusted() {
		return false
	}
	v.trying++
	return true
}

// Tried records whether work let in by Try was served in time.
func (m *Meter) Tried(l priority.Level, inTime bool) {
	v := &m.level[l.Index()]
	v.trying--
	v.wrong *= 1 - meterTried
	if inTime {
		v.wrong += meterTried
	}
}

// Untried takes a Try back that never ran, or ended in a way that tells nothing.
func (m *Meter) Untried(l priority.Level) { m.level[l.Index()].trying-- }

// Median returns the median service time over all levels, zero without evidence.
func (m *Meter) Median() time.Duration {
	var all [priority.Count * serviceWindow]time.Duration
	n := 0
	for i := range m.level {
		v := &m.level[i]
		n += copy(all[n:], v.sorted[:v.n])
	}
	if n == 0 {
		return 0
	}
	slices.Sort(all[:n])
	return all[(n-1)/2]
}

const serviceWindow = 15

// service is the running median of one level.
type service struct {
	recent [serviceWindow]time.Duration // in order of arrival, a ring
	sorted [serviceWindow]time.Duration // the same values in order of size
	next   int                          // the oldest of recent
	n      int
	seen   int
	fed    time.Time
	median time.Duration
	crowd  float64 // mean number in flight when they were let in
	trying int     // doubtful requests in flight or waiting
	wrong  float64 // share of the tried that the median was wrong about
}

func (v *service) trusted() bool { return v.wrong < 0.5 }

func (v *service) known(now time.Time) bool { return v.seen >= minEvidence && !v.old(now) }

// old reports whether the newest evidence is so old that it says nothing.
func (v *service) old(now time.Time) bool {
	return now.Sub(v.fed) > max(meterForget, 4*v.median)
}

// among returns the median, scaled down to a smaller crowd.
func (v *service) among(crowd int) time.Duration {
	if c := float64(crowd); c < v.crowd {
		return max(v.sorted[0], time.Duration(float64(v.median)*c/v.crowd))
	}
	return v.median
}

func (v *service) add(d time.Duration, crowd int) {
	if c := float64(crowd); c != v.crowd {
		v.crowd += (c - v.crowd) / float64(min(v.n+1, serviceWindow/2))
	}
	i := v.n
	if v.n < serviceWindow {
		v.n++
	} else {
		for i = 0; v.sorted[i] != v.recent[v.next]; i++ { // shorter than a search by halves
		}
	}
	v.place(i, d)
	v.recent[v.next] = d
	if v.next++; v.next == serviceWindow {
		v.next = 0
	}
	v.seen = min(v.seen+1, minEvidence)
	v.median = v.sorted[(v.n-1)/2]
}

// place puts d in the gap at i and moves the gap to where d belongs.
func (v *service) place(i int, d time.Duration) {
	for ; i > 0 && v.sorted[i-1] > d; i-- {
		v.sorted[i] = v.sorted[i-1]
	}
	for ; i < v.n-1 && v.sorted[i+1] < d; i++ {
		v.sorted[i] = v.sorted[i+1]
	}
	v.sorted[i] = d
}
