package account_test

import (
	"cmp"
	"container/heap"
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/account"
	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/account/accounttest"
)

// fleet is many processes and one store in virtual time. It drives the accounts
// as Limiter does: same decisions, same calls, same patience.
type fleet struct {
	now    time.Duration
	events events
	seq    int
	store  *accounttest.Model
	conf   *account.Config
	rtt    time.Duration
	jitter func() time.Duration // one way; nil for half of rtt
	cut    func(p *proc) bool   // p cannot reach the store; nil: all can
	peers  int
	procs  []*proc
	wrong  func() (ahead time.Duration, fast float64) // a clock; nil for the right one

	arrived  []time.Duration
	admitted []time.Duration
	blocked  int // requests that waited for a call
	local    int // requests admitted without the store's word
}

type proc struct {
	account account.Account
	name    string
	calls   []flight        // not late
	waiting []time.Duration // arrivals that wait for a call
	watched bool
	gone    bool
	ahead   time.Duration // of the simulation's clock
	fast    float64       // how much faster it runs
}

type flight struct {
	serial int64
	sent   time.Duration
}

type event struct {
	at  time.Duration
	seq int
	do  func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(e[i].at, e[j].at), cmp.Compare(e[i].seq, e[j].seq)) < 0
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	x := old[len(old)-1]
	*e = old[:len(old)-1]
	return x
}

func newFleet(n int, r float64, burst int, rtt time.Duration) *fleet {
	c := account.Defaults()
	c.Limit = account.Limit{Rate: r, Burst: burst}
	f := &fleet{conf: &c, rtt: rtt, peers: n, now: time.Hour}
	f.store = accounttest.NewModel(func() int64 { return f.now.Microseconds() })
	for range n {
		f.join()
	}
	return f
}

func (f *fleet) join() *proc {
	p := &proc{account: account.New(f.conf, f.view()), name: strconv.Itoa(len(f.procs))}
	if f.wrong != nil {
		p.ahead, p.fast = f.wrong()
	}
	f.procs = append(f.procs, p)
	return p
}

// at is t on p's own clock.
func (p *proc) at(t time.Duration) time.Duration {
	return t + p.ahead + time.Duration(float64(t)*p.fast)
}

// skew sets the clocks of all processes wrong, those that join later included: by up to
// an hour, and faster or slower by up to 200 ppm.
func (f *fleet) skew(rnd *rand.Rand) {
	f.wrong = func() (ahead time.Duration, fast float64) {
		return time.Duration(rnd.Int64N(int64(time.Hour))), (rnd.Float64() - 0.5) * 4e-4
	}
	for _, p := range f.procs {
		p.ahead, p.fast = f.wrong()
	}
}

func (f *fleet) after(d time.Duration, do func()) {
	f.seq++
	heap.Push(&f.events, event{f.now + d, f.seq, do})
}

func (f *fleet) run(length time.Duration) {
	end := f.now + length
	for len(f.events) > 0 && f.events[0].at <= end {
		e := heap.Pop(&f.events).(event)
		f.now = e.at
		e.do()
	}
	f.now = end
}

// offer lets p be asked perSec times a second while on says so.
func (f *fleet) offer(p *proc, rnd *rand.Rand, perSec float64, on func(t time.Duration) bool) {
	var next func()
	next = func() {
		if p.gone {
			return
		}
		if on == nil || on(f.now) {
			f.arrived = append(f.arrived, f.now)
			f.take(p, f.now)
		}
		f.after(time.Duration(rnd.ExpFloat64()/perSec*float64(time.Second)), next)
	}
	f.after(time.Duration(rnd.ExpFloat64()/perSec*float64(time.Second)), next)
}

func (f *fleet) view() account.View { return account.View{f.peers, f.rtt} }

func (f *fleet) patience() time.Duration {
	return min(max(f.rtt*3/2, 20*time.Millisecond), 250*time.Millisecond)
}

