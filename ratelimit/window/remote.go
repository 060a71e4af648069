package window

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-chi/httprate"

	"github.com/headgate-go/headgate/ratelimit"
)

// remote asks a foreign counter. Its interface knows no context, so every call has
// a goroutine of its own, and a bound on how many there may be: a counter that
// hangs costs maxCalls goroutines and no caller more than the time-out.
type remote struct {
	counter httprate.LimitCounter
	period  *period
	timeout time.Duration
	calls   chan struct{}
	keys    [64]sync.Mutex // reading and adding is one step for a key, in this process
	rested  atomic.Int64   // no call before this time on the process' clock
	start   time.Time
}

const (
	maxCalls = 256
	pause    = time.Second // after a failure
)

func newRemote(c httprate.LimitCounter, p *period, timeout time.Duration) *remote {
	return &remote{counter: c, period: p, timeout: timeout, calls: make(chan struct{}, maxCalls), start: time.Now()}
}

// take decides a by the foreign counts, and reports whether they answered in time.
func (r *remote) take(ctx context.Context, key ratelimit.Key, a *asked) bool {
	if time.Since(r.start) < time.Duration(r.rested.Load()) || !r.begin() {
		return false
	}
	answer := make(chan asked, 1)
	go r.ask(text(key), *a, answer)
	timer := time.NewTimer(r.timeout)
	defer timer.Stop()
	select {
	case got, ok := <-answer:
		if ok {
			*a = got
		}
		return ok
	case <-timer.C:
		r.rest()
	case <-ctx.Done():
	}
	return false
}

// ask makes one call. A panic of the counter is a failure of it, not of the service.
func (r *remote) ask(key string, a asked, answer chan<- asked) {
	defer close(answer)
	defer r.end()
	if err := r.count(key, &a); err != nil {
		r.rest()
		return
	}
	answer <- a
}

func (r *remote) count(key string, a *asked) (err error) {
	lock := &r.keys[fold(key)%uint64(len(r.keys))]
	lock.Lock()
	defer lock.Unlock()
	window := r.period.start(a.window)
	now, before, err := r.counter.Get(key, window.UTC(), r.period.start(a.window-1).UTC())
	if err != nil || !a.admit(int64(now), int64(before)) {
		return err
	}
	return r.counter.IncrementBy(key, window.UTC(), int(a.cost))
}

// adjust adds or subtracts in the background. It is lost when too many calls are
// under way: the count then stays as it is.
func (r *remote) adjust(key ratelimit.Key, window int64, by int) {
	if !r.begin() {
		return
	}
	go func() {
		defer r.end()
		if r.counter.IncrementBy(text(key), r.period.start(window).UTC(), by) != nil {
			r.rest()
		}
	}()
}

func (r *remote) begin() bool {
	select {
	case r.calls <- struct{}{}:
		return true
	default:
		return false
	}
}

// end also keeps a counter that panics from taking the service with it.
func (r *remote) end() {
	<-r.calls
	if recover() != nil {
		r.rest()
	}
}

func (r *remote) rest() { r.rested.Store(int64(time.Since(r.start) + pause)) }

// text is a key's name in the store: the join is injective, and its length bounded
// however long the caller's name is.
func text(key ratelimit.Key) string {
	kind, id := "/", key.ID
	if len(id) > 128 {
		sum := sha256.Sum256([]byte(id))
		kind, id = "#", hex.EncodeToString(sum[:])
	}
	return strconv.Itoa(len(key.Space)) + ":" + key.Space + kind + id
}

// fold spreads keys over the locks.
func fold(s string) (h uint64) {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}
