package redisrate_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/ratelimit/redisrate"
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

// Two replicas of a service, one ceiling.
func ExamplePerKey() {
	rdb, stop := server()
	defer stop()
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {})

	var replicas []http.Handler
	for range 2 {
		limiter := redisrate.PerKey(rdb, 0.1, 10, redisrate.Options{}) // each caller: one in 10 s, bursts of 10
		defer limiter.Close()
		gate := admission.MustNew(admission.Options{Rate: limiter})
		replicas = append(replicas, gate.Handler(handler))
	}

	codes := map[int]int{}
	for i := range 30 {
		w := httptest.NewRecorder()
		replicas[i%2].ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		codes[w.Code]++
	}
	fmt.Println("both together, not each:", codes[200] < 20)
	// Output: both together, not each: true
}

func ExampleTiers() {
	rdb, stop := server()
	defer stop()
	limiter := redisrate.Tiers(rdb, ratelimit.Plan{Rate: 0.1, Burst: 2}, map[string]ratelimit.Plan{
		"gold":  {Rate: 0.5, Burst: 5},
		"staff": {Allow: ratelimit.AllowEverything},
	}, redisrate.Options{Name: "api", RequestTimeout: time.Second, CallTimeout: time.Second})
	defer limiter.Close()

	for _, plan := range []string{"", "gold", "staff"} {
		passed := 0
		for range 8 {
			key := ratelimit.Key{ID: "caller on plan " + plan, Plan: plan}
			if limiter.Take(context.Background(), time.Now(), key, 1, 0).OK {
				passed++
			}
		}
		fmt.Printf("%q: %d of 8\n", plan, passed)
	}
	// Output:
	// "": 2 of 8
	// "gold": 5 of 8
	// "staff": 8 of 8
}

// The numbers in force, and where they come from.
func ExampleLimiter_Snapshot() {
	rdb, stop := server()
	defer stop()
	limiter := redisrate.PerKey(rdb, 1000, 100, redisrate.Options{RequestTimeout: time.Second, CallTimeout: time.Second})
	defer limiter.Close()
	limiter.Take(context.Background(), time.Now(), ratelimit.Key{ID: "all"}, 1, 0)

	s := limiter.Snapshot()
	fmt.Println(s.State, s.Degraded, s.Keys, s.Calls[0].Count)
	if warning, ok := limiter.Health(); !ok {
		fmt.Println(warning) // worth a warning, not a reason to be unready
	}
	// Output: shared false 1 1
}
