package queue

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/headgate-go/headgate/internal/entry"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

// model is the queue's rules written down in the plainest way, O(n) everywhere. It
// borrows nothing from the core but the meter's estimates, the limit in force and
// whether bytes fit, which has tests of its own.
type model struct {
	t        *testing.T
	core     *Core
	law      *scripted
	now      time.Time
	script   []byte
	waiting  []*Waiter // by arrival
	leaving  map[*Waiter]shed.Reason
	fair     modelFair
	grants   []modelGrant
	critical int
	joined   map[*Waiter]time.Time
}

type modelGrant struct {
	Grant
	level priority.Level
	run   *modelRun // nil: it did not wait
}

// scripted is a law whose limit the test sets.
type scripted struct{ limit, told int }

func (s *scripted) New() (shed.Law, error) { return s, nil }
func (s *scripted) Limit() int             { return s.limit }
func (s *scripted) Note(time.Time, shed.Load) shed.Step {
	if s.told == s.limit {
		return shed.Step{}
	}
	s.told = s.limit
	return shed.Step{Limit: s.limit, Cause: shed.CauseGrow}
}
func (s *scripted) Done(now time.Time, l shed.Load, _ shed.Sample) shed.Step { return s.Note(now, l) }

const (
	modelBound   = 12
	modelBytes   = 4000
	modelReserve = 1
	modelStay    = 100 * time.Millisecond
)

func newModel(t *testing.T, script []byte, bytes int64) *model {
	law := &scripted{limit: 4, told: 4}
	core, err := NewCore(Config{Limit: law, MaxWaiting: modelBound, MaxWaitingBytes: bytes, CriticalReserve: modelReserve, MaxWait: modelStay})
	if err != nil {
		t.Fatal(err)
	}
	return &model{
		t: t, core: core, law: law, now: time.Unix(1e9, 0), script: script,
		leaving: map[*Waiter]shed.Reason{}, joined: map[*Waiter]time.Time{}, fair: newModelFair(),
	}
}

func (m *model) byte() int {
	if len(m.script) == 0 {
		return 0
	}
	b := m.script[0]
	m.script = m.script[1:]
	return int(b)
}

func (m *model) run() {
	for len(m.script) > 0 {
		switch op := m.byte() % 16; {
		case op < 8:
			m.offer()
		case op < 10:
			m.release()
		case op < 11:
			m.cancel()
		case op < 13:
			m.now = m.now.Add(time.Duration(m.byte()) * 200 * time.Microsecond)
		case op < 14:
			m.law.limit = 1 + m.byte()%8
		default:
			m.drain()
		}
		m.check()
	}
	m.drain()
	m.check()
}

// drain empties Expire and Next, as every caller does.
func (m *model) drain() {
	m.sweep()
	for w := m.core.Expire(m.now); w != nil; w = m.core.Expire(m.now) {
		want, ok := m.leaving[w]
		if !ok || want != w.Reason {
			m.t.Fatalf("left with %v, the model says %v (%v)", w.Reason, want, ok)
		}
		delete(m.leaving, w)
	}
	if len(m.leaving) > 0 {
		m.t.Fatalf("%d should have left and did not", len(m.leaving))
	}
	for {
		if m.core.flight.n < m.core.limit { // with each slot taken the crowd has grown
			m.sweep()
		}
		want, run := m.next()
		got := m.core.Next(m.now)
		if got != want {
			m.t.Fatalf("next is %+v, the model says %+v", got, want)
		}
		if got == nil {
			return
		}
		m.admitted(got, run)
	}
}

func (m *model) admitted(w *Waiter, run *modelRun) {
	m.grants = append(m.grants, modelGrant{w.Grant, w.Level, run})
	if w.Level == priority.Critical {
		m.critical++
	}
}

// check compares everything that can be counted, and holds the promises.
func (m *model) check() {
	s := m.core.Stats(m.now)
	if s.InFlight != len(m.grants) || m.core.line.n != len(m.waiting) {
		m.t.Fatalf("in flight %d, waiting %d; the model says %d, %d", s.InFlight, m.core.line.n, len(m.grants), len(m.waiting))
	}
	var bytes int64
	for i := range s.Waiting {
		if want := m.count(i, i); s.Waiting[i] != want {
			m.t.Fatalf("class %d: %d waiting, want %d", i, s.Waiting[i], want)
		}
	}
	for _, w := range m.waiting {
		bytes += w.size
	}
	var said int64
	for _, n := range s.WaitingBytes {
		said += n
	}
	if bytes != said || m.core.config.MaxWaitingBytes > 0 && bytes > m.core.config.MaxWaitingBytes {
		m.t.Fatalf("%d bytes waiting, stats say %d", bytes, said)
	}
	var waits uint64
	for _, n := range s.Waits {
		waits += n
	}
	if waits != s.Waited {
		m.t.Fatalf("%d waits in buckets, %d in all", waits, s.Waited)
	}
}

