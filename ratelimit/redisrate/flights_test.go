package redisrate

import (
	"testing"
	"time"
)

func newTestAccount(rate float64, burst int, v view) account {
	c := defaults()
	c.limit = limit{rate: rate, burst: burst}
	c.law.trip = c.budget
	return newAccount(&c, v)
}

// granted is an answer of a bucket that held before and gives n.
func granted(a *account, before, n int) reply {
	return reply{granted: n, before: int64(before) * micro, limit: a.conf.limit, multiplier: 1}
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
			v := view{peers: 1, trip: 10 * ms}
			a := newTestAccount(slow, 10, v)
			a.learn(0, granted(&a, 10, 0))
			first := a.ask(0, 1, 1, 0)
			a.flights.overdue(first.serial)
			second := a.ask(20*ms, 1, 1, 0)
			a.flights.overdue(second.serial)
			for range 2 {
				if d := a.takeLate(40*ms, 1); !d.ok {
					t.Fatalf("%+v", d)
				}
			}
			calls := []request{first, second}
			for i, which := range c.order {
				before := 10 - which // the second call found one less
				a.apply(time.Duration(50+i)*ms, 0, calls[which], granted(&a, before, c.grants[which]), v)
			}
			if owed := a.unheard.owed(10); owed != c.owed || a.held != c.held || a.advance != 0 || int(a.balance) != c.balances {
				t.Errorf("owes %d, holds %d, advance %d, balance %v", owed, a.held, a.advance, a.balance)
			}
			if r := a.ask(60*ms, 0, 0, 0); r.debit != int64(c.owed)*micro {
				t.Errorf("debits %d", r.debit)
			}
			if r := a.ask(61*ms, 0, 0, 0); r.debit != 0 {
				t.Errorf("debits %d again while that is on its way", r.debit)
			}
		})
	}
}

func TestAReturnIsChargedWhatWasReallySpent(t *testing.T) {
	v := view{peers: 1, trip: ms}
	a := newTestAccount(slow, 20, v)
	a.learn(0, granted(&a, 5, 0)) // the bucket is low
	a.goAway(100*ms, v)
	for i := range 6 {
		if d := a.take(110*ms, 1, 0); d.ok != (i < 5) {
			t.Fatalf("request %d: %+v", i, d)
		}
	}
	if r := a.ask(200*ms, 0, 0, 0); r.debit != 5*micro {
		t.Errorf("debits %d of 5 tokens spent", r.debit/micro)
	}
}

func TestSlotsTakenAlongAreNotChargedAgain(t *testing.T) {
	v := view{peers: 1, trip: ms}
	a := newTestAccount(1000, 100, v)
	a.apply(0, 0, a.ask(0, 20, 1, 0), granted(&a, 100, 20), v)
	a.goAway(0, v)
	for range 30 {
		a.take(0, 1, 0)
	}
	if r := a.ask(0, 0, 0, 0); r.debit != 10*micro {
		t.Errorf("debits %d tokens of 30, 20 of them paid as slots", r.debit/micro)
	}
}

func TestRoundTripFollowsTheStore(t *testing.T) {
	var r roundTrip
	if r.patience() != firstPatience {
		t.Errorf("before the first answer %v", r.patience())
	}
	r.observe(80 * ms) // with dialling
	for range 8 {
		r.observe(10 * ms)
	}
	if r.patience() != minPatience || r.silence() != minSilence {
		t.Errorf("near: %v, %v", r.patience(), r.silence())
	}
	r.observe(10 * time.Second)
	if p := r.patience(); p > 25*ms {
		t.Errorf("one stall: %v", p)
	}
	for range 100 {
		r.observe(100 * ms)
	}
	if p := r.patience(); p < 145*ms || p > 155*ms {
		t.Errorf("far: %v", p)
	}
	for range 100 {
		r.observe(time.Second)
	}
	if r.patience() != maxPatience {
		t.Errorf("very far: %v", r.patience())
	}
}
