package window

import (
	"sync/atomic"
	"time"
)

// period says how time is cut into windows: stretches of one length, or days or months
// of a calendar.
type period struct {
	length time.Duration // of each; of calendars, the longest but for changes of the clock
	months bool
	zone   *time.Location // nil: no calendar
	latest *atomic.Pointer[stretch]
}

// stretch is one window.
type stretch struct {
	window     int64
	start, end time.Time
}

const (
	day   = 24 * time.Hour
	month = 31 * day
)

func (p *period) calendar() bool { return p.zone != nil }

// period is what the options mean, right or wrong.
func (o *Options) period() period {
	switch o.Each {
	case "":
		return period{length: o.Length}
	case "month":
		return period{length: month, months: true, zone: o.Zone, latest: new(atomic.Pointer[stretch])}
	}
	return period{length: day, zone: o.Zone, latest: new(atomic.Pointer[stretch])}
}

// at returns the window of an instant.
func (p *period) at(now time.Time) stretch {
	if p.calendar() {
		return p.dated(now)
	}
	start := now.UTC().Truncate(p.length)
	return stretch{max((start.Unix()-zero)/int64(p.length/time.Second), 0), start, start.Add(p.length)}
}

// dated is at in a calendar. The window that was asked for last is kept: to look into a
// calendar takes longer than everything else.
func (p *period) dated(now time.Time) stretch {
	if s := p.latest.Load(); s != nil && !now.Before(s.start) && now.Before(s.end) {
		return *s
	}
	y, m, d := now.In(p.zone).Date()
	n := int64(y)*12 + int64(m) - 1
	if !p.months {
		n = (time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() - zero) / int64(day/time.Second)
	}
	s := stretch{max(n, 0), p.start(n), p.start(n + 1)}
	p.latest.Store(&s)
	return s
}

// start returns when a window begins.
func (p *period) start(window int64) time.Time {
	switch {
	case !p.calendar():
		return time.Unix(window*int64(p.length/time.Second)+zero, 0).UTC()
	case p.months:
		return p.midnight(int(window/12), time.Month(window%12+1), 1)
	}
	return p.midnight(time.Unix(window*int64(day/time.Second)+zero, 0).UTC().Date())
}

// midnight returns the first instant of a date. A change of the clock may leave the date
// without a midnight, or give it two, and says nothing about which of them time.Date returns.
func (p *period) midnight(y int, m time.Month, d int) time.Time {
	const step = 15 * time.Minute // zones differ by multiples of it
	date := func(t time.Time) int64 {
		y, m, d := t.In(p.zone).Date()
		return time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix()
	}
	t, want := time.Date(y, m, d, 0, 0, 0, 0, p.zone), time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix()
	for date(t) < want {
		t = t.Add(step)
	}
	for date(t.Add(-step)) >= want {
		t = t.Add(-step)
	}
	return t
}

// lengthOf returns how long a window is.
func (p *period) lengthOf(window int64) time.Duration {
	if !p.calendar() {
		return p.length
	}
	return p.start(window + 1).Sub(p.start(window))
}

// same reports whether both cut time in the same places.
func (p *period) same(q *period) bool {
	return p.length == q.length && p.months == q.months && p.calendar() == q.calendar() &&
		(!p.calendar() || p.zone.String() == q.zone.String())
}
