// Package replay runs recorded traffic through what decides in a real gate, in
// virtual time: the buckets of package ratelimit, then the core of package queue
// under a law of package shed. Only the clock, the lock and HTTP are left out.
package replay

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/headgate-go/headgate/internal/entry"
	"github.com/headgate-go/headgate/internal/size/traffic"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// Options are the numbers to try. They mean what those of admission.Options mean.
type Options struct {
	Rate     ratelimit.Limiter // nil: ratelimit.Unlimited
	Limit    shed.Limit
	MaxWait  time.Duration
	Deadline time.Duration                      // from arrival; zero: none
	Level    func(route uint16) priority.Level  // nil: all are Normal
	OnRefuse func(*traffic.Record, shed.Reason) // told of each refusal; nil: not
}

// Gate is a gate in virtual time. Feed it the records in order of arrival, then
// Finish. It is not safe for concurrent use.
//
// A request that gets a slot holds it as long as its log says it took, and nobody
// comes back after a refusal.
type Gate struct {
	Options
	Result
	core *queue.Core
	work work // in flight, by when it ends
	free []*visit
	of   map[*queue.Waiter]*visit
	now  time.Duration
}

// visit is one request at the gate.
type visit struct {
	traffic.Record
	waiter queue.Waiter
	ends   time.Duration
}

// New builds a gate, or says which number makes no sense.
func New(o Options) (*Gate, error) {
	if o.Rate == nil {
		o.Rate = ratelimit.Unlimited
	}
	if err := o.Rate.Validate(); err != nil {
		return nil, err
	}
	core, err := queue.NewCore(queue.Config{Limit: o.Limit, MaxWait: o.MaxWait})
	if err != nil {
		return nil, err
	}
	g := &Gate{Options: o, core: core, of: map[*queue.Waiter]*visit{}}
	g.Result = newResult(core.Stats(time.Unix(0, 0)).Limit)
	return g, nil
}

// Arrive takes the next request. Requests whose time is not known meet the rate
// and no more.
func (g *Gate) Arrive(r traffic.Record) {
	g.advance(r.Arrived)
	d := g.Rate.Take(context.Background(), at(r.Arrived), key(r.Caller), 1, 0)
	switch {
	case d.Never:
		g.refuse(&r, shed.NotAdmissible)
	case !d.OK:
		g.refuse(&r, shed.RateLimited)
	case !r.Timed:
		g.admitted(&r, 0)
	default:
		g.offer(r)
	}
}

// Finish lets everything end that still runs or waits.
func (g *Gate) Finish() *Result {
	g.advance(1<<63 - 1)
	return &g.Result
}

func (g *Gate) offer(r traffic.Record) {
	v := g.visit(r)
	verdict, evicted := g.core.Offer(at(g.now), &v.waiter)
	if evicted != nil {
		g.leave(g.of[evicted])
	}
	switch verdict {
	case entry.In:
		g.start(v)
	case entry.Out:
		g.leave(v)
	}
	g.settle()
}

// advance takes what happens until t in order: work that ends, waiters that leave.
func (g *Gate) advance(t time.Duration) {
	for {
		next := g.nextExpiry()
		ends := len(g.work) > 0 && g.work[0].ends <= next
		if ends {
			next = g.work[0].ends
		}
		if next > t || next == never {
			g.now = max(g.now, min(t, never-1))
			return
		}
		g.now = max(g.now, next)
		if ends {
			g.end(g.work.pop())
		}
		g.settle()
	}
}

// settle hands out what the core has decided.
func (g *Gate) settle() {
	now := at(g.now)
	for w := g.core.Expire(now); w != nil; w = g.core.Expire(now) {
		g.leave(g.of[w])
	}
	for w := g.core.Next(now); w != nil; w = g.core.Next(now) {
		g.start(g.of[w])
	}
	if step := g.core.Moved(); step.Moved() {
		g.moved(step.Limit)
	}
	g.queued(g.Waiting())
}

// Waiting returns how many wait now.
func (g *Gate) Waiting() int { return len(g.of) - len(g.work) - len(g.free) }

func (g *Gate) start(v *visit) {
	g.admitted(&v.Record, v.waiter.Grant.Waited)
	v.ends = g.now + v.Took
	g.work.push(v)
	g.ran(len(g.work))
}

func (g *Gate) end(v *visit) {
	outcome := outcomeOf(int(v.Status))
	if g.Deadline > 0 && v.ends > v.Arrived+g.Deadline {
		outcome = shed.TimedOut
	}
	g.core.Release(at(g.now), v.waiter.Grant, outcome)
	g.free = append(g.free, v)
}

// outcomeOf reads a status as the gate does.
func outcomeOf(status int) shed.Outcome {
	switch {
	case status == 503 || status == 504:
		return shed.TimedOut
	case status >= 500:
		return shed.Failed
	case status >= 400 || status == 101:
		return shed.Ignored
	}
	return shed.Served
}

func (g *Gate) leave(v *visit) {
	g.refuse(&v.Record, v.waiter.Reason)
	g.free = append(g.free, v)
}

func (g *Gate) refuse(r *traffic.Record, reason shed.Reason) {
	g.refused(r, reason)
	if g.OnRefuse != nil {
		g.OnRefuse(r, reason)
	}
}

// visit opens a visit. Waiters do not move while the core has them.
func (g *Gate) visit(r traffic.Record) *visit {
	if len(g.free) == 0 {
		v := &visit{}
		g.of[&v.waiter] = v
		g.free = append(g.free, v)
	}
	v := g.free[len(g.free)-1]
	g.free = g.free[:len(g.free)-1]
	v.Record = r
	v.waiter.Ticket = queue.Ticket{Caller: key(r.Caller).ID}
	if g.Level != nil {
		v.waiter.Level = g.Level(r.Route)
	}
	if g.Deadline > 0 {
		v.waiter.Deadline = at(r.Arrived + g.Deadline)
	}
	return v
}

func (g *Gate) nextExpiry() time.Duration {
	when, ok := g.core.NextExpiry()
	if !ok {
		return never
	}
	return max(time.Duration(when.UnixNano()), g.now)
}

const never = time.Duration(1<<63 - 1)

func at(t time.Duration) time.Time { return time.Unix(0, int64(t)) }

func key(caller uint64) ratelimit.Key {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], caller)
	return ratelimit.Key{Space: "log", ID: string(b[:])}
}
