package gauntlet

import "time"

const (
	ms  = time.Millisecond
	sec = time.Second
)

// split shares a rate among the classes: 10 % critical, 30 % normal, 60 % batch.
func split(rps float64) [Classes]float64 {
	return [Classes]float64{rps * 0.1, rps * 0.3, rps * 0.6}
}

// outage is the plan most scenarios share: healthy, slow, healed.
func outage(from, to, end time.Duration, floor float64) []Phase {
	return []Phase{
		{Name: "healthy", End: from, Critical: true},
		{Name: "slow", Start: from, End: to, Overload: true, Floor: floor, Critical: true, Settled: true, Refusals: true},
		{Name: "healed", Start: to, End: end, Healed: true, Critical: true},
	}
}

func slowdown(from, to, fast, slow time.Duration) schedule {
	return schedule{{0, fast}, {from, slow}, {to, fast}}
}

// migration is G1, which several others vary: a pool of 16 goes from 4 to 90 ms
// and back under 1,500 requests a second.
func migration(id, title string, end time.Duration) Scenario {
	return Scenario{
		ID: id, Title: title, Deadline: sec,
		Traffic: []Traffic{{end, split(1500)}},
		Phases:  outage(4*sec, 16*sec, end, strict(16/0.090, split(1500))),
		Backend: func() backend { return &pool{width: fixed(16), mean: slowdown(4*sec, 16*sec, 4*ms, 90*ms)} },
	}
}

// strict is the score, in percent, of a phase in which work that ends at the given rate
// goes to the levels by rank and none is wasted: 10·min(λ₁, X) + 3·min(λ₂, X − …) + …
// over 10·λ₁ + 3·λ₂ + λ₃. That is all that a phase can hold. More can only come from
// work that arrives in the phase and is served after it, by waiting for a second in a
// line that has no prospects while the phase lasts. A door that refuses the hopeless at
// once gives this up: 44.1 instead of 42.2 in G1, and 86 instead of 80 in G7, which were
// the floors for a queue without that door.
func strict(capacity float64, rate [Classes]float64) float64 {
	var got, all float64
	for c := range rate {
		n := min(rate[c], capacity)
		capacity -= n
		got += Weights[c] * n
		all += Weights[c] * rate[c]
	}
	return 100 * got / all
}

// warm is G2 and its kin: a minute of health, then a pool of 20 slows down.
func warm(id, title string, slow, lasting time.Duration) Scenario {
	from, to := 60*sec, 60*sec+lasting
	return Scenario{
		ID: id, Title: title, Deadline: sec,
		Traffic: []Traffic{{to + 12*sec, [Classes]float64{100, 400, 3500}}},
		Phases:  outage(from, to, to+12*sec, 0),
		Backend: func() backend { return &pool{width: fixed(20), mean: slowdown(from, to, 4*ms, slow)} },
	}
}

// Scenarios returns G1 to G16, without G12, which needs a real heap, and those of the
// second round, which have names.
func Scenarios() []Scenario {
	return append([]Scenario{
		migration("G1", "a pool of 16 slows from 4 to 90 ms", 24*sec),
		warm("G2", "the same after a long warm-up, 18 × overload", 90*ms, 20*sec),
		deathSpiral(), thrashing(), pureDelay(), bimodal(), burst(),
		tenMinutes(),
		shortDeadlines(), twoTenants(),
		retries("G11a", "refused clients retry at once", Retry{Times: 3, Delay: 5 * ms, Jitter: 5 * ms}),
		retries("G11b", "refused clients honour Retry-After", Retry{Times: 3, Obey: true}),
		fewSamples(), hangs(),
	}, append(fair(), more()...)...)
}

func tenMinutes() Scenario {
	s := warm("G8", "ten minutes of outage", 90*ms, 600*sec)
	s.Like = "G2"
	return s
}

func deathSpiral() Scenario {
	s := warm("G3", "critical alone is twice the capacity", 400*ms, 20*sec)
	s.Phases[1].Floor, s.Phases[1].Critical, s.Phases[1].Lenient = 6.7, false, 800*ms
	return s
}

