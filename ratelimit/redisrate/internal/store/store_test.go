package store

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/account"
	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/redistest"
)

// A call whose connection was never made cannot have charged anything, however long it
// took to find out.
func TestWhatWasNeverSentIsNotTakenForLate(t *testing.T) {
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	secure := httptest.NewTLSServer(nil)
	defer secure.Close()
	expired, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer cancel()

	_, late := (&net.Dialer{}).DialContext(expired, "tcp", plain.Addr().String())
	_, untrusted := tls.Dial("tcp", secure.Listener.Addr().String(), &tls.Config{ServerName: "example.com"})
	for name, err := range map[string]error{
		"a dial that times out":  late,
		"a long dial":            &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded},
		"an untrusted authority": untrusted,
		"nobody at the address":  &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
		"wrapped by the client":  fmt.Errorf("redis: %w", late),
	} {
		if got := WhyOf(err); got != account.WhyRefused {
			t.Errorf("%s (%v) is %v", name, err, got)
		}
	}
	if got := WhyOf(&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}); got != account.WhyTimeout {
		t.Errorf("an answer that does not come is %v", got)
	}
}

func TestErrorsHaveNames(t *testing.T) {
	for text, want := range map[string]account.Why{
		"LOADING Redis is loading the dataset in memory": account.WhyLoading,
		"CLUSTERDOWN The cluster is down":                account.WhyCluster,
		"MASTERDOWN Link with MASTER is down":            account.WhyCluster,
		"NOAUTH Authentication required.":                account.WhyAuth,
		"ERR something new":                              account.WhyError,
	} {
		if got := WhyOf(fmt.Errorf("call: %w", answerError(text))); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	if WhyOf(nil) != account.WhyNothing || WhyOf(context.DeadlineExceeded) != account.WhyTimeout || WhyOf(ErrLate) != account.WhyLate {
		t.Error("errors of this side")
	}
	for w := range account.WhyCount {
		if s := account.Why(w).String(); s == "unknown" || s != strings.ToLower(s) {
			t.Error(w, s)
		}
	}
}

type answerError string

func (e answerError) Error() string { return string(e) }
func (answerError) RedisError()     {}

// The client of a user retries writes; what a limiter sends must run once.
func TestACallIsNeverReplayed(t *testing.T) {
	s := redistest.Start(t)
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: 10, ReadTimeout: 20 * time.Millisecond})
	defer rdb.Close()
	asIs := struct{ redis.UniversalClient }{rdb} // a wrapper: used with its own settings
	store := New(asIs, time.Second)
	if store.mine {
		t.Fatal("a client of an unknown type was replaced")
	}
	r := account.Request{Key: "headgate:v1:{k}:b", Limit: account.Limit{Rate: 1.0 / 3600, Burst: 100}, Want: 1, Need: 1, Least: 1, Seen: -1}
	if _, err := store.Lease(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	s.Do("client", "pause", "200", "all")
	if _, err := store.Lease(context.Background(), r); WhyOf(err) != account.WhyTimeout {
		t.Fatalf("%v", err)
	}
	time.Sleep(300 * time.Millisecond)
	rep, err := store.Lease(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	if spent := 100 - rep.Before/account.Micro; spent > 2 {
		t.Errorf("%d tokens spent by two calls", spent)
	}
}

// A server that wakes up does not carry out what was sent to it in its sleep.
func TestLateCallsDoNotRun(t *testing.T) {
	s := redistest.Start(t)
	store := New(s.Client(t), 50*time.Millisecond)
	defer store.Close()
	r := account.Request{Key: "headgate:v1:{k}:b", Limit: account.Limit{Rate: 1.0 / 3600, Burst: 100}, Want: 10, Need: 10, Least: 1, Seen: -1}
	if _, err := store.Lease(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	s.Do("client", "pause", "1000", "write")
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
	if err != nil || rep.Before/account.Micro != 90 {
		t.Errorf("%+v, %v: calls given up long ago were carried out", rep, err)
	}
}

// Another server's clock after a failover, ahead or behind: at most one call is
// refused as late, and it is repeated because it did not run.
func TestClocksNeedNotAgree(t *testing.T) {
	s := redistest.Start(t)
	store := New(s.Client(t), 50*time.Millisecond)
	defer store.Close()
	r := account.Request{Key: "headgate:v1:{k}:b", Limit: account.Limit{Rate: 1.0 / 3600, Burst: 100}, Want: 1, Need: 1, Least: 1, Seen: -1}
	for _, skew := range []time.Duration{-time.Hour, time.Hour, -time.Second, 0} {
		store.heard(time.Now().Add(skew).UnixMicro())
		rep, err := store.Lease(context.Background(), r)
		if err != nil || rep.Granted != 1 {
			t.Errorf("clocks %v apart: %+v, %v", skew, rep, err)
		}
	}
}
