// Package store keeps buckets and permits in Redis or Valkey: the scripts, and a client
// whose settings are safe for them.
package store

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/account"
)

// Redis keeps buckets in Redis or Valkey: one server, Sentinel or Cluster.
type Redis struct {
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

// New returns a store on rdb, or on a client of its own with the same options.
func New(rdb redis.UniversalClient, budget time.Duration) *Redis {
	c, mine := own(rdb, budget)
	return &Redis{rdb: c, mine: mine, budget: budget, epoch: time.Now()}
}

// Lease implements store. The request carries the server's time after which it
// must not run any more: a server that was stopped would otherwise carry out a
// whole outage's calls when it wakes.
func (s *Redis) Lease(ctx context.Context, r account.Request) (account.Reply, error) {
	ctx, cancel := s.patient(ctx)
	defer cancel()
	for range 2 { // a server with another clock, after a failover, refuses the first
		text, err := s.lease(ctx, r)
		if err != nil {
			return account.Reply{}, err
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
	return account.Reply{}, ErrLate
}

func (s *Redis) lease(ctx context.Context, r account.Request) (string, error) {
	keys := []string{r.Key, r.Payer}
	if r.Bill == 0 {
		keys = keys[:1]
	}
	cmd, err := s.run(ctx, leaseScript, keys,
		r.Want, r.Need, r.Least, r.Share, r.Reserve, r.Debit, r.Charge,
		strconv.FormatFloat(r.Limit.Rate, 'g', 17, 64), r.Limit.Burst, r.Limit.Version,
		r.Life.Microseconds(), r.Gone, r.Pause.Microseconds(), account.PPM(r.Cut), r.Seen, s.deadline(), flag(r.Touch), r.Missing,
		strconv.FormatFloat(r.Filling, 'g', 17, 64), r.Bill)
	if err != nil {
		return "", err
	}
	return cmd.Text()
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// deadline is when a call sent now is given up, in the server's time.
func (s *Redis) deadline() int64 {
	ahead := s.ahead.Load()
	if ahead == 0 {
		return 0
	}
	return ahead + (time.Since(s.epoch) + s.budget + slack).Microseconds()
}

func (s *Redis) heard(now int64) {
	s.ahead.Store(now - time.Since(s.epoch).Microseconds())
}

// Beat implements store.
func (s *Redis) Beat(ctx context.Context, name, id string, life time.Duration, leave bool) (int, error) {
	ctx, cancel := s.patient(ctx)
	defer cancel()
	what := "beat"
	if leave {
		what = "leave"
	}
	cmd, err := s.run(ctx, beatScript, []string{PeersKey(name)}, id, life.Microseconds(), what)
	if err != nil {
		return 0, err
	}
	return cmd.Int()
}

// Parts implements store: only a lone server, or one behind Sentinel, is whole.
func (s *Redis) Parts() bool {
	_, alone := s.rdb.(*redis.Client)
	return !alone
}

// Close implements store.
func (s *Redis) Close() error {
	if !s.mine {
		return nil
	}
	return s.rdb.Close()
}

// Permits runs the script of a shared cap and returns how many are taken, and what
// became of each token.
func (s *Redis) Permits(ctx context.Context, op, name string, most int, life time.Duration, tokens []string) (used int, done []bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.budget)
	defer cancel()
	args := []any{op, most, life.Microseconds(), s.deadline()}
	for _, t := range tokens {
		args = append(args, t)
	}
	cmd, err := s.run(ctx, slotsScript, []string{SlotsKey(name)}, args...)
	if err != nil {
		return 0, nil, err
	}
	n, err := cmd.Int64Slice()
	if err != nil || len(n) < 2 {
		return 0, nil, fmt.Errorf("redisrate: reply %v is not the script's", cmd.Val())
	}
	s.heard(n[1])
	if n[0] < 0 {
		return 0, nil, ErrLate
	}
	if len(n) != 2+len(tokens) {
		return 0, nil, fmt.Errorf("redisrate: reply %v is not the script's", cmd.Val())
	}
	for _, ok := range n[2:] {
		done = append(done, ok == 1)
	}
	return int(n[0]), done, nil
}

// once is a command that no client retries: when the answer is lost, it is
// not known whether it ran.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }

// run runs a script by its digest, and with its source when the server says that
// it does not have it: the one error after which a second try is safe.
func (s *Redis) run(ctx context.Context, script *redis.Script, keys []string, args ...any) (*redis.Cmd, error) {
	line := []any{"evalsha", script.Hash(), len(keys)}
	for _, k := range keys {
		line = append(line, k)
	}
	line = append(line, args...)
	cmd := once{redis.NewCmd(ctx, line...)}
	err := s.rdb.Process(ctx, cmd)
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		line = append([]any{"eval", sources[script]}, line[2:]...)
		cmd = once{redis.NewCmd(ctx, line...)}
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
func (s *Redis) lookAgain(ctx context.Context, err error) {
	if c, ok := s.rdb.(*redis.ClusterClient); ok && !fromServer(err) {
		c.ReloadState(ctx)
	}
}
