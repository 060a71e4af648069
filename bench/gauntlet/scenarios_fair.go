package gauntlet

import "time"

// fair are the scenarios in which callers of one level share slot time.
func fair() []Scenario { return []Scenario{longBesideShort(), wideBesideNarrow()} }

// beside is a level in which a loud caller wants five times what there is, and a quiet
// one less than half of it. at is the loud one's part of the requests.
func beside(id, title string, rate, at float64) Scenario {
	return Scenario{
		ID: id, Title: title, Deadline: 3 * sec,
		Traffic: []Traffic{{30 * sec, [Classes]float64{0, rate, 0}}},
		Phases: []Phase{
			{Name: "start", End: 5 * sec, Overload: true},
			{Name: "shared", Start: 5 * sec, End: 30 * sec, Overload: true},
		},
		Tenant: func(_ int, u float64) string {
			if u < at {
				return "loud"
			}
			return quiet
		},
	}
}

// longBesideShort is G15: 40 s of work a second in pieces of a second beside 3 s of it in
// pieces of 10 ms, where 8 s can be done.
func longBesideShort() Scenario {
	s := beside("G15", "long work beside short", 340, 40.0/340)
	s.Backend = func() backend {
		return &pool{width: fixed(8), took: func(_ time.Duration, r *request) time.Duration {
			if r.tenant == quiet {
				return lognormal(10*ms, r.size, sigma)
			}
			return lognormal(sec, r.size, sigma)
		}}
	}
	return s
}

// wideBesideNarrow is G16: requests that take eight of sixteen places for 50 ms beside
// those that take one for 20 ms.
func wideBesideNarrow() Scenario {
	s := beside("G16", "wide work beside narrow", 400, 0.5)
	s.Slots = func(r *request) int {
		if r.tenant == quiet {
			return 1
		}
		return 8
	}
	s.Backend = func() backend {
		return &pool{width: fixed(16), took: func(_ time.Duration, r *request) time.Duration {
			if r.tenant == quiet {
				return lognormal(20*ms, r.size, sigma)
			}
			return lognormal(50*ms, r.size, sigma)
		}}
	}
	return s
}
