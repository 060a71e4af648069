package main

import (
	"strings"
	"testing"
	"time"
)

// A short version of the incident, in both ways.
func short(naive bool) scenario {
	s := incident
	s.naive, s.devices, s.tightened = naive, 70, 20
	s.after, s.limit = 60, 15*time.Second
	return s
}

func TestPacedLosesNothing(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	s := short(false)
	r, err := run(&log, s)
	if err != nil {
		t.Fatal(err)
	}
	if r.lost != 0 || r.deleted != 0 || r.opened != 0 {
		t.Errorf("%d lost, %d deleted, breaker opened %d times", r.lost, r.deleted, r.opened)
	}
	if r.before > allowed(s.quota) || r.after > allowed(s.tightened) || r.refused > 40 {
		t.Errorf("busiest seconds %d and %d, %d turned away", r.before, r.after, r.refused)
	}
	if !strings.Contains(log.String(), "in force") {
		t.Errorf("no numbers in force in the log:\n%s", log.String())
	}
}

func TestNaiveDeletesHealthyDevices(t *testing.T) {
	t.Parallel()
	r, err := run(&strings.Builder{}, short(true))
	if err != nil {
		t.Fatal(err)
	}
	if r.deleted == 0 || r.lost == 0 || r.opened == 0 {
		t.Errorf("%d deleted, %d lost, breaker opened %d times: the failure is gone", r.deleted, r.lost, r.opened)
	}
}
