package gauntlet

import (
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/headgate-go/headgate/internal/entry"
	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/shed"
)

// run drives one scenario through the queue's core in virtual time.
type run struct {
	recorder
	gates    []*gate
	backend  backend
	arrivals arrivals
	rng      *rand.Rand // for retries only, so that arrivals stay the same
	epoch    time.Time
	visits   []*visit
	free     []int32
	done     events // work that will be finished
	leaving  events // clients that will leave unannounced
	back     events // clients that will come back; the id is an index of returns
	returns  []request
	owner    map[*queue.Waiter]int32
}

// gate is one instance of the service: a core with a law of its own.
type gate struct {
	core     *queue.Core
	law      *tap
	inFlight int
	depth    int
	served   int
}

// visit is a request in front of a gate or behind it.
type visit struct {
	request
	gate   *gate
	waits  bool
	waiter queue.Waiter
}

// Simulate runs a scenario with one law and one seed.
func Simulate(s *Scenario, limit shed.Limit, seed uint64) (*Record, error) {
	epoch := time.Unix(1_700_000_000, 0)
	r := &run{
		recorder: recorder{s: s, r: newRecord(s)},
		backend:  s.Backend(),
		arrivals: arrivals{s: s, rng: rand.New(rand.NewPCG(seed, hash(s.ID)))},
		rng:      rand.New(rand.NewPCG(seed, ^hash(s.ID))),
		epoch:    epoch,
		owner:    make(map[*queue.Waiter]int32),
	}
	for range max(s.Instances, 1) {
		law := &tap{config: limit, epoch: epoch}
		core, err := queue.NewCore(queue.Config{Limit: law, MaxWait: s.MaxWait})
		if err != nil {
			return nil, err
		}
		r.gates = append(r.gates, &gate{core: core, law: law})
	}
	r.loop()
	r.finish()
	return r.r, nil
}

func (r *run) finish() {
	r.r.finish()
	r.r.Moves = r.gates[0].law.moves
	for _, g := range r.gates {
		r.r.shares = append(r.r.shares, g.served)
	}
}

func hash(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}

// loop takes events in order of time until everything has ended.
func (r *run) loop() {
	next, more := r.arrivals.next()
	for {
		arrival := never
		if more {
			arrival = next.arrived
		}
		expiry := r.nextExpiry()
		t := min(arrival, expiry, r.done.next(), r.back.next(), r.leaving.next())
		if t == never {
			return
		}
		r.elapse(min(t, r.s.Length()), r.load())
		switch t {
		case r.done.next():
			r.release(t, r.done.pop().id)
		case r.leaving.next():
			r.goes(t, r.leaving.pop().id)
		case arrival:
			r.offer(t, next)
			next, more = r.arrivals.next()
		case r.back.next():
			r.offer(t, r.returns[r.back.pop().id])
		}
		for _, g := range r.gates {
			r.settle(t, g)
		}
	}
}

// load is that of all gates together.
func (r *run) load() (l load) {
	for _, g := range r.gates {
		l.limit += g.law.law.Limit()
		l.inFlight += g.inFlight
		l.depth += g.depth
	}
	return l
}

func (r *run) nextExpiry() time.Duration {
	first := never
	for _, g := range r.gates {
		if at, ok := g.core.NextExpiry(); ok {
			first = min(first, max(at.Sub(r.epoch), r.last))
		}
	}
	return first
}

func (r *run) now(t time.Duration) time.Time { return r.epoch.Add(t) }

// offer brings a request to a gate.
func (r *run) offer(t time.Duration, req request) {
	r.offered(&req)
	id := r.visit(req)
	v := r.visits[id]
	verdict, evicted := v.gate.core.Offer(r.now(t), &v.waiter)
	if evicted != nil {
		r.refuse(t, evicted)
	}
	switch verdict {
	case entry.In:
		r.admit(t, id)
	case entry.Waits:
		v.gate.depth++
		v.waits = true
		if r.s.Unannounced {
			r.leaving.push(event{v.deadline, id})
		}
	case entry.Out:
		r.refuse(t, &v.waiter)
	}
}

