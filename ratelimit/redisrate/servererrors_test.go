package redisrate

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate-go/headgate/ratelimit"
)

// Servers that answer, but cannot write: each is an outage with a name, and over
// as soon as it is over.
func TestServersThatCannotWrite(t *testing.T) {
	for _, c := range []struct {
		why         Why
		break_, fix []any
	}{
		{WhyMemory, []any{"config", "set", "maxmemory", "1"}, []any{"config", "set", "maxmemory", "0"}},
		{WhyReadOnly, []any{"replicaof", "127.0.0.1", "1"}, []any{"replicaof", "no", "one"}},
		{WhyAuth, []any{"acl", "setuser", "default", "-evalsha", "-eval"}, []any{"acl", "setuser", "default", "+@all"}},
	} {
		t.Run(c.why.String(), func(t *testing.T) {
			t.Parallel()
			s := startServer(t)
			l := perKey(t, s.client(t), 100, 10, shipped)
			if d := take(l, "k", 1, 0); !d.OK || d.Source == ratelimit.SourceShare {
				t.Fatalf("%+v", d)
			}
			s.do(c.break_...)
			eventually(t, 20*time.Second, "degraded, and why", func() bool {
				take(l, "k", 1, 0)
				st := l.Snapshot()
				_, ok := l.Health()
				return st.State != Shared && st.Why == c.why && !ok
			})
			if d := take(l, "fresh", 1, 0); !d.OK || d.Source != ratelimit.SourceShare {
				t.Errorf("%+v", d)
			}
			s.do(c.fix...)
			eventually(t, 20*time.Second, "shared again", func() bool {
				d := take(l, "k", 1, 0)
				return l.Snapshot().State == Shared && d.OK && d.Source != ratelimit.SourceShare
			})
		})
	}
}