func (m *model) count(from, to int) (n int) {
	for _, w := range m.waiting {
		if i := w.Level.Index(); i >= from && i <= to {
			n++
		}
	}
	return n
}

func (m *model) offer() {
	w := &Waiter{Ticket: Ticket{Level: priority.All()[m.byte()%priority.Count], Caller: string(rune('a' + m.byte()%4)), Weight: 1 << (m.byte() % 3)}}
	if b := m.byte(); b%2 == 0 {
		w.Deadline = m.now.Add(time.Duration(b) * time.Millisecond)
	}
	if b := m.byte(); b%4 == 0 {
		w.MaxWait = time.Duration(b-4) * time.Millisecond
	}
	w.Bytes = int64(m.byte()*2) - 1
	limit := m.core.limit
	gone := m.sweep()
	meter := m.core.meter
	for _, w := range gone { // the core is about to find out
		limit = m.law.limit
		if w.probe {
			meter.Untried(w.Level)
		}
	}
	silence := m.core.flight.silence(m.now)
	v, reason, gone := m.decide(w, limit, &meter, silence)
	got, evictee := m.core.Offer(m.now, w)
	if got != v || w.Reason != reason {
		m.t.Fatalf("%+v: %v %v, the model says %v %v", w.Ticket, got, w.Reason, v, reason)
	}
	if (evictee == nil) != (len(gone) == 0) || evictee != nil && evictee != gone[0] && m.core.config.MaxWaitingBytes == 0 {
		m.t.Fatalf("evicted %+v, the model says %+v", evictee, gone)
	}
	if evictee != nil {
		m.leave(evictee)
	}
	m.evictedForBytes()
	switch v {
	case entry.In:
		m.admitted(w, nil)
	case entry.Waits:
		m.joined[w] = m.now
		m.enter(w)
		m.waiting = append(m.waiting, w)
	}
}

// evictedForBytes follows who left for want of bytes; who that is has a test of its
// own, here it only has to add up.
func (m *model) evictedForBytes() {
	for w := m.core.out.oldest; w != nil; w = w.newer {
		if _, known := m.leaving[w]; !known && w.Reason == shed.Evicted {
			m.leave(w)
			m.leaving[w] = shed.Evicted
		}
	}
}

func (m *model) release() {
	if len(m.grants) == 0 {
		return
	}
	m.sweep() // with the estimates as they are: the core may know better only after
	i := m.byte() % len(m.grants)
	g := m.grants[i]
	m.grants = slices.Delete(m.grants, i, i+1)
	if g.level == priority.Critical {
		m.critical--
	}
	m.drainExpired()
	o := shed.Outcome(m.byte() % 4)
	m.core.Release(m.now, g.Grant, o)
	m.settle(g.run)
	before := m.core.Stats(m.now)
	m.core.Release(m.now, g.Grant, o)
	if after := m.core.Stats(m.now); after != before {
		m.t.Fatalf("a second release changed %+v to %+v", before, after)
	}
}

func (m *model) drainExpired() {
	for w := m.core.Expire(m.now); w != nil; w = m.core.Expire(m.now) {
		if want, ok := m.leaving[w]; !ok || want != w.Reason {
			m.t.Fatalf("left with %v, the model says %v (%v)", w.Reason, want, ok)
		}
		delete(m.leaving, w)
	}
}

func (m *model) cancel() {
	if len(m.waiting) == 0 {
		return
	}
	w := m.waiting[m.byte()%len(m.waiting)]
	if !m.core.Cancel(m.now, w) || w.Reason != shed.ClientGone {
		m.t.Fatalf("cancelling a waiter: %v", w.Reason)
	}
	m.leave(w)
}

func TestCoreAgreesWithAPlainModel(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		script := make([]byte, 4000)
		for i := range script {
			script[i] = byte(r.Uint32())
		}
		newModel(t, script, int64(seed%2)*modelBytes).run()
	}
}

func FuzzCore(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, false)
	f.Add([]byte("a queue is a promise about order"), true)
	f.Fuzz(func(t *testing.T, script []byte, bytes bool) {
		limit := int64(0)
		if bytes {
			limit = modelBytes
		}
		newModel(t, script, limit).run()
	})
}
