package account

import (
	"testing"
	"testing/quick"
	"time"
)

func TestSlotsMatureAsOneStream(t *testing.T) {
	l := lease{at: time.Second, balance: 2.5, rate: 10, granted: 6}
	for k, want := range map[int]time.Duration{1: 0, 2: 0, 3: 50 * ms, 4: 150 * ms, 6: 350 * ms} {
		if got := l.matures(k) - l.at; got != want {
			t.Errorf("slot %d matures after %v, want %v", k, got, want)
		}
	}
}

func TestSlotsPerish(t *testing.T) {
	h := holdings{perish: 200 * ms}
	h.add(lease{balance: 2, rate: 10, granted: 4}) // at 0, 0, 100 ms, 200 ms
	for _, c := range []struct {
		at   time.Duration
		lost int
	}{{200 * ms, 0}, {201 * ms, 2}, {301 * ms, 1}, {401 * ms, 1}, {time.Hour, 0}} {
		if got := h.expire(c.at); got != c.lost {
			t.Errorf("at %v %d perished, want %d", c.at, got, c.lost)
		}
	}
	if h.held != 0 || len(h.leases) != 0 {
		t.Errorf("%+v", h)
	}
}

// Whatever happens, what is held is what was granted and not spent, perished or
// cleared, and slots come in order of maturity.
func TestHoldingsAddUp(t *testing.T) {
	check := func(ops []uint16) bool {
		h := holdings{perish: 50 * ms}
		held, now := 0, time.Duration(0)
		for _, op := range ops {
			n := int(op>>3) % 7
			switch op % 8 {
			case 0, 1, 2:
				h.add(lease{at: now, balance: float64(n) - 3, rate: 1000, granted: n + 1})
				held += n + 1
			case 3, 4:
				if n > 0 && h.held >= n {
					if h.nth(n) < h.nth(1) {
						return false
					}
					h.spend(n)
					held -= n
				}
			case 5:
				held -= h.expire(now)
			case 6:
				h.put(n, now)
				held += n
			case 7:
				now += time.Duration(n) * 10 * ms
			}
			if h.held != held || h.held < 0 || h.ripe(now) > h.held {
				return false
			}
		}
		return h.clear() == held && h.held == 0
	}
	if err := quick.Check(check, &quick.Config{MaxCount: 3000}); err != nil {
		t.Error(err)
	}
}

func TestLawScalesWithTheFleet(t *testing.T) {
	w := Law{Tau: 50 * ms, Ahead: 50 * ms}
	for _, c := range []struct {
		rate         float64
		burst, peers int
		leasing      bool
		q            int
	}{
		{1000, 100, 8, true, 6}, {1000, 100, 1, true, 50}, {1000, 100, 100, false, 0}, {50, 100, 2, false, 0},
		{100, 100, 2, true, 2}, {1000, 10, 8, false, 0}, {100_000, 20_000, 1000, true, 5}, {1000, 100, 0, true, 1},
	} {
		got := w.Terms(c.rate, c.burst, View{Peers: c.peers})
		if got.Leasing != c.leasing || got.Q != c.q {
			t.Errorf("%+v: %+v", c, got)
		}
	}
	if got := w.Terms(1, 1, View{Peers: 1000}); got.Tau != 50*ms || got.calm != 500*ms {
		t.Errorf("1000 processes have an interval of %v and a pause of %v", got.Tau, got.calm)
	}
}
