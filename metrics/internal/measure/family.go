package measure

import "slices"

// Family is one metric: a name, what it means, and the labels that tell its series
// apart. Names follow Prometheus: base units, and _total for what only grows.
type Family struct {
	Name   string
	Help   string
	Kind   Kind
	Told   bool // counted as events tell; else read from snapshots
	Labels []string
	Bounds []float64 // of a Histogram's buckets, ascending
}

// Kind says how a family's values behave.
type Kind uint8

// The kinds.
const (
	Counter   Kind = iota // only grows
	Gauge                 // goes up and down
	Histogram             // a distribution
)

// Families returns all families, in the order in which they are documented.
func Families() []*Family { return slices.Clone(families) }

var families []*Family

func add(f Family) *Family {
	f.Name = "headgate_" + f.Name
	families = append(families, &f)
	return &f
}

// count is a counter that events tell.
func count(name, help string, labels ...string) *Family {
	return add(Family{Name: name, Help: help, Kind: Counter, Told: true, Labels: labels})
}

// spread is a histogram that events tell.
func spread(name, help string, bounds []float64, labels ...string) *Family {
	return add(Family{Name: name, Help: help, Kind: Histogram, Told: true, Bounds: bounds, Labels: labels})
}

// total is a counter that snapshots show.
func total(name, help string, labels ...string) *Family {
	return add(Family{Name: name, Help: help, Kind: Counter, Labels: labels})
}

// gauge is what snapshots show of this instant.
func gauge(name, help string, labels ...string) *Family {
	return add(Family{Name: name, Help: help, Kind: Gauge, Labels: labels})
}
