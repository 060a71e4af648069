package account

import (
	"testing"
	"time"
)

func newTestAccount(rate float64, burst int, v View) Account {
	c := Defaults()
	c.Limit = Limit{Rate: rate, Burst: burst}
	return New(&c, v)
}

// granted is an answer of a bucket that held before and gives n.
func granted(a *Account, before, n int) Reply {
	return Reply{Granted: n, Before: int64(before) * Micro, Limit: a.conf.Limit, Multiplier: 1}
}

func TestTokensAreChargedOnceWhateverTheOrderOfAnswers(t *testing.T) {
	for _, c := range []struct {
		name                 string
		order                [2]int // which of the two calls is answered first, and second
		grants               [2]int
		owed, held, balances int
	}{
		{"in order", [2]int{0, 1}, [2]int{1, 1}, 0, 0, 8},
		{"the other way round", [2]int{1, 0}, [2]int{1, 1}, 0, 0, 8},
		{"the late one found nothing", [2]int{1, 0}, [2]int{0, 1}, 1, 0, 8},
		{"none found anything", [2]int{0, 1}, [2]int{0, 0}, 2, 0, 9},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := View{Peers: 1, Trip: 10 * ms}
			a := newTestAccount(1.0/3600, 10, v)
			a.learn(0, granted(&a, 10, 0))
			first := a.Ask(0, 1, 1, 0)
			a.flights.overdue(first.Serial)
			second := a.Ask(20*ms, 1, 1, 0)
			a.flights.overdue(second.Serial)
			for range 2 {
				if d := a.TakeLate(40*ms, 1); !d.Ok {
					t.Fatalf("%+v", d)
				}
			}
			calls := []Request{first, second}
			for i, which := range c.order {
				before := 10 - which // the second call found one less
				a.Apply(time.Duration(50+i)*ms, 0, calls[which], granted(&a, before, c.grants[which]), v)
			}
			if owed := int(a.unheard.rest()); owed != c.owed || a.held != c.held || a.advance != 0 || int(a.balance) != c.balances {
				t.Errorf("owes %d, holds %d, advance %d, balance %v", owed, a.held, a.advance, a.balance)
			}
			r := a.Ask(60*ms, 0, 0, 0)
			if r.Debit != int64(c.owed)*Micro {
				t.Errorf("debits %d", r.Debit)
			}
			if again := a.Ask(61*ms, 0, 0, 0); again.Bill != r.Bill || again.Debit != r.Debit {
				t.Errorf("while that is on its way another bill: %+v", again)
			}
		})
	}
}

func TestAReturnIsChargedWhatWasReallySpent(t *testing.T) {
	v := View{Peers: 1, Trip: ms}
	a := newTestAccount(1.0/3600, 20, v)
	a.learn(0, granted(&a, 5, 0)) // the bucket is low
	a.GoAway(100*ms, v)
	for i := range 6 {
		if d := a.Take(110*ms, 1, 0); d.Ok != (i < 5) {
			t.Fatalf("request %d: %+v", i, d)
		}
	}
	if r := a.Ask(200*ms, 0, 0, 0); r.Debit != 5*Micro {
		t.Errorf("debits %d of 5 tokens spent", r.Debit/Micro)
	}
}

func TestSlotsTakenAlongAreNotChargedAgain(t *testing.T) {
	v := View{Peers: 1, Trip: ms}
	a := newTestAccount(1000, 100, v)
	a.Apply(0, 0, a.Ask(0, 20, 1, 0), granted(&a, 100, 20), v)
	a.GoAway(0, v)
	for range 30 {
		a.Take(0, 1, 0)
	}
	if r := a.Ask(0, 0, 0, 0); r.Debit != 10*Micro {
		t.Errorf("debits %d tokens of 30, 20 of them paid as slots", r.Debit/Micro)
	}
}

func TestRoundTripFollowsTheStore(t *testing.T) {
	var r RoundTrip
	if r.Patience() != FirstPatience {
		t.Errorf("before the first answer %v", r.Patience())
	}
	r.Observe(80 * ms) // with dialling
	for range 8 {
		r.Observe(10 * ms)
	}
	if r.Patience() != minPatience || r.Silence() != minSilence {
		t.Errorf("near: %v, %v", r.Patience(), r.Silence())
	}
	r.Observe(10 * time.Second)
	if p := r.Patience(); p > 25*ms {
		t.Errorf("one stall: %v", p)
	}
	for range 100 {
		r.Observe(100 * ms)
	}
	if p := r.Patience(); p < 145*ms || p > 155*ms {
		t.Errorf("far: %v", p)
	}
	for range 100 {
		r.Observe(time.Second)
	}
	if r.Patience() != maxPatience {
		t.Errorf("very far: %v", r.Patience())
	}
}
