package shared

import (
	"testing"
	"time"
)

func TestOvershootFindsTheFullestWindow(t *testing.T) {
	var passed []time.Duration
	for i := range 30 {
		passed = append(passed, time.Duration(i)*100*time.Millisecond)
	}
	passed = append(passed, 3*time.Second, 3*time.Second, 3*time.Second)
	if got := overshoot(passed, time.Second, 10); got < 0.199 || got > 0.201 {
		t.Errorf("12 in a second that allows 10: %v", got)
	}
	r := &run{rate: 10, burst: 2}
	if got := r.excess(passed); got != 1 { // three at once from a bucket of two
		t.Errorf("excess %v", got)
	}
}

func TestLoadIsOffBetweenBursts(t *testing.T) {
	l := load{on: 100 * time.Millisecond, off: 400 * time.Millisecond}
	if got := l.next(90*time.Millisecond, 20*time.Millisecond); got != 510*time.Millisecond {
		t.Errorf("20 ms of load after 90 ms of 100: %v", got)
	}
	if got := (load{}).next(time.Second, time.Second); got != 2*time.Second {
		t.Error(got)
	}
}
