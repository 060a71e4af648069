package gauntlet

import (
	"slices"
	"time"
)

// Result is one phase of one run in figures. Shares are from 0 to 100.
type Result struct {
	Score    float64
	Critical float64 // of critical offered, served
	Late     float64 // of the work admitted, finished after its client's deadline
	Early    float64 // refused, of those offered in the first second
	After    float64 // refused, of those offered later
	Quiet    float64 // of the quiet tenant's, served; 100 when there is none
	Hopeless float64 // admitted with less than the median service time left
	Recovery float64 // seconds until 95 % and more is served; 0 when not judged
	Surge    float64 // most attempts in any second, over the scenario's own rate
	Backend  float64 // time in the backend over what work takes alone, second half; 1 when nothing came
	Waited   float64 // of the refused, share that had waited over 100 ms
	WaitedL  float64 // the same after the phase's first two seconds
	Told95   float64 // ms until a refusal, 95th percentile
	Told99   float64 // ms, 99th percentile after the first two seconds
	Peak     float64 // highest limit over what it may be with nothing to learn
	Unfair   float64 // least served by an instance over the mean
	PerSec   float64 // critical work served per second
	Drift    float64 // mean limit of the phase's last minute over that of its second
}

// judge judges a run, phase by phase.
func judge(s *Scenario, r *Record) []Result {
	out := make([]Result, len(s.Phases))
	for i := range s.Phases {
		out[i] = r.Tallies[i].result()
		p := &s.Phases[i]
		if p.Healed {
			out[i].Recovery = r.recovery(p)
			out[i].Surge = r.surge(s, p)
		}
		out[i].Drift = r.drift(p)
		out[i].Peak = r.peaks[i]
		out[i].Unfair = r.unfair()
		out[i].PerSec = float64(r.Tallies[i].Served[0]) / (p.End - p.Start).Seconds()
	}
	return out
}

func (t *Tally) result() Result {
	var got, all float64
	for c := range Classes {
		got += Weights[c] * float64(t.Served[c])
		all += Weights[c] * float64(t.Offered[c])
	}
	offered, refused := sum(t.Offered), sum(t.Refused)
	return Result{
		Score:    percent(got, all),
		Critical: percent(float64(t.Served[0]), float64(t.Offered[0])),
		Late:     share(t.Late, t.Admitted),
		Early:    share(t.Early, t.FirstSecond),
		After:    share(refused-t.Early, offered-t.FirstSecond),
		Quiet:    percent(float64(t.QuietServed), float64(t.QuietOffered)),
		Hopeless: share(t.Hopeless, offered),
		Backend:  ratio(float64(t.Held), float64(t.Alone)),
		Waited:   t.Told.over(100),
		WaitedL:  t.ToldLater.over(100),
		Told95:   t.Told.quantile(0.95),
		Told99:   t.ToldLater.quantile(0.99),
	}
}

// unfair is the least that an instance served, over the mean.
func (r *Record) unfair() float64 {
	total := 0
	for _, n := range r.shares {
		total += n
	}
	return ratio(float64(slices.Min(r.shares)*len(r.shares)), float64(total))
}

func ratio(part, whole float64) float64 {
	if whole == 0 {
		return 1
	}
	return part / whole
}

// recovery is the end of the last half second of arrivals of which less than
// 95 % were served, counted from the phase's start.
func (r *Record) recovery(p *Phase) float64 {
	first, last := int(p.Start/binWidth), int(p.End/binWidth)
	last -= 10 // the tail has not been answered yet
	const half = 5
	for i := last - half; i >= first; i-- {
		offered, good := 0, 0
		for _, b := range r.Bins[i : i+half] {
			offered, good = offered+b.Offered, good+b.Good
		}
		if float64(good) < 0.95*float64(offered) {
			return (time.Duration(i+half)*binWidth - p.Start).Seconds()
		}
	}
	return 0
}

// surge is the busiest second of the phase over the scenario's own traffic.
func (r *Record) surge(s *Scenario, p *Phase) float64 {
	own := 0.0
	for _, rate := range s.traffic(p.Start).Rate {
		own += rate
	}
	return float64(slices.Max(r.arrived[p.Start/time.Second:p.End/time.Second])) / own
}

func (r *Record) drift(p *Phase) float64 {
	if p.End-p.Start < 3*time.Minute {
		return 1
	}
	return r.meanLimit(p.End-time.Minute, p.End) / r.meanLimit(p.Start+time.Minute, p.Start+2*time.Minute)
}

func (r *Record) meanLimit(from, to time.Duration) float64 {
	total := 0.0
	bins := r.Bins[from/binWidth : to/binWidth]
	for _, b := range bins {
		total += b.Limit
	}
	return total / float64(len(bins))
}

// median takes the median of each figure over several runs by itself.
func median(runs []Result) Result {
	pick := func(f func(*Result) float64) float64 {
		v := make([]float64, len(runs))
		for i := range runs {
			v[i] = f(&runs[i])
		}
		slices.Sort(v)
		return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
	}
	return Result{
		Score:    pick(func(r *Result) float64 { return r.Score }),
		Critical: pick(func(r *Result) float64 { return r.Critical }),
		Late:     pick(func(r *Result) float64 { return r.Late }),
		Early:    pick(func(r *Result) float64 { return r.Early }),
		After:    pick(func(r *Result) float64 { return r.After }),
		Quiet:    pick(func(r *Result) float64 { return r.Quiet }),
		Hopeless: pick(func(r *Result) float64 { return r.Hopeless }),
		Recovery: pick(func(r *Result) float64 { return r.Recovery }),
		Surge:    pick(func(r *Result) float64 { return r.Surge }),
		Drift:    pick(func(r *Result) float64 { return r.Drift }),
		Backend:  pick(func(r *Result) float64 { return r.Backend }),
		Waited:   pick(func(r *Result) float64 { return r.Waited }),
		WaitedL:  pick(func(r *Result) float64 { return r.WaitedL }),
		Told95:   pick(func(r *Result) float64 { return r.Told95 }),
		Told99:   pick(func(r *Result) float64 { return r.Told99 }),
		Peak:     pick(func(r *Result) float64 { return r.Peak }),
		Unfair:   pick(func(r *Result) float64 { return r.Unfair }),
		PerSec:   pick(func(r *Result) float64 { return r.PerSec }),
	}
}

func sum(n [Classes]int) int { return n[0] + n[1] + n[2] }

func share(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * float64(part) / float64(whole)
}

func percent(part, whole float64) float64 {
	if whole == 0 {
		return 100
	}
	return 100 * part / whole
}
