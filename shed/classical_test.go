package shed_test

import (
	"testing"
	"time"

	"github.com/headgate-go/headgate/shed"
)

// drive feeds a law with n completions of the given latency and outcome while as
// much is in flight as the limit allows.
func drive(law shed.Law, now time.Time, n int, latency time.Duration, o shed.Outcome) time.Time {
	for range n {
		now = now.Add(latency / time.Duration(law.Limit()))
		load := shed.Load{InFlight: law.Limit(), Waiting: 1}
		law.Note(now, load)
		law.Done(now, load, shed.Sample{Admitted: now.Add(-latency), Outcome: o})
	}
	return now
}

func build(t *testing.T, l shed.Limit) shed.Law {
	t.Helper()
	law, err := l.New()
	if err != nil {
		t.Fatal(err)
	}
	return law
}

func TestAIMDAddsOneARoundAndCutsOncePerRound(t *testing.T) {
	law := build(t, shed.AIMD{Initial: 10})
	now := drive(law, time.Unix(0, 0), 10, 10*time.Millisecond, shed.Served)
	if law.Limit() != 10 { // ten tenths and a bit less, since the limit grew meanwhile
		t.Fatalf("limit %d after one round, want 10", law.Limit())
	}
	now = drive(law, now, 2, 10*time.Millisecond, shed.Served)
	if law.Limit() != 11 {
		t.Fatalf("limit %d after a round and a fifth, want 11", law.Limit())
	}
	drive(law, now, 11, 10*time.Millisecond, shed.TimedOut)
	if law.Limit() != 9 {
		t.Fatalf("limit %d after one round of misses, want one cut to 9", law.Limit())
	}
}

func TestVegasGrowsWithoutAQueueAndShrinksWithOne(t *testing.T) {
	law := build(t, shed.Vegas{})
	now := drive(law, time.Unix(0, 0), 5, 10*time.Millisecond, shed.Served)
	grown := law.Limit()
	if grown <= 32 {
		t.Fatalf("limit %d without a queue, want more than 32", grown)
	}
	drive(law, now, 5, 20*time.Millisecond, shed.Served)
	if law.Limit() >= grown {
		t.Fatalf("limit %d at twice the lowest latency, want less than %d", law.Limit(), grown)
	}
}

func TestGradient2FollowsTheRatioOfLatencies(t *testing.T) {
	law := build(t, shed.Gradient2{})
	now := drive(law, time.Unix(0, 0), 50, 10*time.Millisecond, shed.Served)
	grown := law.Limit()
	if grown <= 32 {
		t.Fatalf("limit %d at a steady latency, want more than 32", grown)
	}
	drive(law, now, 10, 50*time.Millisecond, shed.Served)
	if law.Limit() >= grown {
		t.Fatalf("limit %d at five times the latency, want less than %d", law.Limit(), grown)
	}
}

func TestClassicalLawsHoldAnUnusedLimit(t *testing.T) {
	for _, l := range []shed.Limit{shed.AIMD{}, shed.Vegas{}, shed.Gradient2{}, shed.Throughput{}} {
		law, now := build(t, l), time.Unix(0, 0)
		for range 10_000 {
			now = now.Add(20 * time.Millisecond)
			law.Note(now, shed.Load{InFlight: 1})
			law.Done(now, shed.Load{}, shed.Sample{Admitted: now.Add(-8 * time.Millisecond), Outcome: shed.Served})
		}
		if law.Limit() != 32 {
			t.Errorf("%T moved an unused limit to %d", l, law.Limit())
		}
	}
}

func TestClassicalLawsNameTheBadField(t *testing.T) {
	for _, l := range []shed.Limit{
		shed.AIMD{Backoff: 1}, shed.AIMD{Backoff: -0.1}, shed.Gradient2{Tolerance: 0.5}, shed.Vegas{Min: -1}, shed.Vegas{Min: 9, Max: 8},
	} {
		if _, err := l.New(); err == nil {
			t.Errorf("%+v was accepted", l)
		}
	}
}

func TestLawsResumeFromTheNumberInForce(t *testing.T) {
	for _, l := range []shed.Limit{shed.AIMD{Max: 100}, shed.Vegas{Max: 100}, shed.Gradient2{Max: 100}, shed.Throughput{Max: 100}} {
		law := build(t, l)
		law.(interface{ Resume(int) }).Resume(70)
		if law.Limit() != 70 {
			t.Errorf("%T resumed at %d", l, law.Limit())
		}
		law.(interface{ Resume(int) }).Resume(700)
		if law.Limit() != 100 {
			t.Errorf("%T resumed above its maximum: %d", l, law.Limit())
		}
	}
}
