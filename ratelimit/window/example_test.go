package window_test

import (
	"context"
	"fmt"
	"time"

	"github.com/go-chi/httprate"

	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/ratelimit/window"
)

var midnight = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func ExamplePerKey() {
	daily := window.PerKey(10_000, 24*time.Hour)
	d := daily.Take(context.Background(), midnight, ratelimit.Key{ID: "acme"}, 1, 0)
	fmt.Println(d.OK, d.Remaining, d.Reset)
	// Output: true 9999 24h0m0s
}

func ExampleNew() {
	daily, err := window.New(window.Options{Quota: 1_000, Length: 24 * time.Hour, Plans: map[string]int{
		"pro":      100_000,
		"internal": window.Unlimited,
		"banned":   0,
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, plan := range []string{"free", "pro", "banned"} {
		d := daily.Take(context.Background(), midnight, ratelimit.Key{ID: plan, Plan: plan}, 1, 0)
		fmt.Println(plan, d.OK, d.Remaining)
	}
	// Output:
	// free true 999
	// pro true 99999
	// banned false 0
}

func ExampleMustNew_counter() {
	// Any counter made for httprate, such as one in Redis; here, httprate's own.
	shared := httprate.NewLocalLimitCounter(24 * time.Hour)
	daily := window.MustNew(window.Options{Quota: 2, Length: 24 * time.Hour, Counter: shared, OnOutage: ratelimit.FailShare})
	for range 3 {
		d := daily.Take(context.Background(), midnight, ratelimit.Key{ID: "acme"}, 1, 0)
		fmt.Println(d.OK, d.Source)
	}
	// Output:
	// true direct
	// true direct
	// false direct
}
