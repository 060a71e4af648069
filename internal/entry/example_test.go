package entry_test

import (
	"fmt"
	"time"

	"github.com/headgate-go/headgate/internal/entry"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

func ExampleCheck() {
	door := entry.Check{Rate: 100, Service: 20 * time.Millisecond}
	newcomer := entry.Arrival{
		Level:     priority.Normal,
		Ahead:     30, // 310 ms at 100 a second
		Bound:     64,
		MaxWait:   250 * time.Millisecond,
		Remaining: time.Second,
	}
	fmt.Println(door.Decide(newcomer))
	newcomer.Ahead = 3
	fmt.Println(door.Decide(newcomer))
	newcomer.Remaining = 50 * time.Millisecond // 40 to wait, 20 to be served
	fmt.Println(door.Decide(newcomer))
	// Output:
	// out headgate: predicted-wait
	// waits headgate: admitted
	// out headgate: deadline-unmeetable
}

func ExampleMeter() {
	var meter entry.Meter
	now := time.Unix(0, 0)
	for range 32 {
		now = now.Add(10 * time.Millisecond)
		meter.Freed(now, 10*time.Millisecond) // all slots were taken for 10 ms
		meter.Done(now, priority.Normal, 80*time.Millisecond, 1, shed.Served)
	}
	rate, _ := meter.Rate(now, 0)
	service, _ := meter.Service(now, priority.Normal)
	fmt.Printf("%.0f/s, %v\n", rate, service)
	// Output: 100/s, 80ms
}

func ExampleRetryAfter() {
	var back entry.RetryAfter
	now := time.Unix(0, 0)
	for range 10 {
		back.Admitted(now, priority.Normal) // ten a second
	}
	var after time.Duration
	for range 100 {
		after = back.Refused(now, priority.Normal, 0.5)
	}
	fmt.Println(after) // about 100 callers at ten a second, spread over [10 s, 20 s]
	// Output: 15s
}
