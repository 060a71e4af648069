package shed

import "time"

// brake is the fast half of Little's law. A window takes time to close, and in that
// time a backend that has just slowed down can be filled with more than it will
// finish in time. The brake looks only at when the latest work
// ended. While it is on, it holds the limit at what can end within the budget at
// the rate seen since, until that is no less than the limit or a window closes.
type brake struct {
	ended [brakeMemory]time.Duration // a ring of instants
	n     int
	next  int
	busy  time.Duration // work is in flight since then

	on    bool
	from  time.Duration // the rate is counted from here
	count int           // ends since then
	limit int
}

const (
	brakeMemory = 16
	brakeOn     = 0.6 // part of the limit that has to be too much
	brakeStep   = 0.2 // change that is worth a move
)

// end records that work ended at t.
func (b *brake) end(t time.Duration) {
	b.ended[b.next] = t
	b.next = (b.next + 1) % brakeMemory
	b.n = min(b.n+1, brakeMemory)
	b.count++
}

// rest tells that nothing was in flight until t: no end was to be expected.
func (b *brake) rest(t time.Duration) { b.n, b.busy = 0, t }

// silence returns for how long nothing has ended although work was in flight.
func (b *brake) silence(t time.Duration) time.Duration {
	if b.n == 0 {
		return t - b.busy
	}
	return t - b.ended[(b.next-1+brakeMemory)%brakeMemory]
}

// check applies the brake, or lets it go, and reports whether it did either. A silence
// shorter than the known latency says nothing: ends come in rounds.
func (b *brake) check(t time.Duration, inFlight, limit int, budget, latency time.Duration) bool {
	if b.on {
		return b.hold(t, limit, budget)
	}
	// Nothing below can be met while even the longest time with the fewest ends
	// would not do: nearly always.
	oldest := b.busy
	if b.n > 0 {
		oldest = b.ended[(b.next-b.n+brakeMemory)%brakeMemory]
	}
	if 3*float64(budget) >= float64(t-oldest)*float64(inFlight) {
		return false
	}
	// For k ends in a time T the rate is at most about (k + 2√k)/T.
	for _, e := range [...]struct{ k, most int }{{1, 3}, {2, 4}, {4, 6}, {16, 20}} {
		if b.n < e.k {
			return false
		}
		from := b.ended[(b.next-e.k+brakeMemory)%brakeMemory]
		most := float64(e.most) * float64(budget)
		if T := float64(t - from); t-from > latency && most < T*float64(inFlight) && most < T*brakeOn*float64(limit) {
			b.on, b.from, b.count, b.limit = true, from, e.k, int(most/T)
			return true
		}
	}
	return false
}

// hold keeps the limit at what the ends since the brake went on allow.
func (b *brake) hold(t time.Duration, limit int, budget time.Duration) bool {
	most := float64(b.count+1) * float64(budget) / float64(t-b.from)
	if most >= float64(limit) {
		b.on = false
		return true
	}
	if most < float64(b.limit)*(1-brakeStep) || most > float64(b.limit)*(1+brakeStep)+1 {
		b.limit = int(most)
	}
	return false
}
