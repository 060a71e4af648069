package gauntlet

import (
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/shed"
)

// run drives one scenario through the queue's core in virtual time.
type run struct {
	recorder
	core     *queue.Core
	law      *tap
	inFlight int
	depth    int
	backend  backend
	arrivals arrivals
	rng      *rand.Rand // for retries only, so that arrivals stay the same
	epoch    time.Time
	visits   []*visit
	free     []int32
	done     events // work that will be finished
	back     events // clients that will come back; the id is an index of returning
	returns  []request
	owner    map[*queue.Waiter]int32
}

// visit is a request in front of the gate or behind it.
type visit struct {
	request
	waiter queue.Waiter
}

// Simulate runs a scenario with one law and one seed.
func Simulate(s *Scenario, limit shed.Limit, seed uint64) (*Record, error) {
	epoch := time.Unix(1_700_000_000, 0)
	law := &tap{config: limit, epoch: epoch}
	core, err := queue.NewCore(queue.Config{Limit: law})
	if err != nil {
		return nil, err
	}
	r := &run{
		recorder: recorder{s: s, r: newRecord(s)},
		core:     core, law: law, backend: s.Backend(),
		arrivals: arrivals{s: s, rng: rand.New(rand.NewPCG(seed, hash(s.ID)))},
		rng:      rand.New(rand.NewPCG(seed, ^hash(s.ID))),
		epoch:    epoch,
		owner:    make(map[*queue.Waiter]int32),
	}
	r.loop()
	r.r.finish()
	r.r.Moves = law.moves
	return r.r, nil
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
		t := min(arrival, expiry, r.done.next(), r.back.next())
		if t == never {
			return
		}
		r.elapse(min(t, r.s.Length()), r.law.law.Limit(), r.inFlight, r.depth)
		switch t {
		case r.done.next():
			r.release(t, r.done.pop().id)
		case arrival:
			r.offer(t, next)
			next, more = r.arrivals.next()
		case r.back.next():
			r.offer(t, r.returns[r.back.pop().id])
		}
		r.settle(t)
	}
}

func (r *run) nextExpiry() time.Duration {
	at, ok := r.core.NextExpiry()
	if !ok {
		return never
	}
	return max(at.Sub(r.epoch), r.last)
}

func (r *run) now(t time.Duration) time.Time { return r.epoch.Add(t) }

// offer brings a request to the gate.
func (r *run) offer(t time.Duration, req request) {
	r.offered(&req)
	id := r.visit(req)
	v := r.visits[id]
	verdict, evicted := r.core.Offer(r.now(t), &v.waiter)
	if evicted != nil {
		r.depth--
		r.refuse(t, evicted)
	}
	switch verdict {
	case shed.In:
		r.admit(t, id)
	case shed.Waits:
		r.depth++
	case shed.Out:
		r.refuse(t, &v.waiter)
	}
}

// settle hands out what the core has decided since.
func (r *run) settle(t time.Duration) {
	for w := r.core.Expire(r.now(t)); w != nil; w = r.core.Expire(r.now(t)) {
		r.depth--
		r.refuse(t, w)
	}
	for w := r.core.Next(r.now(t)); w != nil; w = r.core.Next(r.now(t)) {
		r.depth--
		r.admit(t, r.owner[w])
	}
}

func (r *run) admit(t time.Duration, id int32) {
	v := r.visits[id]
	v.admitted = t
	r.inFlight++
	r.recorder.admitted(&v.request, r.backend.median(t))
	if until, ok := r.backend.start(t, id, &v.request); ok {
		r.done.push(event{until, id})
	}
}

func (r *run) release(t time.Duration, id int32) {
	if other, until, ok := r.backend.finish(t); ok {
		r.done.push(event{until, other})
	}
	v := r.visits[id]
	r.inFlight--
	r.finished(t, &v.request)
	outcome := shed.Served
	if t > v.deadline {
		outcome = shed.TimedOut
	}
	r.core.Release(r.now(t), v.waiter.Grant, outcome)
	r.leave(id)
}

// refuse files a refusal, and plans the client's return.
func (r *run) refuse(t time.Duration, w *queue.Waiter) {
	id := r.owner[w]
	v := r.visits[id]
	r.recorder.refused(&v.request, w.Reason)
	again := v.request
	r.leave(id)
	if r.s.Retry.Times == 0 {
		return
	}
	after := r.core.RetryAfter(r.now(t), Levels[again.class], r.rng.Float64())
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
	v.request = req
	v.waiter.Ticket = queue.Ticket{Level: Levels[req.class], Caller: req.tenant, Deadline: r.now(req.deadline)}
	return id
}

func (r *run) leave(id int32) { r.free = append(r.free, id) }
