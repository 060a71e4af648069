package queue

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

// model is the queue's rules written down in the plainest way, O(n) everywhere. It
// borrows nothing from the core but the meter's estimates.
type model struct {
	t        *testing.T
	core     *Core
	law      *scripted
	now      time.Time
	script   []byte
	waiting  []*Waiter // by arrival
	leaving  map[*Waiter]shed.Reason
	turn     map[*Waiter]bool
	rings    [priority.Count][]string
	since    int // dispatches since the lowest class had its turn
	grants   []modelGrant
	critical int
	joined   map[*Waiter]time.Time
}

type modelGrant struct {
	Grant
	level priority.Level
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
	core, err := NewCore(Config{Limit: law, Bound: modelBound, Bytes: bytes, Reserve: modelReserve, MaxWait: modelStay})
	if err != nil {
		t.Fatal(err)
	}
	return &model{
		t: t, core: core, law: law, now: time.Unix(1e9, 0), script: script,
		leaving: map[*Waiter]shed.Reason{}, joined: map[*Waiter]time.Time{},
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
		want := m.next()
		got := m.core.Next(m.now)
		if got != want {
			m.t.Fatalf("next is %+v, the model says %+v", got, want)
		}
		if got == nil {
			return
		}
		m.admitted(got)
	}
}

