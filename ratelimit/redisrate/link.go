package redisrate

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/account"
	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/store"
)

// link is a limiter's link to its store: the calls, how long they take, who else
// shares the ceiling, and whether the store is away.
type link struct {
	conf  *config
	store backend
	start time.Time
	peers account.Peers
	trip  account.RoundTrip
	any   func() string      // the store's name of some key, to look with
	sweep func() (left bool) // brings back keys that are not asked for
	turns chan struct{}      // bounds calls in flight
	life  context.Context
	end   context.CancelFunc

	begun  atomic.Bool
	away   atomic.Bool // the store counts as away
	strays atomic.Bool // some keys may be on their share
	counts callCounts
	said   atomic.Pointer[string] // the last error, in the store's words

	mu      sync.Mutex
	breaker account.Breaker
	logged  time.Duration
	quiet   int // changes since then that were not logged
	beat    *time.Timer
	probe   *time.Timer
}

// backend is all that this package knows of Redis: two calls, each one script on one
// key. Tests keep one in memory.
type backend interface {
	// Lease changes one key's bucket and asks it for slots.
	Lease(ctx context.Context, r account.Request) (account.Reply, error)
	// Beat says that id is alive, or with leave that it is gone, and returns how
	// many share the ceiling called name.
	Beat(ctx context.Context, name, id string, life time.Duration, leave bool) (int, error)
	// Warm makes connections ahead of need.
	Warm(ctx context.Context)
	// Parts says that keys live in places that can be away one by one.
	Parts() bool
	// Close gives up connections.
	Close() error
}

// callCounts are counters since the link was made.
type callCounts struct {
	results [account.WhyCount]atomic.Uint64
	time    atomic.Int64
	changes atomic.Uint64
}

// maxCalls bounds a limiter's calls in flight. Many keys at once queue behind it
// instead of opening a connection each.
const maxCalls = 64

func newLink(c *config, s backend) *link {
	k := &link{conf: c, store: s, start: time.Now(), peers: account.NewPeers(), turns: make(chan struct{}, maxCalls)}
	k.breaker.Parts = s.Parts()
	k.life, k.end = context.WithCancel(context.Background())
	return k
}

// now is the time as accounts count it.
func (k *link) now() time.Duration { return time.Since(k.start) }

func (k *link) view() account.View { return account.View{Peers: k.peers.Count(), Trip: k.trip.Value()} }

// patience is how long a request waits for the store.
func (k *link) patience() time.Duration {
	if k.conf.fixed {
		return k.conf.cold
	}
	return min(k.trip.Patience(), k.conf.budget)
}

// silence is how long the store may say nothing before it counts as away for a key.
func (k *link) silence() time.Duration { return min(k.trip.Silence(), k.conf.budget) }

// errBusy is a call that got no turn: this process has too many, which says
// nothing about the store.
var errBusy = errors.New("redisrate: too many calls in flight")

// lease makes a call when it has its turn, which it notes in sent.
func (k *link) lease(r account.Request, sent *atomic.Int64) (account.Reply, error) {
	ctx, cancel := context.WithTimeout(k.life, k.conf.budget)
	defer cancel()
	select {
	case k.turns <- struct{}{}:
	case <-ctx.Done():
		return account.Reply{}, errBusy
	}
	defer func() { <-k.turns }()
	sent.Store(int64(k.now()) + 1)
	return k.timed(ctx, r)
}

// timed makes the call and keeps count of it.
func (k *link) timed(ctx context.Context, r account.Request) (account.Reply, error) {
	from := time.Now()
	rep, err := k.store.Lease(ctx, r)
	took := time.Since(from)
	k.counts.results[store.WhyOf(err)].Add(1)
	k.counts.time.Add(int64(took))
	if err == nil {
		k.trip.Observe(took)
	} else {
		k.note(err)
	}
	return rep, err
}

// maxSaid bounds what is kept of an error's text.
const maxSaid = 200

func (k *link) note(err error) {
	text := err.Error()
	text = text[:min(len(text), maxSaid)]
	k.said.Store(&text)
}

