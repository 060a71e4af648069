package redisrate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/account"
	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/redistest"
	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/store"
)

// Servers that answer, but cannot write: each is an outage with a name, and over
// as soon as it is over.
// Case ST-06: tried on the product
func TestServersThatCannotWrite(t *testing.T) {
	for _, c := range []struct {
		why         account.Why
		said        string
		break_, fix []any
	}{
		{account.WhyMemory, "OOM", []any{"config", "set", "maxmemory", "1"}, []any{"config", "set", "maxmemory", "0"}},
		{account.WhyReadOnly, "READONLY", []any{"replicaof", "127.0.0.1", "1"}, []any{"replicaof", "no", "one"}},
		{account.WhyAuth, "NOPERM", []any{"acl", "setuser", "default", "-evalsha", "-eval"}, []any{"acl", "setuser", "default", "+@all"}},
	} {
		t.Run(c.why.String(), func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			l := perKey(t, s.Client(t), 100, 10, shipped)
			if d := take(l, "k", 1, 0); !d.OK || d.Source == ratelimit.SourceShare {
				t.Fatalf("%+v", d)
			}
			s.Do(c.break_...)
			redistest.Eventually(t, 20*time.Second, "degraded, and why", func() bool {
				take(l, "k", 1, 0)
				st := l.Snapshot()
				text, ok := l.Health()
				return st.State != account.Shared.String() && st.Why == c.why.String() && !ok && strings.Contains(text, c.said)
			})
			if d := take(l, "fresh", 1, 0); !d.OK || d.Source != ratelimit.SourceShare {
				t.Errorf("%+v", d)
			}
			s.Do(c.fix...)
			redistest.Eventually(t, 20*time.Second, "shared again", func() bool {
				d := take(l, "k", 1, 0)
				return l.Snapshot().State == account.Shared.String() && d.OK && d.Source != ratelimit.SourceShare
			})
		})
	}
}

func TestClusterLosesAPrimary(t *testing.T) {
	t.Parallel()
	nodes := redistest.Cluster(t)
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{nodes[0].Addr, nodes[1].Addr, nodes[2].Addr}})
	defer rdb.Close()
	l := perKey(t, rdb, 1000, 1000, shipped)
	for i := range 60 {
		take(l, fmt.Sprint("k", i), 1, 0)
	}
	nodes[2].Kill()
	var shared, share int
	var worst time.Duration
	for round := range 30 {
		time.Sleep(20 * time.Millisecond)
		for i := range 60 {
			from := time.Now()
			// A share begins with what the process held, not with a burst: the first
			// request after the loss may be told to wait for a token.
			d := take(l, fmt.Sprint("k", i), 1, 20*time.Millisecond)
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
	nodes := redistest.Cluster(t)
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{nodes[0].Addr, nodes[1].Addr, nodes[2].Addr}})
	defer rdb.Close()
	l := perKey(t, rdb, slow, 100)
	key := store.BucketKey("default", ratelimit.Key{ID: "k"})
	if got := admit(l, "k", 10); got != 10 {
		t.Fatal(got)
	}
	moveSlot(t, nodes, key)
	if got := admit(l, "k", 100); got != 90 {
		t.Errorf("%d admitted after the slot moved, want the other 90", got)
	}
	if st := l.Snapshot(); st.Degraded || calls(l) != int(st.Calls[0].Count) {
		t.Errorf("%+v", st)
	}
}

// moveSlot migrates key's slot to another node, as a resharding does.
func moveSlot(t *testing.T, nodes []*redistest.Server, key string) {
	t.Helper()
	slot := nodes[0].Do("cluster", "keyslot", key)
	var from, to *redistest.Server
	for _, n := range nodes {
		if n.Do("cluster", "countkeysinslot", slot).(int64) > 0 {
			from = n
		} else {
			to = n
		}
	}
	fromID, toID := from.Do("cluster", "myid"), to.Do("cluster", "myid")
	to.Do("cluster", "setslot", slot, "importing", fromID)
	from.Do("cluster", "setslot", slot, "migrating", toID)
	host, port, _ := strings.Cut(to.Addr, ":")
	from.Do("migrate", host, port, key, 0, 5000)
	for _, n := range nodes {
		n.Do("cluster", "setslot", slot, "node", toID)
	}
}
