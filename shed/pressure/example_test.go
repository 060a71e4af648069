package pressure_test

import (
	"fmt"
	"time"

	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed/pressure"
)

func ExampleGuard() {
	backlog := 950
	gauge, err := pressure.Guard{Signals: []pressure.Signal{
		pressure.Heap(),
		pressure.SchedulerLatency(),
		pressure.Depth(func() int { return backlog }, 900), // a queue.Queue's Len, say
	}}.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Unix(1_000_000_000, 0)
	fmt.Println(gauge.Lowest(now), gauge.Sheds(now, priority.Batch, "acme"), gauge.Sheds(now, priority.Critical, "acme"))

	backlog = 100
	now = now.Add(2 * time.Second)
	fmt.Println(gauge.Lowest(now))
	// Output:
	// normal true false
	// batch
}