// goes lets a client leave that nobody told the gate of, if it still waits.
func (r *run) goes(t time.Duration, id int32) {
	v := r.visits[id]
	if v.waits && v.deadline == t && v.gate.core.Cancel(r.now(t), &v.waiter) {
		r.refuse(t, &v.waiter)
	}
}

// settle hands out what a core has decided since.
func (r *run) settle(t time.Duration, g *gate) {
	for w := g.core.Expire(r.now(t)); w != nil; w = g.core.Expire(r.now(t)) {
		r.refuse(t, w)
	}
	for w := g.core.Next(r.now(t)); w != nil; w = g.core.Next(r.now(t)) {
		r.admit(t, r.owner[w])
	}
}

func (r *run) admit(t time.Duration, id int32) {
	v := r.visits[id]
	r.unqueue(v)
	v.admitted = t
	v.gate.inFlight += v.slots
	r.recorder.admitted(&v.request, r.backend.median(t))
	if after, fails := r.s.fails(t, &v.request); fails {
		v.failed, v.alone = true, after
		r.done.push(event{t + after, id})
		return
	}
	if until, ok := r.backend.start(t, id, &v.request); ok {
		r.done.push(event{until, id})
	}
}

func (r *run) unqueue(v *visit) {
	if v.waits {
		v.waits = false
		v.gate.depth--
	}
}

func (r *run) release(t time.Duration, id int32) {
	v := r.visits[id]
	if !v.failed {
		r.backend.finish(v.slots)
		for other, until, ok := r.backend.next(t); ok; other, until, ok = r.backend.next(t) {
			r.done.push(event{until, other})
		}
	}
	v.gate.inFlight -= v.slots
	v.gate.served++
	r.finished(t, &v.request)
	v.gate.core.Release(r.now(t), v.waiter.Grant, r.outcome(t, v))
	r.leave(id)
}

func (r *run) outcome(t time.Duration, v *visit) shed.Outcome {
	switch {
	case t > v.deadline && r.s.Unannounced:
		return shed.Ignored
	case t > v.deadline:
		return shed.TimedOut
	case v.failed:
		return shed.Failed
	}
	return shed.Served
}

// refuse files a refusal, and plans the client's return.
func (r *run) refuse(t time.Duration, w *queue.Waiter) {
	id := r.owner[w]
	v := r.visits[id]
	r.unqueue(v)
	r.recorder.refused(t, &v.request, w.Reason)
	again, g := v.request, v.gate
	r.leave(id)
	if r.s.Retry.Times == 0 {
		return
	}
	after := g.core.RetryAfter(r.now(t), Levels[again.class], r.rng.Float64())
	if !r.s.Retry.Obey {
		after = r.s.Retry.Delay + time.Duration(r.rng.Float64()*float64(r.s.Retry.Jitter))
	}
	if again.tries == r.s.Retry.Times || t+after >= r.s.Length() {
		return
	}
	again.tries++
	again.arrived, again.deadline = t+after, t+after+r.s.Deadline
	r.returns = append(r.returns, again)
	r.back.push(event{again.arrived, int32(len(r.returns) - 1)})
}

// visit opens a visit for a request. Waiters do not move while the core has them.
func (r *run) visit(req request) int32 {
	if len(r.free) == 0 {
		v := new(visit)
		id := int32(len(r.visits))
		r.visits = append(r.visits, v)
		r.owner[&v.waiter] = id
		r.free = append(r.free, id)
	}
	id := r.free[len(r.free)-1]
	r.free = r.free[:len(r.free)-1]
	v := r.visits[id]
	v.request, v.waits = req, false
	v.gate = r.gates[int(req.instance*float64(len(r.gates)))]
	v.waiter.Ticket = queue.Ticket{Level: Levels[req.class], Caller: req.tenant, Slots: req.slots}
	if !r.s.Unannounced {
		v.waiter.Deadline = r.now(req.deadline)
	}
	return id
}

func (r *run) leave(id int32) { r.free = append(r.free, id) }
