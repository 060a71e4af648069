package queue_test

import (
	"context"
	"fmt"
	"time"

	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/shed"
)

func ExampleSlots() {
	slots, err := queue.NewSlots(queue.Config{Limit: shed.Fixed(1), MaxWait: 10 * time.Millisecond})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	grant, err := slots.Acquire(ctx, time.Now(), queue.Ticket{Level: priority.Critical, Caller: "acme"})
	fmt.Println(grant.Held(), err)

	_, err = slots.Acquire(ctx, time.Now(), queue.Ticket{Level: priority.Batch, Caller: "acme"})
	fmt.Println(err)

	slots.Release(grant, shed.Served)
	fmt.Println(slots.Stats().InFlight)
	// Output:
	// true <nil>
	// headgate: waited-too-long
	// 0
}

func ExampleSlots_TryAcquire() {
	slots, _ := queue.NewSlots(queue.Config{Limit: shed.Fixed(1)})
	_, err := slots.TryAcquire(time.Now(), queue.Ticket{})
	fmt.Println(err)
	_, err = slots.TryAcquire(time.Now(), queue.Ticket{})
	fmt.Println(err)
	// Output:
	// <nil>
	// headgate: capacity
}

func ExampleSlots_RetryAfter() {
	slots, _ := queue.NewSlots(queue.Config{Limit: shed.Fixed(1)})
	after := slots.RetryAfter(priority.Normal) // 1 s, spread over [1 s, 2 s]
	fmt.Println(after >= time.Second && after <= 2*time.Second)
	// Output: true
}

func ExampleSlots_Update() {
	slots, _ := queue.NewSlots(queue.Config{Limit: shed.Fixed(8)})
	fmt.Println(slots.Update(queue.Config{Limit: shed.Fixed(16), MaxWaiting: -1}))
	fmt.Println(slots.Update(queue.Config{Limit: shed.Fixed(16)}), slots.Stats().Limit)
	// Output:
	// queue: MaxWaiting = -1: must not be negative
	// <nil> 16
}

func ExampleSlots_Drain() {
	slots, _ := queue.NewSlots(queue.Config{Limit: shed.Fixed(8)})
	slots.Drain()
	_, err := slots.TryAcquire(time.Now(), queue.Ticket{})
	fmt.Println(err)
	// Output: headgate: draining
}

// A program in virtual time asks the core instead of waiting.
func ExampleCore() {
	core, _ := queue.NewCore(queue.Config{Limit: shed.Fixed(1)})
	now := time.Unix(0, 0)

	var first, second queue.Waiter
	verdict, _ := core.Offer(now, &first)
	fmt.Println(verdict)
	verdict, _ = core.Offer(now, &second)
	fmt.Println(verdict)

	now = now.Add(20 * time.Millisecond)
	core.Release(now, first.Grant, shed.Served)
	next := core.Next(now)
	fmt.Println(next == &second, next.Grant.Waited)
	// Output:
	// in
	// waits
	// true 20ms
}

// A handler hands rows to a writer. When the writer falls behind, the least
// important rows go first, and rows nobody waits for any more are never written.
func ExampleQueue() {
	rows, err := queue.NewQueue(queue.WorkConfig[string]{
		MaxWaiting: 2,
		OnDrop: func(row string, _ queue.Ticket, why shed.Reason) {
			fmt.Println("dropped", row, why.String())
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Now()
	rows.Push(now, "click", queue.Ticket{Level: priority.Batch})
	rows.Push(now, "search", queue.Ticket{Level: priority.Normal})
	rows.Push(now, "order", queue.Ticket{Level: priority.Critical})
	rows.Close()
	for {
		row, _, err := rows.Pop(context.Background())
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("wrote", row)
	}
	// Output:
	// dropped click evicted
	// wrote order
	// wrote search
	// headgate: draining
}