func thrashing() Scenario {
	return Scenario{
		ID: "G4", Title: "work beyond 8 slows everything down", Deadline: sec,
		Traffic: []Traffic{{4 * sec, split(500)}, {16 * sec, split(4000)}, {24 * sec, split(500)}},
		Phases:  outage(4*sec, 16*sec, 24*sec, 52.4),
		Backend: func() backend { return &pool{width: fixed(8), drag: 0.02, mean: schedule{{0, 10 * ms}}} },
	}
}

func pureDelay() Scenario {
	mean := slowdown(4*sec, 16*sec, 4*ms, 90*ms)
	s := migration("G5", "slower, but nothing queues below", 24*sec)
	s.Backend = func() backend {
		return delay(func(t time.Duration, r *request) time.Duration { return lognormal(mean.at(t), r.size, sigma) })
	}
	s.Phases[1] = Phase{Name: "slow", Start: 4 * sec, End: 16 * sec, Floor: 100, Critical: true}
	return s
}

func bimodal() Scenario {
	return Scenario{
		ID: "G6", Title: "one in ten takes 40 times as long", Deadline: sec,
		Traffic: []Traffic{{20 * sec, split(1500)}},
		Phases:  []Phase{{Name: "mixed", End: 20 * sec, Floor: 100, Critical: true}},
		Backend: func() backend {
			return delay(func(_ time.Duration, r *request) time.Duration {
				if r.kind < 0.1 {
					return lognormal(200*ms, r.size, sigma)
				}
				return lognormal(5*ms, r.size, sigma)
			})
		},
	}
}

// burst has an end after two seconds, and the best fixed limit is so wide that all wait in
// the backend for a second until then: 85.3. A door that tells the hopeless at once has the
// batch work of a quarter of a second in line, 100 of 20,000 points on top of the 80 that
// the phase can hold.
func burst() Scenario {
	s := Scenario{
		ID: "G7", Title: "a burst after a quiet time", Deadline: sec,
		Traffic: []Traffic{{8 * sec, split(50)}, {10 * sec, split(4000)}, {20 * sec, split(50)}},
		Phases: []Phase{
			{Name: "quiet", End: 8 * sec, Critical: true},
			{Name: "burst", Start: 8 * sec, End: 10 * sec, Overload: true, Floor: strict(16/0.008, split(4000)), Critical: true},
			{Name: "after", Start: 10 * sec, End: 20 * sec, Healed: true, Critical: true},
		},
		Backend: func() backend { return &pool{width: fixed(16), mean: schedule{{0, 8 * ms}}} },
	}
	s.Phases[1].Ratio = 0.94
	return s
}

func shortDeadlines() Scenario {
	s := migration("G9", "clients wait 150 ms at most", 24*sec)
	s.Deadline = 150 * ms
	s.Phases[1].Floor, s.Phases[1].Critical, s.Phases[1].Ratio = 33.2, false, 0.93
	return s
}

func twoTenants() Scenario {
	s := migration("G10", "a critical tenant offers twenty times its share", 24*sec)
	s.Tenant = func(class int, u float64) string {
		switch {
		case class != 0:
			return ""
		case u < 1.0/21:
			return quiet
		default:
			return "loud"
		}
	}
	return s
}

const quiet = "quiet" // the tenant whose share must not suffer

func retries(id, title string, r Retry) Scenario {
	s := migration(id, title, 80*sec)
	s.Retry = r
	s.Phases[1].Floor = 0
	return s
}

func fewSamples() Scenario {
	s := Scenario{
		ID: "G13", Title: "five samples a window", Deadline: 3 * sec,
		Traffic: []Traffic{{60 * sec, split(15)}},
		Phases:  outage(4*sec, 16*sec, 60*sec, 0),
		Backend: func() backend { return &pool{width: fixed(4), mean: slowdown(4*sec, 16*sec, 200*ms, 900*ms)} },
	}
	s.Phases[1].Ratio = 0.93
	return s
}

func hangs() Scenario {
	return Scenario{
		ID: "G14", Title: "one in twenty hangs for two seconds", Deadline: sec,
		Traffic: []Traffic{{30 * sec, split(500)}},
		Phases:  []Phase{{Name: "hanging", End: 30 * sec}},
		Backend: func() backend {
			return delay(func(_ time.Duration, r *request) time.Duration {
				if r.kind < 0.05 {
					return 2 * sec
				}
				return lognormal(10*ms, r.size, sigma)
			})
		},
	}
}
