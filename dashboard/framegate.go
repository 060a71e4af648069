package dashboard

import (
	"strings"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/outbound/pacer"
	"github.com/headgate-go/headgate/outbound/verdict"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

func newGateFrame(s admission.Stats) gateFrame {
	g := gateFrame{
		Name: text(s.Name), Draining: s.Draining, Streams: s.Streams,
		Exempt: s.Count(shed.Exempt),
		Pools:  []poolFrame{}, Limits: []limitFrame{},
	}
	g.Refused, g.Reasons = refusals(s.Visits)
	for l := range s.Visits {
		g.Admitted[l] = s.Visits[l][shed.Admitted]
		for _, n := range s.Shadowed[l] {
			g.Shadowed[l] += n
		}
	}
	for _, p := range s.Pools {
		g.Pools = append(g.Pools, newPoolFrame(p))
	}
	for _, l := range s.Limits {
		g.Limits = append(g.Limits, newLimitFrame(l))
	}
	g.Routes = routeFrames(s.Routes)
	g.Limited, g.Turned = callerFrames(s.Limited, 1), callerFrames(s.Refused, 1)
	g.Busiest, g.Served = callerFrames(s.Busiest, 1e-6), callerFrames(s.Served, 1)
	return g
}

func callerFrames(counts []admission.CallerCount, unit float64) []callerFrame {
	all := []callerFrame{}
	for _, c := range counts {
		all = append(all, callerFrame{text(c.Alias), float64(c.Count) * unit})
	}
	return all
}

// routesShown bounds a gate's part of a frame.
const routesShown = 16

func routeFrames(routes []admission.RouteStats) []routeFrame {
	all := []routeFrame{}
	for _, r := range routes {
		all = append(all, newRouteFrame(r))
	}
	return topBy(all, routesShown, func(r routeFrame) float64 {
		return float64(r.Shed[0]+r.Shed[1]+r.Shed[2]+r.Shed[3]) + r.Held
	})
}

func newRouteFrame(r admission.RouteStats) routeFrame {
	f := routeFrame{Route: text(r.Pattern), Held: r.Held.Seconds(), Failed: r.Outcomes[shed.Failed] + r.Outcomes[shed.TimedOut]}
	for l := range r.Visits {
		for i, n := range r.Visits[l] {
			switch why := shed.Reason(i); {
			case why == shed.Admitted:
				f.Served += n
			case why == shed.RateLimited, why == shed.NotAdmissible, why == shed.CallerCap:
				f.Limited += n
			case why.Refused() && why != shed.Unidentified && why != shed.ClientGone:
				f.Shed[l] += n
			}
		}
	}
	return f
}

func newPoolFrame(p admission.PoolStats) poolFrame {
	f := poolFrame{
		Name: text(p.Name), Limit: p.Limit, Least: p.Least, Most: p.Most, InFlight: p.InFlight,
		Bound: p.Bound, Waiting: p.Waiting, Oldest: p.Oldest.Seconds(),
		Drain: p.DrainRate, Service: p.Service.Seconds(), Cause: p.Cause.String(), Waits: p.Waits[:],
	}
	for l, held := range p.SlotTime {
		f.Held[l] = held.Seconds()
	}
	for _, n := range p.WaitingBytes {
		f.Bytes += n
	}
	for c, n := range p.Moves {
		if shed.Cause(c) != shed.CauseNone {
			f.Moves += n
		}
	}
	return f
}

func newLimitFrame(l admission.LimitStats) limitFrame {
	f := limitFrame{Name: text(l.Name), Burst: l.Policy.Burst, Keys: l.Keys, Most: l.MaxKeys, Overflow: l.Overflow}
	if l.Policy.Burst > 0 {
		f.Rate = perSecond(l.Policy.Rate)
	}
	return f
}

type callFrame struct {
	Name       string           `json:"name"`
	Operations []operationFrame `json:"operations"` // those with most to say
	More       int              `json:"more"`       // left out
}

type operationFrame struct {
	Service    string   `json:"service"`
	Operation  string   `json:"operation"`
	Rate       *float64 `json:"rate"` // in force, per second; null: unlimited
	Multiplier float64  `json:"multiplier"`
	Pause      float64  `json:"pause"` // seconds left
	Waiting    int      `json:"waiting"`
	InFlight   int      `json:"inFlight"`
	Budget     float64  `json:"budget"` // retries left
	Attempts   uint64   `json:"attempts"`
	Retries    uint64   `json:"retries"`
	Throttled  uint64   `json:"throttled"`
	Failed     uint64   `json:"failed"`
	NotSent    uint64   `json:"notSent"`
}

// operationsShown bounds a transport's part of a frame.
const operationsShown = 12

func newCallFrame(name string, s pacer.Stats) callFrame {
	f := callFrame{Name: text(name), Operations: []operationFrame{}}
	for _, o := range s.Operations {
		f.Operations = append(f.Operations, newOperationFrame(o))
	}
	f.More = max(0, len(f.Operations)-operationsShown)
	f.Operations = topBy(f.Operations, operationsShown, func(o operationFrame) float64 {
		return o.Pause*1e9 + (1-o.Multiplier)*1e9 + float64(o.Waiting)*1e3 + float64(o.Attempts)
	})
	return f
}

func newOperationFrame(o pacer.OperationStats) operationFrame {
	f := operationFrame{
		Service: text(o.Key.Space), Operation: text(o.Key.ID), Rate: perSecond(o.Rate),
		Multiplier: o.Multiplier, Pause: max(o.PauseLeft.Seconds(), 0), Waiting: o.Waiting, InFlight: o.InFlight,
		Budget: o.RetryLeft, Attempts: o.Attempts, Retries: o.Retries,
		Throttled: o.Ended[verdict.Throttled] + o.Ended[verdict.Overloaded] + o.Ended[verdict.QuotaExhausted],
		Failed:    o.Ended[verdict.Transient],
	}
	for _, n := range o.Refused {
		f.NotSent += n
	}
	return f
}

type workFrame struct {
	Name    string              `json:"name"`
	Waiting [priority.Count]int `json:"waiting"`
	Oldest  float64             `json:"oldest"` // seconds
	Dropped uint64              `json:"dropped"`
}

type storeFrame struct {
	Name     string   `json:"name"`
	State    string   `json:"state"`
	Why      string   `json:"why"`
	Since    float64  `json:"since"` // seconds
	Degraded bool     `json:"degraded"`
	Peers    int      `json:"peers"`
	Rate     *float64 `json:"rate"`
	Share    *float64 `json:"share"`
	Keys     int      `json:"keys"`
	AwayKeys int      `json:"awayKeys"`
	Calls    uint64   `json:"calls"`
	Failed   uint64   `json:"failed"`
}

// addStores adds those that are not there yet: limiters of one name share one
// ceiling, and one may serve several gates.
func (f *frame) addStores(stores ...ratelimit.StoreStats) {
next:
	for _, s := range stores {
		for _, known := range f.Stores {
			if known.Name == text(s.Name) {
				continue next
			}
		}
		store := storeFrame{
			Name: text(s.Name), State: text(s.State), Why: text(s.Why), Since: s.Since.Seconds(), Degraded: s.Degraded,
			Peers: s.Peers, Rate: perSecond(s.Rate), Share: perSecond(s.ShareRate),
			Keys: s.Keys, AwayKeys: s.AwayKeys,
		}
		for _, c := range s.Calls {
			store.Calls += c.Count
			if c.Result != "ok" {
				store.Failed += c.Count
			}
		}
		f.Stores = append(f.Stores, store)
	}
}

// textMost bounds a name on the page, in bytes.
const textMost = 96

// text cuts a name to what a page can show.
func text(name string) string {
	return strings.ToValidUTF8(name[:min(len(name), textMost)], "\uFFFD")
}
