package heap

import (
	"testing"
	"time"
)

func TestAFullQueueOfLargeBodiesStaysSmall(t *testing.T) {
	r, err := Run(time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if r.Waiting != waiting {
		t.Errorf("%d waited, want %d", r.Waiting, waiting)
	}
	if over := int64(r.Peak) - int64(r.Base); over > Bound {
		t.Errorf("heap grew by %d MiB", over>>20)
	}
	if r.Answers[200] != slots+waiting {
		t.Errorf("answers %v", r.Answers)
	}
}
