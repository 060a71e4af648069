package pacer

import (
	"cmp"
	"fmt"
	"math"
	"sync"
	"time"
)

// law is the adaptive law of one operation: which share of the configured rate is
// in force. It is given the time and is not safe for concurrent use.
//
//	R  the configured rate, or the measured one where none is known
//	m  the multiplier: the rate in force is m·R
//	W  the multiplier at which the server last said no; 1 in the beginning
//
// A throttle cuts m to 0.7·m, an overload to 0.5·m, never below 0.01, at most once
// per epoch of max(1 s, hint): all the calls in flight when the server said no get
// the same no, and twenty echoes of it are still one. m then holds for the hint and
// returns additively: 5 % of W·R per second up to W, and 5 % of R per second beyond
// it. W makes the return careful where the server is known to object: with
// R = 100/s and a quota of 5/s, a step of 5/s per second would run into the quota
// once a second without end.
//
// A cut from 1 with a hint h is thus forgotten after h + 6 s (h + 10 s for an
// overload), whatever the number of answers that caused it. Laws that cut per
// answer (the adaptive mode of the AWS SDKs) go to their floor on twenty concurrent
// throttles and take a cubic curve back.
type law struct {
	m     float64
	w     float64
	top   float64   // where the return ends
	since time.Time // when the return began, or will
	until time.Time // end of the epoch
}

const (
	cutThrottle = 0.7
	cutOverload = 0.5
	floorLaw    = 0.01
	stepLaw     = 0.05 // per second
	minEpoch    = time.Second

	// knownTop is where the return to a configured rate ends. A rate that was only
	// measured says what we sent when the server objected, not what it allows, so
	// the return may pass it; at measuredTop the law lets go.
	knownTop    = 1.0
	measuredTop = 2.0
)

// inForce returns the multiplier at now.
func (p *law) inForce(now time.Time) float64 {
	if p.m == 0 {
		return 1
	}
	t := now.Sub(p.since).Seconds()
	if t <= 0 {
		return p.m
	}
	if p.m < p.w {
		careful := stepLaw * p.w
		if reached := (p.w - p.m) / careful; t > reached {
			return min(p.w+stepLaw*(t-reached), p.top)
		}
		return min(p.m+careful*t, p.top)
	}
	return min(p.m+stepLaw*t, p.top)
}

// active reports whether the law holds the rate back at now, or would not yet let
// it go.
func (p *law) active(now time.Time) bool { return p.m != 0 && p.inForce(now) < p.top }

// cut lowers the multiplier by factor, once per epoch, and reports whether it did.
// top is used when the law was at rest.
func (p *law) cut(now time.Time, factor, top float64, hint time.Duration) bool {
	if now.Before(p.until) {
		p.extend(now.Add(hint))
		return false
	}
	if !p.active(now) {
		*p = law{m: 1, w: 1, top: top, since: now}
	}
	p.w = p.inForce(now)
	p.m = max(floorLaw, factor*p.w)
	p.since = now.Add(hint)
	p.until = now.Add(max(minEpoch, hint))
	return true
}

// extend holds the multiplier until t, and with it the epoch: a longer hint within
// an epoch is news about time, not about the rate.
func (p *law) extend(t time.Time) {
	if t.After(p.until) {
		p.since, p.until = t, t
	}
}

// rampUp lets a rate return after a pause that ended some time since: calls that were
// held back together must not leave together. It grows with the square of the time, up
// to r at the end of the span. Rates up to slowRate spread the calls by themselves.
func rampUp(r float64, since, span time.Duration) float64 {
	if r <= slowRate || since >= span {
		return r
	}
	part := max(since.Seconds(), 0) / span.Seconds()
	return max(slowRate, r*part*part)
}

const slowRate = 50 // per second

// bucket holds the rate of the operation while the law holds it back. Its rate changes while
// it fills, so it keeps tokens, not a time at which it will be full.
type bucket struct {
	tokens float64
	last   time.Time
}

// reset empties the bucket at now and lets it begin to fill at since, with one
// token then: the first call after a pause finds out whether it is over.
func (b *bucket) reset(since, now time.Time) {
	b.tokens, b.last = 0, now
	if since.After(now) {
		b.tokens, b.last = 1, since
	}
}

// take takes one token at now, or returns how long until there is one. A clock that
// steps back refills nothing.
func (b *bucket) take(now time.Time, rate, burst float64) (wait time.Duration, ok bool) {
	if d := now.Sub(b.last).Seconds(); d > 0 {
		b.tokens = min(burst, b.tokens+d*rate)
		b.last = now
	}
	early := max(0, b.last.Sub(now)) // still before the pause's end
	if early == 0 && b.tokens >= 1 {
		b.tokens--
		return 0, true
	}
	missing := math.Ceil((1 - b.tokens) / rate * float64(time.Second))
	return early + time.Duration(max(missing, 0)), false
}

