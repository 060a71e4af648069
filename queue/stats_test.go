package queue

import (
	"testing"
	"time"

	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

func TestEveryWaitFallsBelowItsBucketsBound(t *testing.T) {
	for _, d := range []time.Duration{
		0, time.Millisecond - 1, time.Millisecond, 2*time.Millisecond - 1, 250 * time.Millisecond,
		4095 * time.Millisecond, 4096 * time.Millisecond, time.Hour,
	} {
		i := waitBucket(d)
		if last := i == waitBuckets-1; !last && d >= time.Millisecond<<i || i > 0 && d < time.Millisecond<<(i-1) {
			t.Errorf("%v is in bucket %d", d, i)
		}
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

func TestStatsSayWhoHadTheSlotsAndHowFarEstimatesWereOff(t *testing.T) {
	core, err := NewCore(Config{Limit: shed.Fixed(4), MaxWait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1e9, 0)
	first := &Waiter{Ticket: Ticket{Level: priority.High, Slots: 3}}
	core.Offer(now, first)
	second := &Waiter{Ticket: Ticket{Slots: 2}}
	core.Offer(now, second)
	now = now.Add(time.Second)
	core.Release(now, first.Grant, shed.Served)
	if core.Next(now) != second {
		t.Fatal("the second does not go")
	}
	now = now.Add(100 * time.Millisecond)
	core.Release(now, second.Grant, shed.Served)
	s := core.Stats(now)
	var want [priority.Count]time.Duration
	want[priority.High.Index()], want[priority.Normal.Index()] = 3*time.Second, 200*time.Millisecond
	if s.SlotTime != want || s.Estimated != 200*time.Millisecond {
		t.Errorf("%v, %v of it estimated", s.SlotTime, s.Estimated)
	}
	if off := 2 * (100*time.Millisecond - unitTime); s.EstimateOff != off { // nothing was known of the level
		t.Errorf("off by %v, want %v", s.EstimateOff, off)
	}
}