// begin starts the beat. It happens once, with the first request.
func (k *link) begin() {
	if !k.begun.CompareAndSwap(false, true) {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.life.Err() == nil {
		k.beat = time.AfterFunc(0, k.beatOnce)
		go k.store.Warm(k.life)
	}
}

// beatOnce says that this process is alive and learns of the others. Between
// beats there is no goroutine.
func (k *link) beatOnce() {
	ctx, cancel := context.WithTimeout(k.life, k.conf.budget)
	started := k.now()
	n, err := k.store.Beat(ctx, k.conf.name, k.peers.ID, account.BeatLife, false)
	cancel()
	if k.life.Err() != nil {
		return
	}
	if err == nil {
		k.peers.Heard(n)
		k.trip.Observe(k.now() - started)
	}
	k.judge(account.Result{At: k.now(), Started: started, Why: store.WhyOf(err)})
	if err != nil {
		k.note(err)
	}
	if err == nil && !k.away.Load() && k.strays.Swap(false) && k.sweep() {
		k.strays.Store(true)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.life.Err() == nil {
		k.beat.Reset(k.peers.Next())
	}
}

// judge takes in a call's result. When the store now counts as away it says so
// and looks again later.
func (k *link) judge(r account.Result) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.breaker.Record(r) {
		k.leaveLocked(r.At)
	}
}

// suspect takes in that a call sent then is late. It says whether the store now counts
// as away: when three calls in a row were late and nothing at all came back for long.
func (k *link) suspect(t, sent time.Duration) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.breaker.Late(t, sent, k.silence()) {
		return false
	}
	k.leaveLocked(t)
	return true
}

func (k *link) leaveLocked(t time.Duration) {
	k.away.Store(true)
	k.sayLocked(t)
	k.probeLaterLocked()
}

func (k *link) probeLaterLocked() {
	if k.life.Err() == nil {
		k.probe = time.AfterFunc(k.breaker.Delay(), k.probeOnce)
	}
}

// probeOnce asks the store for nothing, with the real script on a real key: a
// read-only replica answers a ping, and so does a server that is out of memory. It
// is any key, so that a cluster is not judged by the one part that is still away.
func (k *link) probeOnce() {
	ctx, cancel := context.WithTimeout(k.life, k.conf.budget)
	_, err := k.timed(ctx, account.Request{Key: k.any(), Limit: k.conf.Limit, Seen: -1, Touch: true})
	cancel()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.life.Err() != nil {
		return
	}
	t := k.now()
	if k.breaker.Probed(t, store.WhyOf(err)) {
		k.sayLocked(t)
	}
	if k.breaker.State == account.Shared {
		k.away.Store(false)
		k.beat.Reset(0)
		return
	}
	k.probeLaterLocked()
}

// quietTime is the shortest time between two log lines.
const quietTime = time.Second

// sayLocked logs a change of state.
func (k *link) sayLocked(t time.Duration) {
	b, c := &k.breaker, k.conf
	k.counts.changes.Add(1)
	if c.log == nil || b.State == account.Probing {
		return
	}
	if k.logged != 0 && t-k.logged < quietTime {
		k.quiet++
		return
	}
	level, text := slog.LevelWarn, "shared ceiling degraded: the store does not answer"
	if b.State == account.Shared {
		level, text = slog.LevelInfo, "shared ceiling restored"
	}
	n := max(1, c.MinPeers, k.peers.Count())
	c.log.LogAttrs(context.Background(), level, text,
		slog.String("limit", c.name), slog.String("state", b.State.String()),
		slog.String("why", b.Why.String()), slog.String("policy", c.OnOutage.String()),
		slog.Int("peers", n), slog.Float64("rate", c.Limit.Rate),
		slog.Float64("share", c.Limit.Rate*c.Portion/float64(n)),
		slog.Int("changes_unlogged", k.quiet))
	k.logged, k.quiet = t, 0
}

// stop ends what begin started, and tells the peers.
func (k *link) stop() error {
	k.mu.Lock()
	if k.life.Err() != nil {
		k.mu.Unlock()
		return nil
	}
	k.end()
	begun := k.beat != nil
	for _, t := range []*time.Timer{k.beat, k.probe} {
		if t != nil {
			t.Stop()
		}
	}
	answers := !k.away.Swap(true)
	k.mu.Unlock()
	if begun && answers {
		ctx, cancel := context.WithTimeout(context.Background(), k.conf.budget)
		_, _ = k.store.Beat(ctx, k.conf.name, k.peers.ID, account.BeatLife, true) // it fades by itself if this is lost
		cancel()
	}
	return k.store.Close()
}

// standing returns where the limiter stands with its store, and since when.
func (k *link) standing() (state account.State, why account.Why, since time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.breaker.State, k.breaker.Why, k.now() - k.breaker.Since
}