func TestErrorsHaveNames(t *testing.T) {
	for text, want := range map[string]Why{
		"LOADING Redis is loading the dataset in memory": WhyLoading,
		"CLUSTERDOWN The cluster is down":                WhyCluster,
		"MASTERDOWN Link with MASTER is down":            WhyCluster,
		"NOAUTH Authentication required.":                WhyAuth,
		"ERR something new":                              WhyError,
	} {
		if got := whyOf(fmt.Errorf("call: %w", answerError(text))); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	if whyOf(nil) != WhyNothing || whyOf(context.DeadlineExceeded) != WhyTimeout || whyOf(errLate) != WhyLate {
		t.Error("errors of this side")
	}
	for w := range WhyCount {
		if s := Why(w).String(); s == "unknown" || s != strings.ToLower(s) {
			t.Error(w, s)
		}
	}
}

type answerError string

func (e answerError) Error() string { return string(e) }
func (answerError) RedisError()     {}

// The client of a user retries writes; what a limiter sends must run once.
func TestACallIsNeverReplayed(t *testing.T) {
	s := startServer(t)
	rdb := redis.NewClient(&redis.Options{Addr: s.addr, MaxRetries: 10, ReadTimeout: 20 * time.Millisecond})
	defer rdb.Close()
	asIs := struct{ redis.UniversalClient }{rdb} // a wrapper: used with its own settings
	store := newRedisStore(asIs, time.Second)
	if store.mine {
		t.Fatal("a client of an unknown type was replaced")
	}
	r := request{key: "headgate:v1:{k}:b", limit: limit{rate: slow, burst: 100}, want: 1, need: 1, least: 1, seen: -1}
	if _, err := store.Lease(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	s.do("client", "pause", "200", "all")
	if _, err := store.Lease(context.Background(), r); whyOf(err) != WhyTimeout {
		t.Fatalf("%v", err)
	}
	time.Sleep(300 * time.Millisecond)
	rep, err := store.Lease(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	if spent := 100 - rep.before/micro; spent > 2 {
		t.Errorf("%d tokens spent by two calls", spent)
	}
}

// A server that wakes up does not carry out what was sent to it in its sleep.
func TestLateCallsDoNotRun(t *testing.T) {
	s := startServer(t)
	store := newRedisStore(s.client(t), 50*time.Millisecond)
	defer store.Close()
	r := request{key: "headgate:v1:{k}:b", limit: limit{rate: slow, burst: 100}, want: 10, need: 10, least: 1, seen: -1}
	if _, err := store.Lease(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	s.do("client", "pause", "1000", "write")
	time.Sleep(10 * time.Millisecond)
	for range 3 {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		if _, err := store.Lease(ctx, r); err == nil {
			t.Error("answered while paused")
		}
		cancel()
	}
	time.Sleep(1100 * time.Millisecond)
	rep, err := store.Lease(context.Background(), r)
	if err != nil || rep.before/micro != 90 {
		t.Errorf("%+v, %v: calls given up long ago were carried out", rep, err)
	}
}

// Another server's clock after a failover, ahead or behind: at most one call is
// refused as late, and it is repeated because it did not run.
func TestClocksNeedNotAgree(t *testing.T) {
	s := startServer(t)
	store := newRedisStore(s.client(t), 50*time.Millisecond)
	defer store.Close()
	r := request{key: "headgate:v1:{k}:b", limit: limit{rate: slow, burst: 100}, want: 1, need: 1, least: 1, seen: -1}
	for _, skew := range []time.Duration{-time.Hour, time.Hour, -time.Second, 0} {
		store.heard(time.Now().Add(skew).UnixMicro())
		rep, err := store.Lease(context.Background(), r)
		if err != nil || rep.granted != 1 {
			t.Errorf("clocks %v apart: %+v, %v", skew, rep, err)
		}
	}
}

func TestClusterLosesAPrimary(t *testing.T) {
	t.Parallel()
	nodes := startCluster(t)
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{nodes[0].addr, nodes[1].addr, nodes[2].addr}})
	defer rdb.Close()
	l := perKey(t, rdb, 1000, 1000, shipped)
	for i := range 60 {
		take(l, fmt.Sprint("k", i), 1, 0)
	}
	nodes[2].kill()
	var shared, share int
	var worst time.Duration
	for round := range 30 {
		time.Sleep(20 * time.Millisecond)
		for i := range 60 {
			from := time.Now()
			d := take(l, fmt.Sprint("k", i), 1, 0)
			worst = max(worst, time.Since(from))
			switch {
			case !d.OK:
				t.Fatalf("%+v", d)
			case round < 29: // the last round counts
			case d.Source == ratelimit.SourceShare:
				share++
			default:
				shared++
			}
		}
	}
	t.Logf("%d keys shared, %d on the share, longest %v, %+v", shared, share, worst, l.Snapshot().Calls)
	if worst > 20*time.Millisecond+stall {
		t.Errorf("a request waited %v", worst)
	}
	if share < 5 || shared < 25 {
		t.Error("a third of the keys should have lost their primary, and no others")
	}
}

func TestClusterMovesASlot(t *testing.T) {
	t.Parallel()
	nodes := startCluster(t)
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{nodes[0].addr, nodes[1].addr, nodes[2].addr}})
	defer rdb.Close()
	l := perKey(t, rdb, slow, 100)
	key := bucketKey("default", ratelimit.Key{ID: "k"})
	if got := admit(l, "k", 10); got != 10 {
		t.Fatal(got)
	}
	moveSlot(t, nodes, key)
	if got := admit(l, "k", 100); got != 90 {
		t.Errorf("%d admitted after the slot moved, want the other 90", got)
	}
	if st := l.Snapshot(); st.Degraded() || calls(l) != int(st.Calls[WhyNothing]) {
		t.Errorf("%+v", st)
	}
}

// moveSlot migrates key's slot to another node, as a resharding does.
func moveSlot(t *testing.T, nodes []*server, key string) {
	t.Helper()
	slot := nodes[0].do("cluster", "keyslot", key)
	var from, to *server
	for _, n := range nodes {
		if n.do("cluster", "countkeysinslot", slot).(int64) > 0 {
			from = n
		} else {
			to = n
		}
	}
	fromID, toID := from.do("cluster", "myid"), to.do("cluster", "myid")
	to.do("cluster", "setslot", slot, "importing", fromID)
	from.do("cluster", "setslot", slot, "migrating", toID)
	host, port, _ := strings.Cut(to.addr, ":")
	from.do("migrate", host, port, key, 0, 5000)
	for _, n := range nodes {
		n.do("cluster", "setslot", slot, "node", toID)
	}
}
