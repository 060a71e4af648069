package redisrate

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// redisStore keeps buckets in Redis or Valkey: one server, Sentinel or Cluster.
type redisStore struct {
	rdb    redis.UniversalClient
	mine   bool
	budget time.Duration
	epoch  time.Time    // local times are kept as distances from it
	ahead  atomic.Int64 // the server's microseconds at epoch, as last heard; 0 until then
}

var (
	//go:embed lease.lua
	leaseSource string
	//go:embed beat.lua
	beatSource string
	//go:embed slots.lua
	slotsSource string

	leaseScript = redis.NewScript(leaseSource)
	beatScript  = redis.NewScript(beatSource)
	slotsScript = redis.NewScript(slotsSource)
)

// slack is how late beyond its budget a call may still run: it covers what the
// clocks drift between two replies, and is short against any outage.
const slack = 100 * time.Millisecond

func newRedisStore(rdb redis.UniversalClient, budget time.Duration) *redisStore {
	c, mine := own(rdb, budget)
	return &redisStore{rdb: c, mine: mine, budget: budget, epoch: time.Now()}
}

// Lease implements store. The request carries the server's time after which it
// must not run any more: a server that was stopped would otherwise carry out a
// whole outage's calls when it wakes.
func (s *redisStore) Lease(ctx context.Context, r request) (reply, error) {
	for range 2 { // a server with another clock, after a failover, refuses the first
		text, err := s.lease(ctx, r)
		if err != nil {
			return reply{}, err
		}
		if rest, late := strings.CutPrefix(text, "late "); late {
			now, _ := strconv.ParseInt(rest, 10, 64)
			s.heard(now)
			continue
		}
		rep, now, err := parseReply(text)
		if err == nil {
			s.heard(now)
		}
		return rep, err
	}
	return reply{}, errLate
}

func (s *redisStore) lease(ctx context.Context, r request) (string, error) {
	cmd, err := s.run(ctx, leaseScript, r.key,
		r.want, r.need, r.least, r.share, r.reserve, r.debit, r.charge,
		strconv.FormatFloat(r.limit.rate, 'g', 17, 64), r.limit.burst, r.limit.version,
		r.life.Microseconds(), r.gone, r.pause.Microseconds(), ppm(r.cut), r.seen, s.deadline(), flag(r.touch), r.lack)
	if err != nil {
		return "", err
	}
	return cmd.Text()
}

// ppm writes a factor in millionths; none is a factor of one.
func ppm(factor float64) int64 {
	if factor <= 0 || factor >= 1 {
		return micro
	}
	return int64(factor * micro)
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// deadline is when a call sent now is given up, in the server's time.
func (s *redisStore) deadline() int64 {
	ahead := s.ahead.Load()
	if ahead == 0 {
		return 0
	}
	return ahead + (time.Since(s.epoch) + s.budget + slack).Microseconds()
}

func (s *redisStore) heard(now int64) {
	s.ahead.Store(now - time.Since(s.epoch).Microseconds())
}

// Beat implements store.
func (s *redisStore) Beat(ctx context.Context, name, id string, life time.Duration, leave bool) (int, error) {
	what := "beat"
	if leave {
		what = "leave"
	}
	cmd, err := s.run(ctx, beatScript, peersKey(name), id, life.Microseconds(), what)
	if err != nil {
		return 0, err
	}
	return cmd.Int()
}

// Parts implements store: only a lone server, or one behind Sentinel, is whole.
func (s *redisStore) Parts() bool {
	_, alone := s.rdb.(*redis.Client)
	return !alone
}

// Close implements store.
func (s *redisStore) Close() error {
	if !s.mine {
		return nil
	}
	return s.rdb.Close()
}

// once is a command that no client retries: when the answer is lost, nobody
// knows whether it ran.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }

// run runs a script by its digest, and with its source when the server says that
// it does not have it: the one error after which a second try is safe.
func (s *redisStore) run(ctx context.Context, script *redis.Script, key string, args ...any) (*redis.Cmd, error) {
	cmd := once{redis.NewCmd(ctx, append([]any{"evalsha", script.Hash(), 1, key}, args...)...)}
	err := s.rdb.Process(ctx, cmd)
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		cmd = once{redis.NewCmd(ctx, append([]any{"eval", sources[script], 1, key}, args...)...)}
		err = s.rdb.Process(ctx, cmd)
	}
	if err != nil {
		s.lookAgain(ctx, err)
		return nil, err
	}
	return cmd.Cmd, nil
}

var sources = map[*redis.Script]string{leaseScript: leaseSource, beatScript: beatSource, slotsScript: slotsSource}

// lookAgain lets a cluster client learn who the primary is now: a dead one
// answers no MOVED.
func (s *redisStore) lookAgain(ctx context.Context, err error) {
	if c, ok := s.rdb.(*redis.ClusterClient); ok && !fromServer(err) {
		c.ReloadState(ctx)
	}
}

// parseReply reads the script's answer. It believes nothing: what is not what the
// script writes is an error, not a grant.
func parseReply(text string) (rep reply, now int64, err error) {
	f := strings.Fields(text)
	if len(f) != 10 || f[0] != "ok" {
		return rep, 0, fmt.Errorf("redisrate: reply %.40q is not the script's", text)
	}
	p := parser{}
	rep.granted, rep.before = int(p.int(f[1])), p.int(f[2])
	rep.limit = limit{rate: p.float(f[3]), burst: int(p.int(f[4])), version: p.int(f[8])}
	rep.multiplier = float64(p.int(f[5])) / micro
	rep.pause = time.Duration(p.int(f[6])) * time.Microsecond
	rep.epoch, now = p.int(f[7]), p.int(f[9])
	if p.err == nil && (rep.granted < 0 || !(rep.limit.rate > 0) || rep.limit.burst < 1 || !(rep.multiplier > 0)) {
		p.err = fmt.Errorf("redisrate: reply %.80q makes no sense", text)
	}
	return rep, now, p.err
}

// parser keeps the first error of several numbers.
type parser struct{ err error }

func (p *parser) int(s string) int64 {
	v, err := strconv.ParseInt(s, 10, 64)
	p.keep(err)
	return v
}

func (p *parser) float(s string) float64 {
	v, err := strconv.ParseFloat(s, 64)
	p.keep(err)
	return v
}

func (p *parser) keep(err error) {
	if p.err == nil && err != nil {
		p.err = fmt.Errorf("redisrate: reply: %w", err)
	}
}
