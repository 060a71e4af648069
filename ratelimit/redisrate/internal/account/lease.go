package account

import "time"

// lease is a run of slots that one call granted. Each slot lets one token's worth
// through, once, from its maturity until it perishes. Together the slots of all
// processes are the stream a single bucket would let through: the server hands
// every position of it to one of them. Times are distances from the limiter's
// start; a slot is placed at the reply's arrival plus its distance, never before
// the server meant it, so clocks need not agree.
type lease struct {
	at      time.Duration // when slots the bucket already held can be used
	balance float64       // tokens in the bucket before the grant
	rate    float64       // tokens per second in force
	granted int
	spent   int
}

func (l *lease) left() int { return l.granted - l.spent }

// matures returns when the k-th slot of the lease, counted from 1, can be used.
func (l *lease) matures(k int) time.Duration {
	short := float64(k) - l.balance
	if short <= 0 {
		return l.at
	}
	return l.at + seconds(short/l.rate)
}

// holdings are the slots a key holds in this process, soonest first.
type holdings struct {
	perish time.Duration // life of a slot after its maturity
	back   lease         // slots returned unspent; all count as maturing at back.at
	leases []lease
	held   int
}

func (h *holdings) add(l lease) {
	h.leases = append(h.leases, l)
	h.held += l.granted
}

// expire drops slots that perished and returns how many.
func (h *holdings) expire(t time.Duration) (lost int) {
	if n := h.back.left(); n > 0 && h.back.at+h.perish < t {
		h.back, lost = lease{}, n
	}
	for i := range h.leases {
		l := &h.leases[i]
		for l.left() > 0 && l.matures(l.spent+1)+h.perish < t {
			l.spent++
			lost++
		}
		if l.left() > 0 {
			break
		}
	}
	h.held -= lost
	h.compact()
	return lost
}

// compact forgets spent leases, keeping the slice's memory.
func (h *holdings) compact() {
	n := 0
	for n < len(h.leases) && h.leases[n].left() == 0 {
		n++
	}
	if n > 0 {
		h.leases = h.leases[:copy(h.leases, h.leases[n:])]
	}
}

// nth returns when the n-th slot held can be used; there must be one.
func (h *holdings) nth(n int) time.Duration {
	at := time.Duration(0)
	if b := h.back.left(); b > 0 {
		if n <= b {
			return h.back.at
		}
		at, n = h.back.at, n-b
	}
	for i := range h.leases {
		l := &h.leases[i]
		if n <= l.left() {
			return max(at, l.matures(l.spent+n))
		}
		at, n = max(at, l.matures(l.granted)), n-l.left()
	}
	return at
}

// spend takes the n soonest slots; as many must be held.
func (h *holdings) spend(n int) {
	h.held -= n
	b := min(n, h.back.left())
	h.back.spent += b
	n -= b
	for i := range h.leases {
		k := min(n, h.leases[i].left())
		h.leases[i].spent += k
		n -= k
	}
	h.compact()
}

// put takes back n slots that had matured by at.
func (h *holdings) put(n int, at time.Duration) {
	h.back = lease{at: max(h.back.at, at), balance: float64(h.back.left() + n), rate: 1, granted: h.back.left() + n}
	h.held += n
}

// clear drops everything and returns how many slots there were.
func (h *holdings) clear() int {
	n := h.held
	h.back, h.leases, h.held = lease{}, h.leases[:0], 0
	return n
}

// ripe returns how many slots can be used at t, of the first few: a number to
// show, not to decide on.
func (h *holdings) ripe(t time.Duration) int {
	n := 0
	if h.back.at <= t {
		n = h.back.left()
	}
	for i := range h.leases {
		l := &h.leases[i]
		if l.at > t {
			continue
		}
		due := int(l.balance + (t-l.at).Seconds()*l.rate)
		n += max(0, min(due, l.granted)-l.spent)
	}
	return n
}