func (m *model) admitted(w *Waiter) {
	m.grants = append(m.grants, modelGrant{w.Grant, w.Level})
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
	if bytes != said || m.core.config.Bytes > 0 && bytes > m.core.config.Bytes {
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
	w := &Waiter{Ticket: Ticket{Level: priority.FromIndex(m.byte() % priority.Count), Tenant: string(rune('a' + m.byte()%4))}}
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
	silence := m.core.silence(m.now)
	v, reason, gone := m.decide(w, limit, &meter, silence)
	got, evictee := m.core.Offer(m.now, w)
	if got != v || w.Reason != reason {
		m.t.Fatalf("%+v: %v %v, the model says %v %v", w.Ticket, got, w.Reason, v, reason)
	}
	if (evictee == nil) != (len(gone) == 0) || evictee != nil && evictee != gone[0] && m.core.config.Bytes == 0 {
		m.t.Fatalf("evicted %+v, the model says %+v", evictee, gone)
	}
	if evictee != nil {
		m.leave(evictee)
	}
	m.evictedForBytes()
	switch v {
	case shed.In:
		m.admitted(w)
	case shed.Waits:
		m.joined[w] = m.now
		m.waiting = append(m.waiting, w)
		if i := w.Level.Index(); !slices.Contains(m.rings[i], w.Tenant) {
			m.rings[i] = append(m.rings[i], w.Tenant)
		}
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

// decide is the door in plain words.
func (m *model) decide(w *Waiter, limit int, meter *shed.Meter, silence time.Duration) (shed.Verdict, shed.Reason, []*Waiter) {
	left, need := shed.Forever, time.Duration(0)
	if !w.Deadline.IsZero() {
		left = w.Deadline.Sub(m.now)
		need = meter.Needs(m.now, w.Level)
		if left > 0 && meter.Doubtful(m.now, w.Level, left) && meter.Try(w.Level) {
			need = 0
		}
	}
	if left != shed.Forever && left-need <= 0 {
		return shed.Out, shed.Hopeless, nil
	}
	others := len(m.grants)-m.critical < max(limit-modelReserve, 1) && len(m.grants) < limit
	if m.slotFor(w.Level, others, limit) {
		return shed.In, shed.Admitted, nil
	}
	stay := modelStay
	switch {
	case w.MaxWait < 0:
		return shed.Out, shed.Capacity, nil
	case w.MaxWait > 0:
		stay = min(stay, w.MaxWait)
	}
	if rate, ok := meter.Rate(m.now, silence); ok {
		wait := time.Duration(float64(m.ahead(w)+1) / rate * float64(time.Second))
		if left != shed.Forever && wait > left-need {
			return shed.Out, shed.Hopeless, nil
		}
		if wait > stay {
			return shed.Out, shed.QueueFull, nil
		}
	}
	return m.place(w)
}

func (m *model) slotFor(l priority.Level, others bool, limit int) bool {
	if l < priority.Critical {
		return others && len(m.waiting) == 0
	}
	return len(m.grants) < limit && (len(m.waiting) == 0 || !others && m.count(3, 3) == 0)
}

// ahead is the promise's formula, term by term.
func (m *model) ahead(w *Waiter) int {
	n := m.count(w.Level.Index()+1, priority.Count)
	own := len(m.tenant(w.Level.Index(), w.Tenant))
	for _, name := range m.rings[w.Level.Index()] {
		n += min(len(m.tenant(w.Level.Index(), name)), own+1)
	}
	return n
}

func (m *model) tenant(class int, name string) (line []*Waiter) {
	for _, w := range m.waiting {
		if w.Level.Index() == class && w.Tenant == name {
			line = append(line, w)
		}
	}
	return line
}

// place finds room for w by number, then by bytes.
func (m *model) place(w *Waiter) (shed.Verdict, shed.Reason, []*Waiter) {
	i := w.Level.Index()
	full := len(m.waiting) >= modelBound
	if n := m.count(0, i); n < len(m.waiting) && n >= max(int(defaultShare[i]*modelBound), 1) {
		full = true
	}
	var gone []*Waiter
	if full {
		v := m.lastServed(i, w.Tenant)
		if v == nil {
			return shed.Out, shed.QueueFull, nil
		}
		gone = append(gone, v)
	}
	if m.core.config.Bytes > 0 && !m.core.fits(m.core.at(m.now), w, first(gone)) {
		return shed.Out, shed.QueueBytes, nil
	}
	return shed.Waits, shed.Admitted, gone
}

func first(w []*Waiter) *Waiter {
	if len(w) == 0 {
		return nil
	}
	return w[0]
}

// lastServed plays the order to its end and returns who yields to a newcomer.
func (m *model) lastServed(class int, tenant string) *Waiter {
	lo := slices.IndexFunc(m.rings[:], func(r []string) bool { return len(r) > 0 })
	if lo > class {
		return nil
	}
	most, longest := "", 0
	for _, name := range m.rings[lo] { // of equals, the one whose turn is last
		if n := len(m.tenant(lo, name)); n >= longest {
			most, longest = name, n
		}
	}
	own := m.tenant(lo, tenant)
	switch {
	case lo < class, most != tenant && longest >= len(own)+2:
		return m.tail(m.tenant(lo, most))
	case len(own) > 0 && m.newestFirst(own):
		return own[0]
	}
	return nil
}

func (m *model) newestFirst(line []*Waiter) bool {
	w := line[0]
	return m.now.Sub(m.joined[w]) >= w.half-w.joined
}

func (m *model) tail(line []*Waiter) *Waiter {
	if m.newestFirst(line) {
		return line[0]
	}
	return line[len(line)-1]
}

// next is who goes now, taken out of the model.
func (m *model) next() *Waiter {
	limit := m.core.limit
	if len(m.waiting) == 0 || len(m.grants) >= limit {
		return nil
	}
	others := len(m.grants)-m.critical < max(limit-modelReserve, 1)
	lo, hi := priority.Count, -1
	for i, r := range m.rings {
		if len(r) > 0 {
			lo, hi = min(lo, i), i
		}
	}
	class := hi
	if !others && hi < priority.Count-1 {
		return nil
	}
	m.since++
	if m.since >= 20 && (others || lo == hi) {
		class, m.since = lo, 0
	}
	name := m.rings[class][0]
	line := m.tenant(class, name)
	w := line[0]
	if m.newestFirst(line) {
		w = line[len(line)-1]
	}
	m.leave(w)
	if len(line) > 1 {
		m.rings[class] = append(m.rings[class][1:], name)
	}
	return w
}

// leave takes w out of the model.
func (m *model) leave(w *Waiter) {
	m.waiting = slices.DeleteFunc(m.waiting, func(x *Waiter) bool { return x == w })
	if i := w.Level.Index(); len(m.tenant(i, w.Tenant)) == 0 {
		m.rings[i] = slices.DeleteFunc(m.rings[i], func(n string) bool { return n == w.Tenant })
	}
}

// sweep makes everybody leave whose time is over.
func (m *model) sweep() (gone []*Waiter) {
	for _, w := range slices.Clone(m.waiting) {
		stay := modelStay
		if w.MaxWait > 0 {
			stay = min(stay, w.MaxWait)
		}
		late := !w.Deadline.IsZero() && !w.Deadline.After(m.now)
		tight := !w.Deadline.IsZero() && !w.probe && w.Deadline.Sub(m.now) <= m.core.meter.Needs(m.now, w.Level)
		switch {
		case late, tight:
			m.leaving[w] = shed.Hopeless
		case m.now.Sub(m.joined[w]) >= stay:
			m.leaving[w] = shed.WaitedTooLong
		default:
			continue
		}
		m.leave(w)
		gone = append(gone, w)
	}
	return gone
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
