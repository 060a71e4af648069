package pacer_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/headgate-go/headgate/outbound/pacer"
	"github.com/headgate-go/headgate/outbound/verdict"
	"github.com/headgate-go/headgate/ratelimit"
)

func ExampleNew() {
	p, err := pacer.New(pacer.Options{Rate: ratelimit.PerKey(10, 1)})
	if err != nil {
		fmt.Println(err)
		return
	}
	key := ratelimit.Key{Space: "dynamodb", ID: "PutItem"}

	// Around each attempt of an SDK:
	grant, err := p.Acquire(context.Background(), key)
	if err != nil {
		fmt.Println(err)
		return
	}
	answer := verdict.Verdict{Kind: verdict.Throttled, Hint: time.Minute, Hinted: true}
	p.Report(context.Background(), key, answer)
	grant.Release(answer.Kind)

	// A call that comes now, and cannot wait that long, is refused at once.
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err = p.Acquire(ctx, key)
	var refusal *pacer.Refusal
	fmt.Println(errors.As(err, &refusal), refusal.Reason)
	// Output: true paused
}
