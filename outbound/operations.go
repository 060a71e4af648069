package outbound

import (
	"slices"
	"time"

	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
)

// operation returns what is shared under key.
func (p *Pacer) operation(key ratelimit.Key) *operation {
	p.mu.RLock()
	o := p.ops[key]
	p.mu.RUnlock()
	if o != nil {
		return o
	}
	return p.addOperation(key)
}

func (p *Pacer) addOperation(key ratelimit.Key) *operation {
	p.mu.Lock()
	defer p.mu.Unlock()
	if o := p.ops[key]; o != nil {
		return o
	}
	if len(p.ops) >= p.opts.MaxOperations && !p.sweep(time.Now()) {
		return p.overflow
	}
	svc := p.services[key.Space]
	if svc == nil {
		svc, _ = p.newService() // its configuration was tried in NewPacer
		p.services[key.Space] = svc
	}
	o := p.newOperation(key, svc)
	p.ops[key] = o
	svc.ops = append(svc.ops, o)
	return o
}

func (p *Pacer) newOperation(key ratelimit.Key, svc *service) *operation {
	o := &operation{key: key, svc: svc, limiter: p.opts.Rate, budget: newBudget(p.opts.Budget)}
	o.shared, _ = p.opts.Rate.(ratelimit.Feedback)
	return o
}

const (
	sweepEvery = time.Second
	restless   = time.Minute // an operation used within it is kept

	lowest  = 0 // the level that stays away longest
	highest = priority.Count - 1
)

// sweep forgets operations at rest and reports whether there is room. Nothing is
// gained by being forgotten: the tokens are the limiter's.
func (p *Pacer) sweep(now time.Time) bool {
	if now.Sub(p.swept) < sweepEvery {
		return false
	}
	p.swept = now
	for key, o := range p.ops {
		if !o.atRest(now) {
			continue
		}
		delete(p.ops, key)
		o.svc.ops = slices.DeleteFunc(o.svc.ops, func(other *operation) bool { return other == o })
		if len(o.svc.ops) == 0 && o.svc.pauseLeft(now, lowest) <= 0 {
			delete(p.services, key.Space)
		}
	}
	return len(p.ops) < p.opts.MaxOperations
}

// atRest reports whether forgetting the operation changes nothing.
func (o *operation) atRest(now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return now.Sub(o.used) > restless && !o.driving && o.counts.inFlight.Load() == 0 &&
		!o.law.active(now) && o.pauseLeft(now, lowest) <= 0
}

// siblings returns the operations of o's service, o among them.
func (p *Pacer) siblings(o *operation) []*operation {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if o == p.overflow || !slices.Contains(o.svc.ops, o) {
		return []*operation{o}
	}
	return slices.Clone(o.svc.ops)
}
