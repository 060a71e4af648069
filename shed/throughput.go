package shed

import (
	"fmt"
	"time"
)

// Throughput is the default law: it finds the limit from what concurrency buys.
// While the limit binds it tries a little more and a little less, and keeps what
// served as much with the fewest slots; and it never holds more than can finish
// in time. Package shed's comment derives it.
//
// The zero value is usable. A negative field, or fields that contradict each
// other, are an error from New that names the field.
type Throughput struct {
	Min     int           // fewest slots; 0: 1
	Max     int           // most slots; 0: 1000
	Initial int           // slots before there is evidence; 0: 32, or the nearest that Min and Max allow
	Promise time.Duration // latency above which it first looks for less, not for more; 0: 250 ms
}

const (
	defaultMax     = 1000
	defaultInitial = 32
	defaultPromise = 250 * time.Millisecond
)

// New validates the configuration and builds the law. The law is a plain struct:
// not safe for concurrent use, no goroutine, no allocation after New.
func (c Throughput) New() (Law, error) {
	b, err := newBounds("Throughput", c.Min, c.Max, c.Initial)
	if err != nil {
		return nil, err
	}
	if c.Promise < 0 {
		return nil, fmt.Errorf("shed: Throughput.Promise = %v: must not be negative", c.Promise)
	}
	if c.Promise == 0 {
		c.Promise = defaultPromise
	}
	return newThroughput(b, c.Promise), nil
}

// bounds are the numbers every adaptive law stays within.
type bounds struct{ min, max, initial int }

func newBounds(law string, minimum, maximum, initial int) (bounds, error) {
	b := bounds{minimum, maximum, initial}
	for _, f := range [...]struct {
		name  string
		value int
	}{{"Min", b.min}, {"Max", b.max}, {"Initial", b.initial}} {
		if f.value < 0 {
			return b, fmt.Errorf("shed: %s.%s = %d: must not be negative", law, f.name, f.value)
		}
	}
	if b.min == 0 {
		b.min = 1
	}
	if b.max == 0 {
		b.max = max(defaultMax, b.min)
	}
	if b.max < b.min {
		return b, fmt.Errorf("shed: %s.Max = %d: must be at least Min = %d", law, b.max, b.min)
	}
	if b.initial == 0 {
		b.initial = b.clamp(defaultInitial)
	}
	if b.initial != b.clamp(b.initial) {
		return b, fmt.Errorf("shed: %s.Initial = %d: must be within Min = %d and Max = %d", law, b.initial, b.min, b.max)
	}
	return b, nil
}

// Bounds returns the numbers the limit stays within.
func (b bounds) Bounds() (least, most int) { return b.min, b.max }

// Bounds are the climb's: the brake keeps to the same floor.
func (l *throughput) Bounds() (least, most int) { return l.climb.Bounds() }

func (b bounds) clamp(limit int) int { return min(max(limit, b.min), b.max) }
