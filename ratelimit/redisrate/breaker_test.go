package redisrate

import (
	"testing"
	"time"
)

const ms = time.Millisecond

func TestThreeFailuresInARowTrip(t *testing.T) {
	var b breaker
	for i := range 3 {
		at := time.Duration(i+1) * 20 * ms
		if tripped := b.record(result{at: at, started: at - 20*ms, why: WhyTimeout}); tripped != (i == 2) {
			t.Errorf("failure %d: tripped %v", i+1, tripped)
		}
	}
}

// Calls that fail together are one stall, of this process or the network.
func TestAStallDoesNotTrip(t *testing.T) {
	var b breaker
	for i := range 100 {
		b.record(result{at: time.Duration(i) * ms, started: time.Duration(i) * ms})
	}
	for range 50 {
		if b.record(result{at: 130 * ms, started: 100 * ms, why: WhyTimeout}) {
			t.Fatal("50 of 150 calls failed, all at once")
		}
	}
}

func TestHalfOfCallsFailingTrips(t *testing.T) {
	var b breaker
	tripped := 0
	for i := range 20 {
		at := time.Duration(i) * 50 * ms
		why := WhyNothing
		if i%2 == 1 {
			why = WhyReadOnly
		}
		if b.record(result{at: at, started: at - ms, why: why}) {
			tripped = i
			break
		}
	}
	if tripped != 5 { // the sixth call: three of six, and at least five
		t.Errorf("tripped at call %d", tripped)
	}
}

func TestOldFailuresAreForgotten(t *testing.T) {
	var b breaker
	for i := range 50 {
		at := time.Duration(i) * 600 * ms
		why := WhyNothing
		if i%2 == 1 {
			why = WhyLost
		}
		if b.record(result{at: at, started: at - ms, why: why}) {
			t.Fatal("a failure every 1.2 s tripped")
		}
	}
}

// A third of a cluster away: its keys fail again and again, the others answer.
func TestAPartDoesNotTripTheWhole(t *testing.T) {
	b := breaker{parts: true}
	for i := range 3000 {
		at := time.Duration(i) * ms
		r := result{at: at, started: at - ms}
		if i%10 >= 6 {
			r.why, r.again = WhyRefused, true
		}
		if b.record(r) {
			t.Fatalf("tripped at call %d", i)
		}
	}
}

func TestTwoAnsweredProbesClose(t *testing.T) {
	b := breaker{}
	b.enter(0, Degraded, WhyTimeout)
	steps := []struct {
		why  Why
		want State
	}{{WhyTimeout, Degraded}, {WhyNothing, Probing}, {WhyLoading, Degraded}, {WhyNothing, Probing}, {WhyNothing, Shared}}
	for i, s := range steps {
		b.probed(time.Duration(i)*ms, s.why)
		if b.state != s.want {
			t.Errorf("step %d: %v, want %v", i, b.state, s.want)
		}
	}
	for tries := range 100 {
		if d := retryDelay(tries); d <= 0 || d > maxProbe+minProbe {
			t.Errorf("try %d after %v", tries, d)
		}
	}
}
