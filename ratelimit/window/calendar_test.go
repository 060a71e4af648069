package window

import (
	"testing"
	"time"
	_ "time/tzdata" // the same zones on every machine

	"pgregory.net/rapid"

	"github.com/headgate-go/headgate/ratelimit"
)

func in(t testing.TB, zone string) *time.Location {
	loc, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

// A day of the calendar has 23 to 25 hours where clocks are changed, and may begin at one
// in the morning. At its end the whole quota is there, and the advice says when.
func TestADayEndsWhenTheCalendarSays(t *testing.T) {
	for name, c := range map[string]struct {
		zone        string
		first, last string // the first and the last second of a day, in UTC
	}{
		"an ordinary day":                    {"Europe/Berlin", "2026-01-14T23:00:00Z", "2026-01-15T22:59:59Z"},
		"23 hours":                           {"Europe/Berlin", "2026-03-28T23:00:00Z", "2026-03-29T21:59:59Z"},
		"25 hours":                           {"America/New_York", "2026-11-01T04:00:00Z", "2026-11-02T04:59:59Z"},
		"half an hour's change":              {"Australia/Lord_Howe", "2026-10-03T13:30:00Z", "2026-10-04T12:59:59Z"},
		"no midnight":                        {"Africa/Cairo", "2026-04-23T22:00:00Z", "2026-04-24T20:59:59Z"},
		"two midnights":                      {"America/Havana", "2026-11-01T04:00:00Z", "2026-11-02T04:59:59Z"},
		"before a midnight that comes again": {"Africa/Cairo", "2026-10-28T21:00:00Z", "2026-10-29T21:59:59Z"},
		"east of the date line":              {"Pacific/Kiritimati", "2026-05-31T10:00:00Z", "2026-06-01T09:59:59Z"},
		"UTC":                                {"UTC", "2026-02-28T00:00:00Z", "2026-02-28T23:59:59Z"},
		"a leap day":                         {"UTC", "2028-02-29T00:00:00Z", "2028-02-29T23:59:59Z"},
	} {
		at := func(text string) time.Time {
			when, err := time.Parse(time.RFC3339, text)
			if err != nil {
				t.Fatal(err)
			}
			return when
		}
		l, first, last := MustNew(Options{Quota: 10, Each: "day", Zone: in(t, c.zone)}), at(c.first), at(c.last)
		take(l, first.Add(-time.Second), "a", 10)
		if d := take(l, first, "a", 4); !d.OK || d.Remaining != 6 || d.Reset != last.Add(time.Second).Sub(first) {
			t.Errorf("%s: on its first second %+v, want all of the quota and %v to go", name, d, last.Add(time.Second).Sub(first))
		}
		d := take(l, last, "a", 7)
		if d.OK || d.Wait != time.Second || d.Reset != time.Second {
			t.Errorf("%s: on its last second %+v, want a second to wait", name, d)
		}
		if d = take(l, last.Add(d.Wait), "a", 10); !d.OK {
			t.Errorf("%s: after the wait advised: %+v", name, d)
		}
	}
}

func TestAMonthEndsWhenTheCalendarSays(t *testing.T) {
	berlin := in(t, "Europe/Berlin")
	l := MustNew(Options{Quota: 100, Each: "month", Zone: berlin, Name: "month"})
	for m := time.January; m <= time.December; m++ {
		first, next := time.Date(2028, m, 1, 0, 0, 0, 0, berlin), time.Date(2028, m+1, 1, 0, 0, 0, 0, berlin)
		if d := take(l, first, "a", 99); !d.OK || d.Reset != next.Sub(first) {
			t.Errorf("%v: %+v", m, d)
		}
		if d := take(l, next.Add(-time.Nanosecond), "a", 2); d.OK || d.Wait != 1 {
			t.Errorf("the end of %v: %+v", m, d)
		}
		if d := l.Peek(next.Add(-time.Nanosecond), ratelimit.Key{Space: "key", ID: "a"}, 1, 0); !d.OK || d.Remaining != 0 {
			t.Errorf("a look at the end of %v: %+v", m, d)
		}
	}
	if p := l.Policy(ratelimit.Key{}); p.Burst != 100 || p.Window != 31*24*time.Hour || p.Name != "month" {
		t.Errorf("policy %+v", p)
	}
}

func TestAGrantOfADayIsSettledInItsDay(t *testing.T) {
	l := MustNew(Options{Quota: 10, Each: "day", Zone: time.UTC})
	now := midnight.Add(time.Hour)
	d := take(l, now, "a", 8)
	d.Adjust(now, -5)
	if d = take(l, now, "a", 7); !d.OK {
		t.Fatalf("five were given back: %+v", d)
	}
	tomorrow := now.Add(day)
	take(l, tomorrow, "a", 1)
	d.Undo(tomorrow)
	if d = take(l, tomorrow, "a", 9); !d.OK || d.Remaining != 0 {
		t.Errorf("what is given back to yesterday counts today: %+v", d)
	}
}

func TestAReloadKeepsTheCountsOfTheSameCalendar(t *testing.T) {
	old := MustNew(Options{Quota: 10, Each: "day", Zone: in(t, "Europe/Berlin")})
	take(old, midnight, "a", 10)
	for name, c := range map[string]struct {
		next *Limiter
		kept bool
	}{
		"the same":       {MustNew(Options{Quota: 10, Each: "day", Zone: in(t, "Europe/Berlin")}), true},
		"another zone":   {MustNew(Options{Quota: 10, Each: "day", Zone: in(t, "Asia/Tokyo")}), false},
		"months":         {MustNew(Options{Quota: 10, Each: "month", Zone: in(t, "Europe/Berlin")}), false},
		"not a calendar": {PerKey(10, day), false},
	} {
		if d := take(c.next.Own(old), midnight, "a", 1); d.OK == c.kept {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// Every instant lies in its window, windows follow one another without gaps, and their
// numbers rise.
func TestCalendarsHaveNoGaps(t *testing.T) {
	zones := []string{"UTC", "Europe/Berlin", "America/New_York", "Africa/Cairo", "America/Havana", "America/Santiago", "Asia/Beirut", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kathmandu"}
	rapid.Check(t, func(t *rapid.T) {
		loc, err := time.LoadLocation(rapid.SampledFrom(zones).Draw(t, "zone"))
		if err != nil {
			t.Fatal(err)
		}
		l := MustNew(Options{Quota: 1, Each: "day", Zone: loc})
		if rapid.Bool().Draw(t, "months") {
			l = MustNew(Options{Quota: 1, Each: "month", Zone: loc})
		}
		now := time.Unix(rapid.Int64Range(0, 4_000_000_000).Draw(t, "now"), 0)
		s := l.at(now)
		if now.Before(s.start) || !now.Before(s.end) {
			t.Fatalf("%v lies outside of %v to %v", now, s.start, s.end)
		}
		next := l.at(s.end)
		if next.window <= s.window || !next.start.Equal(s.end) {
			t.Fatalf("window %d ends at %v; the next is %d, from %v", s.window, s.end, next.window, next.start)
		}
		if again := l.at(s.start); again != s {
			t.Fatalf("at its start %+v, later %+v", again, s)
		}
	})
}

func TestACalendarAllocatesNothing(t *testing.T) {
	l := MustNew(Options{Quota: 1 << 30, Each: "day", Zone: in(t, "Europe/Berlin")})
	take(l, midnight, "a", 1)
	if n := testing.AllocsPerRun(1000, func() { take(l, midnight, "a", 1) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