// give puts a token back that was not used.
func (b *bucket) give() { b.tokens++ }

// meter measures how often something happens: half-second buckets, smoothed by
// 0.8, as the AWS SDKs measure theirs.
type meter struct {
	start time.Time
	count float64
	rate  float64
}

const (
	meterBucket = 500 * time.Millisecond
	meterSmooth = 0.8
)

// add counts one at now.
func (m *meter) add(now time.Time) {
	m.roll(now)
	m.count++
}

// perSecond returns the rate at now.
func (m *meter) perSecond(now time.Time) float64 {
	m.roll(now)
	if m.rate == 0 && m.count > 0 { // younger than one bucket
		return m.count / max(now.Sub(m.start).Seconds(), meterBucket.Seconds())
	}
	return m.rate
}

func (m *meter) roll(now time.Time) {
	if m.start.IsZero() {
		m.start = now
	}
	past := now.Sub(m.start)
	if past < meterBucket {
		return
	}
	measured := m.count / past.Seconds()
	if m.rate == 0 {
		m.rate = measured
	} else {
		m.rate += meterSmooth * (measured - m.rate)
	}
	m.start, m.count = now, 0
}

// retryBudget bounds retries to a share of the calls, so that a service in trouble
// gets 20 % more work and not three times as much. The law is Finagle's: retries in
// the last 10 s may not exceed Ratio × calls in the last 10 s + Floor × 10 s. It is
// charged when a retry is decided.
type retryBudget struct {
	ratio float64
	floor float64

	mu    sync.Mutex
	slots [budgetSlots]budgetSlot
}

// BudgetOptions configures a retry budget.
type BudgetOptions struct {
	// Ratio is how many retries each call earns. Zero means 0.2; NoBudget none.
	Ratio float64
	// Floor is how many retries per second are allowed however few the calls.
	// Zero means 10; NoBudget none.
	Floor float64
}

// NoBudget as a Ratio or a Floor means that it allows nothing.
const NoBudget = -1

const (
	defaultRatio = 0.2
	defaultFloor = 10

	budgetWindow = 10 * time.Second
	budgetSlots  = 10
	budgetSlotOf = budgetWindow / budgetSlots
)

// budgetSlot counts one second's worth of calls and retries.
type budgetSlot struct {
	number  int64 // of the second
	calls   int
	retries int
}

func (o BudgetOptions) validate() error {
	for _, f := range [...]struct {
		name string
		v    float64
	}{{"Ratio", o.Ratio}, {"Floor", o.Floor}} {
		if math.IsNaN(f.v) || math.IsInf(f.v, 0) || f.v < 0 && f.v != NoBudget {
			return fmt.Errorf("outbound: BudgetOptions.%s = %v: must be a positive number, zero or NoBudget", f.name, f.v)
		}
	}
	return nil
}

func newRetryBudget(o BudgetOptions) *retryBudget {
	return &retryBudget{
		ratio: max(0, cmp.Or(o.Ratio, defaultRatio)),
		floor: max(0, cmp.Or(o.Floor, defaultFloor)),
	}
}

// call notes a call, which earns its share of a retry.
func (b *retryBudget) call(now time.Time) {
	b.mu.Lock()
	b.slot(now).calls++
	b.mu.Unlock()
}

// take charges one retry, or reports false and charges nothing.
func (b *retryBudget) take(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.leftLocked(now) < 1 {
		return false
	}
	b.slot(now).retries++
	return true
}

// left returns how many retries are allowed at now.
func (b *retryBudget) left(now time.Time) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(0, b.leftLocked(now))
}

func (b *retryBudget) leftLocked(now time.Time) float64 {
	current := slotNumber(now)
	calls, retries := 0, 0
	for i := range b.slots {
		if s := &b.slots[i]; s.number > current-budgetSlots && s.number <= current {
			calls += s.calls
			retries += s.retries
		}
	}
	// A share of a retry is a sum of decimals: without the allowance, five calls
	// at 0.2 would earn none.
	return b.ratio*float64(calls) + b.floor*budgetWindow.Seconds() - float64(retries) + 1e-9
}

func (b *retryBudget) slot(now time.Time) *budgetSlot {
	n := slotNumber(now)
	s := &b.slots[n%budgetSlots]
	if s.number != n {
		*s = budgetSlot{number: n}
	}
	return s
}

func slotNumber(now time.Time) int64 { return now.UnixNano() / int64(budgetSlotOf) }
