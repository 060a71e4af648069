package scenes

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/headgate-go/headgate/bench/rig"
	"github.com/headgate-go/headgate/ratelimit"
)

// answer is what one request met, in time since the load began.
type answer struct {
	key     int
	arrived time.Duration
	took    time.Duration
	due     time.Duration // when it went, if it did
	ok      bool
	local   bool // decided by the process' own share
}

// over is the demand as a multiple of the ceiling.
const over = 2

// offer sends one process its part of the demand, open loop: arrivals do not wait for
// answers.
func (f *fleet) offer(ctx context.Context, process int, begin time.Time, length time.Duration) []answer {
	rnd := rand.New(rand.NewPCG(uint64(process), 11))
	l := f.all[process]
	perSec := over * f.rate * float64(len(f.keys)) / processes
	var mu sync.Mutex
	var requests sync.WaitGroup
	var all []answer
	for at := time.Duration(0); ctx.Err() == nil; {
		at += time.Duration(rnd.ExpFloat64() / perSec * float64(time.Second))
		if at >= length {
			break
		}
		time.Sleep(time.Until(begin.Add(at)))
		key := rnd.IntN(len(f.keys))
		requests.Go(func() {
			now := time.Now()
			d := l.Take(context.Background(), now, ratelimit.Key{ID: f.keys[key]}, 1, 0)
			a := answer{key: key, arrived: now.Sub(begin), took: time.Since(now), ok: d.OK, local: d.Source == ratelimit.SourceShare}
			a.due = d.Grant.At.Add(d.Wait).Sub(begin)
			mu.Lock()
			all = append(all, a)
			mu.Unlock()
		})
	}
	requests.Wait()
	return all
}

// record is what a scene left behind.
type record struct {
	scene  *Scene
	length time.Duration
	down   time.Duration // when the store went away; 0: never
	up     time.Duration // when it was whole again
	fleets []*fleet
	all    [][]answer      // by fleet
	last   []time.Duration // by fleet: when it was last seen degraded; 0: never
	apart  []apart         // by fleet: when some processes shared and others did not
	before []counts        // by fleet, at the end of the warm-up
	after  []counts
	stall  time.Duration // the longest that this program was kept from a core
	shared bool          // in the end, by all
}

type counts struct{ changes, calls uint64 }

// play plays a scene and returns what was seen of it.
func (s *Scene) play(ctx context.Context, program string, length time.Duration) (*record, error) {
	r, err := rig.New(program)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	st := &stage{Rig: r}
	if err := s.stage(st); err != nil {
		return nil, err
	}
	for _, l := range limits(s.Keys) {
		keys, err := st.keysFor(l, s.Keys)
		if err != nil {
			return nil, err
		}
		f, err := st.open(l, keys)
		if f != nil {
			defer f.close()
		}
		if err != nil {
			return nil, err
		}
		st.fleets = append(st.fleets, f)
	}
	out := &record{scene: s, length: max(length, s.Least), fleets: st.fleets}
	if err := out.run(ctx, st); err != nil {
		return nil, err
	}
	return out, nil
}

// warmUp is left out of what is compared and of the percentiles: connections are made,
// and the first answers are a round trip away.
const warmUp = time.Second

func (r *record) run(ctx context.Context, st *stage) error {
	n := len(r.fleets)
	r.all, r.last, r.apart = make([][]answer, n), make([]time.Duration, n), make([]apart, n)
	r.before, r.after = make([]counts, n), make([]counts, n)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	begin := time.Now()
	var load, watch sync.WaitGroup
	var mu sync.Mutex
	for i, f := range r.fleets {
		for p := range processes {
			load.Go(func() {
				all := f.offer(ctx, p, begin, r.length)
				mu.Lock()
				defer mu.Unlock()
				r.all[i] = append(r.all[i], all...)
			})
		}
	}
	done := make(chan struct{})
	watch.Go(func() { r.watch(begin, done) })
	failed := r.strike(ctx, st, begin)
	if failed != nil {
		cancel()
	}
	load.Wait()
	close(done)
	watch.Wait()
	for i, f := range r.fleets {
		r.after[i].changes, r.after[i].calls = f.counts()
	}
	r.shared = failed == nil && r.settles(ctx)
	if failed != nil {
		return fmt.Errorf("%s: %w", r.scene.Name, failed)
	}
	return ctx.Err()
}

// strike lets the store go away at a quarter of the time, and come back.
func (r *record) strike(ctx context.Context, st *stage, begin time.Time) error {
	if r.scene.away == nil {
		return nil
	}
	if !sleep(ctx, r.length/4) {
		return ctx.Err()
	}
	r.down = time.Since(begin)
	if err := r.scene.away(st); err != nil {
		return err
	}
	hold := r.length / 4
	if r.scene.hold != nil {
		hold = r.scene.hold()
	}
	if !sleep(ctx, hold) {
		return ctx.Err()
	}
	if r.scene.back != nil {
		if err := r.scene.back(st); err != nil {
			return err
		}
	}
	r.up = time.Since(begin)
	return nil
}

// settles says whether all processes share their ceilings in the end, with a few requests
// that go on.
func (r *record) settles(ctx context.Context) bool {
	return rig.Until(ctx, 10*time.Second, "shared", func() bool {
		away := false
		for _, f := range r.fleets {
			for _, l := range f.all {
				for _, key := range f.keys {
					l.Take(ctx, time.Now(), ratelimit.Key{ID: key}, 1, 0)
				}
			}
			away = away || f.degraded() > 0
		}
		return !away
	}) == nil
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// watch notes when a fleet was last degraded, and the counters after the warm-up.
func (r *record) watch(begin time.Time, done chan struct{}) {
	warm := false
	for {
		from := time.Now()
		select {
		case <-done:
			return
		case <-time.After(10 * time.Millisecond):
		}
		r.stall = max(r.stall, time.Since(from)-10*time.Millisecond)
		t := time.Since(begin)
		for i, f := range r.fleets {
			k := f.degraded()
			r.apart[i].add(t, k)
			if k > 0 {
				r.last[i] = t
			}
			if !warm && t >= warmUp {
				r.before[i].changes, r.before[i].calls = f.counts()
			}
		}
		warm = warm || t >= warmUp
	}
}
