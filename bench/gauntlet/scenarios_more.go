package gauntlet

import (
	"math"
	"time"
)

// more returns the scenarios of the second round: traffic that is not all requests of
// one kind, backends that move, neighbours, and stays shorter than the work.
func more() []Scenario {
	return []Scenario{
		streams(), errors("errors-fast", "a spell of fast errors, on fast work", 4*ms),
		errors("errors-slow", "a spell of fast errors, on slow work", 90*ms),
		leaving(), minutes(), seconds(), milliseconds(),
		pauses(), warming(), breathing(), twoKinds(), neighbours(), bursts(),
		shortStay(), readme(),
	}
}

// all is a phase that lasts the whole scenario, in which no work has to be refused.
func calm(end time.Duration) []Phase {
	return []Phase{{Name: "all", End: end, Critical: true, NoRefusal: true}}
}

// streams needs six slots for openings of 100 ms; the streams themselves are out of
// the gate's sight.
func streams() Scenario {
	return Scenario{
		ID: "streams", Title: "streams only: openings of 100 ms need six slots", Deadline: sec,
		Traffic: []Traffic{{60 * sec, split(60)}},
		Phases:  calm(60 * sec),
		Backend: func() backend { return &pool{width: fixed(16), mean: schedule{{0, 100 * ms}}} },
	}
}

// errors has twenty seconds in which all work fails within a millisecond.
func errors(id, title string, mean time.Duration) Scenario {
	rate := 0.6 * 16 / mean.Seconds() // 60 % of the capacity
	return Scenario{
		ID: id, Title: title, Deadline: sec,
		Traffic: []Traffic{{40 * sec, split(rate)}},
		Phases: []Phase{
			{Name: "healthy", End: 10 * sec, Critical: true},
			{Name: "errors", Start: 10 * sec, End: 30 * sec, Critical: true, NoRefusal: true},
			{Name: "healed", Start: 30 * sec, End: 40 * sec, Critical: true, Healed: true},
		},
		Backend: func() backend { return &pool{width: fixed(16), mean: schedule{{0, mean}}} },
		Fails: func(t time.Duration, _ *request) (time.Duration, bool) {
			return ms, t >= 10*sec && t < 30*sec
		},
	}
}

// leaving has clients that do not say how long they wait.
func leaving() Scenario {
	s := Scenario{
		ID: "leaving", Title: "clients leave unannounced after 2 s, work takes 800 ms", Deadline: 2 * sec, Unannounced: true,
		Traffic: []Traffic{{20 * sec, split(15)}, {80 * sec, split(80)}, {120 * sec, split(15)}},
		Phases:  outage(20*sec, 80*sec, 120*sec, 0),
		Backend: func() backend { return &pool{width: fixed(16), mean: schedule{{0, 800 * ms}}} },
	}
	return s
}

// minutes is a language model: work of 2 to 60 s, eight at once.
func minutes() Scenario {
	const median, spread = 10950 * ms, 0.85 // e^(ln median ± 2·spread) = 2 s and 60 s
	mean := time.Duration(float64(median) * math.Exp(spread*spread/2))
	capacity := 8 / mean.Seconds()
	s := Scenario{
		ID: "minutes", Title: "work of 2 to 60 s, eight at once", Deadline: 120 * sec,
		Traffic: []Traffic{{400 * sec, split(0.5 * capacity)}, {2000 * sec, split(2 * capacity)}, {2600 * sec, split(0.5 * capacity)}},
		Phases:  outage(400*sec, 2000*sec, 2600*sec, 0),
		Backend: func() backend {
			return &pool{width: fixed(8), took: func(_ time.Duration, r *request) time.Duration { return lognormal(mean, r.size, spread) }}
		},
	}
	s.Phases[1].Critical = false
	return s
}

func seconds() Scenario {
	return Scenario{
		ID: "seconds", Title: "two a second of work that takes 3 s, six at once, then six a second", Deadline: 15 * sec,
		Traffic: []Traffic{{60 * sec, split(1.4)}, {240 * sec, split(6)}, {300 * sec, split(1.4)}},
		Phases:  outage(60*sec, 240*sec, 300*sec, 0),
		Backend: func() backend { return &pool{width: fixed(6), mean: schedule{{0, 3 * sec}}} },
	}
}

func milliseconds() Scenario {
	return Scenario{
		ID: "fast", Title: "20,000 a second of 1 ms; 2 ms for ten seconds", Deadline: 250 * ms,
		Traffic: []Traffic{{20 * sec, split(20000)}},
		Phases:  outage(5*sec, 15*sec, 20*sec, 0),
		Backend: func() backend { return &pool{width: fixed(32), mean: slowdown(5*sec, 15*sec, 1*ms, 2*ms)} },
	}
}