func (f *fleet) take(p *proc, arrived time.Duration) {
	f.overdue(p)
	v := p.account.Take(p.at(f.now), 1, 0)
	if v.Call && f.now-arrived >= f.patience() {
		v = p.account.TakeLate(p.at(f.now), 1)
	}
	if v.Ok {
		f.admitted = append(f.admitted, f.now)
		if v.Source == ratelimit.SourceShare {
			f.local++
		}
	}
	if v.Call {
		if arrived == f.now {
			f.blocked++
			f.after(f.patience(), func() { f.retake(p) })
		}
		p.waiting = append(p.waiting, arrived)
		f.callFor(p)
	} else if p.account.Due(p.at(f.now)) {
		f.call(p)
	}
}

// callFor makes the call that those who wait are part of, now or a bit later.
func (f *fleet) callFor(p *proc) {
	a := &p.account
	if len(p.calls) == 0 {
		f.call(p)
		return
	}
	if !a.Uncovered(len(p.waiting)) {
		return
	}
	if next := p.calls[len(p.calls)-1].sent + max(f.rtt/4, time.Millisecond); next > f.now {
		f.after(next-f.now, func() { f.retake(p) })
		return
	}
	f.call(p)
}

func (f *fleet) call(p *proc) {
	need, least := len(p.waiting), min(1, len(p.waiting))
	if need > 0 {
		need = p.account.Missing(need)
	}
	sent := f.now
	r := p.account.Ask(p.at(f.now), need, least, 0)
	r.Key, r.Payer = "all", p.name
	p.calls = append(p.calls, flight{r.Serial, sent})
	there, back := f.rtt/2, f.rtt/2
	if f.jitter != nil {
		there, back = f.jitter(), f.jitter()
	}
	f.after(there, func() {
		rep, err := account.Reply{}, context.DeadlineExceeded
		if f.cut == nil || !f.cut(p) {
			rep, err = f.store.Lease(context.Background(), r)
		}
		if err != nil {
			back = f.conf.Law.Trip - there
		}
		f.after(back, func() { f.answer(p, sent, r, rep, err) })
	})
}

func (f *fleet) answer(p *proc, sent time.Duration, r account.Request, rep account.Reply, err error) {
	p.calls = slices.DeleteFunc(p.calls, func(c flight) bool { return c.serial == r.Serial })
	if err == nil {
		p.account.Apply(p.at(f.now), p.at(sent), r, rep, f.view())
		f.watch(p)
	} else {
		p.account.Fail(p.at(f.now), r, account.WhyTimeout, f.view())
	}
	f.retake(p)
}

func (f *fleet) overdue(p *proc) {
	if p.account.Away() {
		return
	}
	for len(p.calls) > 0 && f.now-p.calls[0].sent >= f.patience() {
		p.account.Overdue(p.calls[0].serial)
		p.calls = p.calls[1:]
	}
	p.account.Listen(p.at(f.now), max(4*f.rtt, 100*time.Millisecond), f.view())
}

func (f *fleet) retake(p *proc) {
	waiting := p.waiting
	p.waiting = nil
	for _, at := range waiting {
		f.take(p, at)
	}
}

func (f *fleet) watch(p *proc) {
	if p.watched || !p.account.Watch() {
		return
	}
	p.watched = true
	f.after(p.account.Interval(), func() {
		p.watched = false
		if p.gone {
			return
		}
		if p.account.Lull(p.at(f.now)) {
			f.call(p)
		}
		f.watch(p)
	})
}

// ideal is what one bucket in memory lets through of the same arrivals.
func (f *fleet) ideal() (n int) {
	b, zero := rate.NewLimiter(rate.Limit(f.conf.Limit.Rate), f.conf.Limit.Burst), time.Unix(0, 0)
	for _, at := range f.arrived {
		if b.AllowN(zero.Add(at), 1) {
			n++
		}
	}
	return n
}
