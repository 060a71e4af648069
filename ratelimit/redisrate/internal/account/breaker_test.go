package account

import (
	"testing"
	"time"
)

const ms = time.Millisecond

func TestThreeFailuresInARowTrip(t *testing.T) {
	var b Breaker
	for i := range 3 {
		at := time.Duration(i+1) * 20 * ms
		if tripped := b.Record(Result{At: at, Started: at - 20*ms, Why: WhyTimeout}); tripped != (i == 2) {
			t.Errorf("failure %d: tripped %v", i+1, tripped)
		}
	}
}

// Calls that fail together are one stall, of this process or the network.
func TestAStallDoesNotTrip(t *testing.T) {
	var b Breaker
	for i := range 100 {
		b.Record(Result{At: time.Duration(i) * ms, Started: time.Duration(i) * ms})
	}
	for range 50 {
		if b.Record(Result{At: 130 * ms, Started: 100 * ms, Why: WhyTimeout}) {
			t.Fatal("50 of 150 calls failed, all at once")
		}
	}
}

func TestHalfOfCallsFailingTrips(t *testing.T) {
	var b Breaker
	tripped := 0
	for i := range 20 {
		at := time.Duration(i) * 50 * ms
		why := WhyNothing
		if i%2 == 1 {
			why = WhyReadOnly
		}
		if b.Record(Result{At: at, Started: at - ms, Why: why}) {
			tripped = i
			break
		}
	}
	if tripped != 5 { // the sixth call: three of six, and at least five
		t.Errorf("tripped at call %d", tripped)
	}
}

func TestOldFailuresAreForgotten(t *testing.T) {
	var b Breaker
	for i := range 50 {
		at := time.Duration(i) * 600 * ms
		why := WhyNothing
		if i%2 == 1 {
			why = WhyLost
		}
		if b.Record(Result{At: at, Started: at - ms, Why: why}) {
			t.Fatal("a failure every 1.2 s tripped")
		}
	}
}

// A third of a cluster away: its keys fail again and again, the others answer.
func TestAPartDoesNotTripTheWhole(t *testing.T) {
	b := Breaker{Parts: true}
	for i := range 3000 {
		at := time.Duration(i) * ms
		r := Result{At: at, Started: at - ms}
		if i%10 >= 6 {
			r.Why, r.Again = WhyRefused, true
		}
		if b.Record(r) {
			t.Fatalf("tripped at call %d", i)
		}
	}
}

func TestTwoAnsweredProbesClose(t *testing.T) {
	b := Breaker{}
	b.enter(0, Degraded, WhyTimeout)
	steps := []struct {
		why  Why
		want State
	}{{WhyTimeout, Degraded}, {WhyNothing, Probing}, {WhyLoading, Degraded}, {WhyNothing, Probing}, {WhyNothing, Shared}}
	for i, s := range steps {
		b.Probed(time.Duration(i)*ms, s.why)
		if b.State != s.want {
			t.Errorf("step %d: %v, want %v", i, b.State, s.want)
		}
	}
	for tries := range 100 {
		if d := RetryDelay(tries); d <= 0 || d > maxProbe+minProbe {
			t.Errorf("try %d after %v", tries, d)
		}
	}
}

func TestAStallOfTheProcessIsNoSilenceOfTheStore(t *testing.T) {
	b := Breaker{}
	b.Record(Result{At: 0})
	for range 10 { // calls of many keys, all found late after a stall
		if b.Late(300*ms, 5*ms, 100*ms) {
			t.Fatal("away in the moment of waking up")
		}
	}
	if b.Record(Result{At: 310 * ms}); b.Late(340*ms, 320*ms, 100*ms) {
		t.Error("away though the answers were there")
	}
	a := newTestAccount(1, 10, View{Peers: 1, Trip: ms})
	a.Overdue(a.Ask(0, 1, 1, 0).Serial)
	for _, at := range []time.Duration{300 * ms, 349 * ms, 350 * ms} {
		if a.Listen(at, 100*ms, a.view); a.Away() != (at == 350*ms) {
			t.Errorf("at %v away: %v", at, a.Away())
		}
	}
}
