package oracle

import (
	"testing"
	"time"
)

func TestWorstFindsABurst(t *testing.T) {
	start := time.Unix(0, 0)
	steady := []time.Time{start, start.Add(time.Second), start.Add(2 * time.Second)}
	if got := Worst(steady, 1, 1); got > 1e-9 {
		t.Errorf("steady calls exceed by %v", got)
	}
	if got := Worst(append(steady, start.Add(time.Second)), 1, 1); got < 0.99 {
		t.Errorf("a double call exceeds by %v", got)
	}
}