func pauses() Scenario {
	return Scenario{
		ID: "pauses", Title: "the backend stands still for 200 ms every 5 s", Deadline: sec,
		Traffic: []Traffic{{30 * sec, split(1500)}},
		Phases:  []Phase{{Name: "all", End: 30 * sec, Critical: true}},
		Backend: func() backend {
			return &pool{width: fixed(16), mean: schedule{{0, 4 * ms}}, pause: 200 * ms, every: 5 * sec}
		},
	}
}

// warming halves its time eleven times in twenty seconds, caches filling.
func warming() Scenario {
	took := func(t time.Duration) time.Duration {
		return max(5*ms, time.Duration(float64(200*ms)*math.Pow(5.0/200, t.Seconds()/20)))
	}
	return Scenario{
		ID: "warming", Title: "a backend warms up from 200 to 5 ms in 20 s", Deadline: sec,
		Traffic: []Traffic{{40 * sec, split(1000)}},
		Phases: []Phase{
			{Name: "cold", End: 13 * sec, Overload: true, Refusals: true},
			{Name: "warm", Start: 16 * sec, End: 40 * sec, Critical: true},
		},
		Backend: func() backend {
			return &pool{width: fixed(16), took: func(t time.Duration, r *request) time.Duration {
				return lognormal(took(t), r.size, sigma)
			}}
		},
	}
}

// breathing is a backend that is scaled: 16 wide, and 8 in every second minute.
func breathing() Scenario {
	width := func(t time.Duration) int {
		if t/time.Minute%2 == 1 {
			return 8
		}
		return 16
	}
	s := Scenario{
		ID: "scaling", Title: "capacity halves and doubles each minute", Deadline: sec,
		Traffic: []Traffic{{4 * time.Minute, split(1000)}},
		Backend: func() backend { return &pool{width: width, mean: schedule{{0, 20 * ms}}} },
	}
	for i, name := range []string{"16", "8", "16 again", "8 again"} {
		from := time.Duration(i) * time.Minute
		s.Phases = append(s.Phases, Phase{Name: name, Start: from, End: from + time.Minute, Overload: true, Critical: true, Settled: true, Refusals: true})
	}
	return s
}

// twoKinds share a pool: 5 ms and 100 ms. The mix moves twice.
func twoKinds() Scenario {
	heavy := func(t time.Duration) float64 {
		if t >= 20*sec && t < 40*sec {
			return 0.6
		}
		return 0.1
	}
	s := Scenario{
		ID: "kinds", Title: "work of 5 and of 100 ms in one pool, from 10 to 60 % heavy and back", Deadline: sec,
		Traffic: []Traffic{{60 * sec, split(1200)}},
		Phases:  outage(20*sec, 40*sec, 60*sec, 0),
		Backend: func() backend {
			return &pool{width: fixed(16), took: func(t time.Duration, r *request) time.Duration {
				if r.kind < heavy(t) {
					return lognormal(100*ms, r.size, sigma)
				}
				return lognormal(5*ms, r.size, sigma)
			}}
		},
	}
	s.Phases[0].Overload, s.Phases[2].Overload = false, false
	s.Traffic[0].Rate = split(900)
	return s
}

// neighbours are three instances of the service in front of G1's pool.
func neighbours() Scenario {
	s := migration("neighbours", "three instances share a pool of 16 that slows from 4 to 90 ms", 24*sec)
	s.Instances = 3
	s.Phases[1].Floor = 0
	return s
}

// bursts are two seconds on, two off, at 1.1 times what the pool can do.
func bursts() Scenario {
	s := Scenario{
		ID: "bursts", Title: "bursts at 1.1 times the capacity, two seconds on, two off", Deadline: sec,
		Backend: func() backend { return &pool{width: fixed(16), mean: schedule{{0, 20 * ms}}} },
		Phases:  []Phase{{Name: "all", End: 60 * sec, Overload: true, Critical: true}},
	}
	for t := 2 * sec; t <= 60*sec; t += 4 * sec {
		s.Traffic = append(s.Traffic, Traffic{t, split(880)}, Traffic{End: t + 2*sec})
	}
	return s
}

// shortStay has a longest stay that is shorter than the work: 53 a second can be
// done, and critical work alone is 150.
func shortStay() Scenario {
	s := migration("short-stay", "MaxWait 250 ms, work 300 ms", 24*sec)
	s.MaxWait = 250 * ms
	s.Backend = func() backend { return &pool{width: fixed(16), mean: slowdown(4*sec, 16*sec, 4*ms, 300*ms)} }
	s.Phases[1].Floor, s.Phases[1].Critical = 0, false
	s.Phases[1].Capacity = 16 / 0.3
	return s
}

// readme is G1 with the quickstart's options.
func readme() Scenario {
	s := migration("readme", "the README's options: MaxWait 250 ms, the client's deadline", 24*sec)
	s.MaxWait = 250 * ms
	return s
}
