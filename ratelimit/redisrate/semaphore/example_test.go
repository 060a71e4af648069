package semaphore_test

import (
	"context"
	"fmt"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/headgate-go/headgate/ratelimit/redisrate/semaphore"
)

// server stands for the Redis of the service.
func server() (rdb *redis.Client, stop func()) {
	s, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	rdb = redis.NewClient(&redis.Options{Addr: s.Addr()})
	return rdb, func() { rdb.Close(); s.Close() }
}

// At most two exports at a time, however many processes there are.
func ExampleSemaphore() {
	rdb, stop := server()
	defer stop()
	exports := semaphore.New(rdb, "exports", 2, semaphore.Options{})
	defer exports.Close()

	first, _ := exports.Take(context.Background())
	_, _ = exports.Take(context.Background())
	_, err := exports.Take(context.Background())
	fmt.Println(err)

	first.Release()
	third, err := exports.Acquire(context.Background()) // waits for it
	fmt.Println(third != nil, err)
	// Output:
	// semaphore: all slots are taken
	// true <nil>
}
