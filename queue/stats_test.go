package queue

import (
	"testing"
	"time"

	"github.com/headgate-go/headgate/shed"
)

func TestEveryWaitFallsBelowItsBucketsBound(t *testing.T) {
	for _, d := range []time.Duration{
		0, time.Millisecond - 1, time.Millisecond, 2*time.Millisecond - 1, 250 * time.Millisecond,
		4095 * time.Millisecond, 4096 * time.Millisecond, time.Hour,
	} {
		i := waitBucket(d)
		if d >= WaitBound(i) || i > 0 && d < WaitBound(i-1) {
			t.Errorf("%v is in bucket %d: [%v, %v)", d, i, WaitBound(max(i-1, 0)), WaitBound(i))
		}
	}
	if got := WaitBound(WaitBuckets - 1); got != shed.Forever {
		t.Errorf("the last bucket ends at %v", got)
	}
}

func TestStatsSayWhatTheLimitStaysWithin(t *testing.T) {
	for _, c := range []struct {
		law         shed.Limit
		least, most int
	}{
		{shed.Fixed(7), 7, 7},
		{shed.Throughput{Min: 3, Max: 90}, 3, 90},
	} {
		core, err := NewCore(Config{Limit: c.law})
		if err != nil {
			t.Fatal(err)
		}
		if s := core.Stats(time.Unix(0, 0)); s.Least != c.least || s.Most != c.most {
			t.Errorf("%#v: within %d and %d, want %d and %d", c.law, s.Least, s.Most, c.least, c.most)
		}
	}
}
