package redisrate

import (
	"context"
	"log/slog"
	"time"
)

// begin starts the beat. It happens once, with the first request.
func (l *Limiter) begin() {
	if !l.begun.CompareAndSwap(false, true) {
		return
	}
	l.health.Lock()
	defer l.health.Unlock()
	if l.life.Err() == nil {
		l.beat = time.AfterFunc(0, l.beatOnce)
	}
}

// beatOnce says that this process is alive and learns of the others. Between
// beats there is no goroutine.
func (l *Limiter) beatOnce() {
	ctx, cancel := context.WithTimeout(l.life, l.conf.budget)
	started := l.now()
	n, err := l.store.Beat(ctx, l.conf.name, l.peers.id, beatLife, false)
	cancel()
	if l.life.Err() != nil {
		return
	}
	if err == nil {
		l.peers.heard(n)
		l.trip.observe(l.now() - started)
	}
	l.judge(result{l.now(), started, whyOf(err), false})
	l.health.Lock()
	defer l.health.Unlock()
	if l.life.Err() == nil {
		l.beat.Reset(l.peers.next())
	}
}

// judge takes in a call's result. When the store now counts as away it says so
// and looks again later.
func (l *Limiter) judge(r result) {
	l.health.Lock()
	defer l.health.Unlock()
	if !l.health.record(r) {
		return
	}
	l.away.Store(true)
	l.sayLocked(r.at)
	l.probeLaterLocked()
}

// suspect takes in that a call sent then is late. It says whether the store now counts
// as away: when three calls in a row were late and nothing at all came back for long.
func (l *Limiter) suspect(t, sent time.Duration) bool {
	l.health.Lock()
	defer l.health.Unlock()
	if !l.health.late(t, sent, l.silence()) {
		return false
	}
	l.away.Store(true)
	l.sayLocked(t)
	l.probeLaterLocked()
	return true
}

func (l *Limiter) probeLaterLocked() {
	if l.life.Err() == nil {
		l.probe = time.AfterFunc(l.health.delay(), l.probeOnce)
	}
}

// probeOnce asks the store for nothing, with the real script on a real key: a
// read-only replica answers a ping, and so does a server that is out of memory. It
// is any key, so that a cluster is not judged by the one part that is still away.
func (l *Limiter) probeOnce() {
	key := l.rest.name
	if e := l.table.any(); e != nil {
		key = e.name
	}
	ctx, cancel := context.WithTimeout(l.life, l.conf.budget)
	_, err := l.timed(ctx, request{key: key, limit: l.conf.limit, seen: -1, touch: true})
	cancel()
	l.health.Lock()
	defer l.health.Unlock()
	if l.life.Err() != nil {
		return
	}
	t := l.now()
	if err != nil {
		l.failed.Store(int64(t))
	}
	if l.health.probed(t, whyOf(err)) {
		l.sayLocked(t)
	}
	if l.health.state == Shared {
		l.away.Store(false)
		l.beat.Reset(0)
		return
	}
	l.probeLaterLocked()
}

// quietTime is the shortest time between two log lines.
const quietTime = time.Second

// sayLocked logs a change of state.
func (l *Limiter) sayLocked(t time.Duration) {
	h := &l.health
	l.counts.changes.Add(1)
	if l.conf.log == nil || h.state == Probing {
		return
	}
	if h.logged != 0 && t-h.logged < quietTime {
		h.quiet++
		return
	}
	level, text := slog.LevelWarn, "shared ceiling degraded: the store does not answer"
	if h.state == Shared {
		level, text = slog.LevelInfo, "shared ceiling restored"
	}
	n := max(1, l.conf.minPeers, l.peers.count())
	l.conf.log.LogAttrs(context.Background(), level, text,
		slog.String("limit", l.conf.name), slog.String("state", h.state.String()),
		slog.String("why", h.why.String()), slog.String("policy", l.conf.outage.String()),
		slog.Int("peers", n), slog.Float64("rate", l.conf.limit.rate),
		slog.Float64("share", l.conf.limit.rate*l.conf.portion/float64(n)),
		slog.Int("changes_unlogged", h.quiet))
	h.logged, h.quiet = t, 0
}

// stop ends what begin started.
func (l *Limiter) stop() error {
	l.health.Lock()
	if l.life.Err() != nil {
		l.health.Unlock()
		return nil
	}
	l.end()
	begun := l.beat != nil
	for _, t := range []*time.Timer{l.beat, l.probe} {
		if t != nil {
			t.Stop()
		}
	}
	answers := !l.away.Swap(true)
	l.health.Unlock()
	if begun && answers {
		ctx, cancel := context.WithTimeout(context.Background(), l.conf.budget)
		_, _ = l.store.Beat(ctx, l.conf.name, l.peers.id, beatLife, true) // it fades by itself if this is lost
		cancel()
	}
	return l.store.Close()
}
