package dashboard

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

// frame is what the page is told at one instant. Counts are totals since the start;
// the page makes rates of them. Arrays of four are by level, least important first.
type frame struct {
	At      int64        `json:"at"`      // milliseconds since 1970
	Process int64        `json:"process"` // when counting began; another number: it began anew
	Title   string       `json:"title"`
	Host    string       `json:"host"`    // the machine, and the process on it
	Runbook string       `json:"runbook"` // its address; empty: no links
	InForce bool         `json:"inForce"` // the numbers in force can be asked for
	Gates   []gateFrame  `json:"gates"`
	Calls   []callFrame  `json:"calls"`
	Queues  []workFrame  `json:"queues"`
	Stores  []storeFrame `json:"stores"`
}

type levels [priority.Count]uint64

type gateFrame struct {
	Name     string            `json:"name"`
	Draining bool              `json:"draining"`
	Streams  int               `json:"streams"`
	Admitted levels            `json:"admitted"`
	Refused  levels            `json:"refused"`
	Reasons  map[string]levels `json:"reasons"` // of refusals, those that happened
	Shadowed levels            `json:"shadowed"`
	Exempt   uint64            `json:"exempt"`
	Pools    []poolFrame       `json:"pools"`
	Limits   []limitFrame      `json:"limits"`
	Routes   []routeFrame      `json:"routes"`  // those with most refused, then with most slot time
	Limited  []callerFrame     `json:"limited"` // callers over limits of their own, lately
	Turned   []callerFrame     `json:"turned"`  // callers refused for want of capacity, lately
	Busiest  []callerFrame     `json:"busiest"` // callers by slot time, lately, in seconds
	Served   []callerFrame     `json:"served"`  // callers served most, lately
}

// routeFrame counts the visits of a route that have ended.
type routeFrame struct {
	Route   string  `json:"route"`
	Served  uint64  `json:"served"`  // admitted, however it ended
	Failed  uint64  `json:"failed"`  // of those: failed, or too late
	Limited uint64  `json:"limited"` // refused by limits of the caller's own
	Shed    levels  `json:"shed"`    // refused for want of capacity
	Held    float64 `json:"held"`    // slot time, in seconds
}

type poolFrame struct {
	Name     string                  `json:"name"`
	Limit    int                     `json:"limit"`
	Held     [priority.Count]float64 `json:"held"` // slot time of the work that has ended, in seconds
	Least    int                     `json:"least"`
	Most     int                     `json:"most"`
	InFlight int                     `json:"inFlight"`
	Bound    int                     `json:"bound"`
	Waiting  [priority.Count]int     `json:"waiting"`
	Bytes    int64                   `json:"bytes"`
	Oldest   float64                 `json:"oldest"`  // seconds
	Drain    float64                 `json:"drain"`   // per second; 0: not known
	Service  float64                 `json:"service"` // seconds; 0: not known
	Cause    string                  `json:"cause"`   // of the limit's last move
	Moves    uint64                  `json:"moves"`
	Waits    []uint64                `json:"waits"` // bucket i ends at 2^i ms, the last one never
}

type limitFrame struct {
	Name     string   `json:"name"`
	Rate     *float64 `json:"rate"` // per second; null: unlimited, or several
	Burst    int      `json:"burst"`
	Keys     int      `json:"keys"`
	Most     int      `json:"most"`
	Overflow uint64   `json:"overflow"`
}

type callerFrame struct {
	Alias string  `json:"alias"`
	Count float64 `json:"count"`
}

// read takes a snapshot of everything on the page.
func (b *board) read(now, began time.Time) frame {
	f := frame{
		At: now.UnixMilli(), Process: began.UnixMicro(), Title: b.title, Host: host(), Runbook: b.runbook, InForce: b.inForce != nil,
		Gates: []gateFrame{}, Calls: []callFrame{}, Queues: []workFrame{}, Stores: []storeFrame{},
	}
	for _, g := range b.gates {
		s := g.Stats()
		f.Gates = append(f.Gates, newGateFrame(s))
		for _, l := range s.Limits {
			f.addStores(l.Stores...)
		}
	}
	for _, s := range b.stores {
		f.addStores(s.StoreStats())
	}
	for _, t := range b.transports {
		f.Calls = append(f.Calls, newCallFrame(t.name, t.Stats()))
	}
	for _, q := range b.queues {
		f.Queues = append(f.Queues, workFrame{
			Name: q.name, Waiting: q.Waiting(), Oldest: q.Oldest(now).Seconds(), Dropped: q.Dropped(),
		})
	}
	return f
}

// host names this process among others that may be behind the same address.
var host = sync.OnceValue(func() string {
	name, err := os.Hostname()
	if err != nil {
		name = "this machine"
	}
	return text(fmt.Sprintf("%s, process %d", name, os.Getpid()))
})

// latest is the last frame read, as JSON: however many look, the figures are read
// at most once in freshFor.
type latest struct {
	began time.Time

	mu   sync.Mutex // held while reading, so that only one does
	at   time.Time
	json []byte
}

const freshFor = 250 * time.Millisecond

func (b *board) frame(now time.Time) []byte {
	l := &b.latest
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.json == nil || now.Sub(l.at) >= freshFor {
		l.at = now
		l.json, _ = json.Marshal(b.read(now, l.began)) // numbers and text only: it cannot fail
	}
	return l.json
}

// perSecond returns nil for a rate without a limit.
func perSecond(l rate.Limit) *float64 {
	x := float64(l)
	if l >= rate.Inf || math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

// topBy returns the n items with the highest rank, the highest first.
func topBy[T any, R cmp.Ordered](items []T, n int, rank func(T) R) []T {
	slices.SortStableFunc(items, func(a, b T) int { return cmp.Compare(rank(b), rank(a)) })
	return items[:min(n, len(items))]
}

// refusals counts what was refused, by reason and in all.
func refusals(visits [priority.Count][shed.ReasonCount]uint64) (all levels, by map[string]levels) {
	by = map[string]levels{}
	for r := shed.Exempt + 1; int(r) < shed.ReasonCount; r++ {
		var n levels
		var sum uint64
		for l := range visits {
			n[l] = visits[l][r]
			all[l] += n[l]
			sum += n[l]
		}
		if sum > 0 {
			by[r.String()] = n
		}
	}
	return all, by
}
