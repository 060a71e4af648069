package redisrate_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/ratelimit/redisrate"
	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/redistest"
	"github.com/headgate-go/headgate/ratelimit/redisrate/semaphore"
)

// TestMain lets the test binary be the process that is killed.
func TestMain(m *testing.M) {
	if addr := os.Getenv("REDISRATE_VICTIM"); addr != "" {
		victim(addr)
		return
	}
	os.Exit(m.Run())
}

// victim uses all that this package keeps in Redis, as hard as it can.
func victim(addr string) {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	hot := redisrate.PerKey(rdb, 5000, 500, redisrate.Options{Name: "hot"})
	many := redisrate.PerKey(rdb, 0.5, 30, redisrate.Options{Name: "many"})
	slots := semaphore.New(rdb, "jobs", 50, semaphore.Options{TTL: 2 * time.Second})
	fmt.Println("ready")
	for i := 0; ; i++ {
		ctx, now := context.Background(), time.Now()
		hot.Take(ctx, now, ratelimit.Key{ID: "all"}, 1, 0)
		many.Take(ctx, now, ratelimit.Key{ID: fmt.Sprint("k", i%5000)}, 1, 0)
		if i%10 == 0 {
			hot.Throttled(now, ratelimit.Key{ID: "all"}, time.Millisecond, 0.9)
			_, _ = slots.Take(ctx)
		}
	}
}

// Case RD-07: public reports on limits kept in Redis
func TestEveryKeyExpiresWhereverTheProcessDies(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	// A slow bucket at a tenth of its rate, and a pause; see docs/replicas.md.
	bound := 10*(30/0.5)*time.Second + time.Minute
	looked := 0
	look := func() {
		ctx := context.Background()
		it := rdb.Scan(ctx, 0, "headgate:*", 1000).Iterator()
		for it.Next(ctx) {
			looked++
			// -1 is a key without expiry, -2 one that has just gone, 0 one in its last millisecond.
			if ttl := rdb.PTTL(ctx, it.Val()).Val(); ttl == -1 || ttl > bound {
				t.Fatalf("%s expires in %v, want at most %v", it.Val(), ttl, bound)
			}
		}
		if it.Err() != nil {
			t.Fatal(it.Err())
		}
	}
	for range 200 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "REDISRATE_VICTIM="+s.Addr)
		cmd.SysProcAttr = redistest.WithParent()
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		_, _ = out.Read(make([]byte, 8))
		time.Sleep(time.Duration(rand.IntN(8000)) * time.Microsecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		look()
	}
	if looked < 1000 {
		t.Errorf("looked at %d keys only", looked)
	}
}
