package shed_test

import (
	"fmt"
	"time"

	"github.com/headgate-go/headgate/shed"
)

// A backend that takes 50 ms however much it is given: the law finds out by trying
// more, and every move says why.
func ExampleThroughput() {
	law, err := shed.Throughput{Initial: 8, Max: 512}.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Unix(1_000_000_000, 0)
	const latency = 50 * time.Millisecond
	for range 400 {
		now = now.Add(latency / time.Duration(law.Limit()))
		load := shed.Load{InFlight: law.Limit(), Waiting: 20}
		step := law.Done(now, load, shed.Sample{Admitted: now.Add(-latency), Outcome: shed.Served})
		if step.Moved() {
			fmt.Println(step.Limit, step.Cause)
		}
	}
	// Output:
	// 16 grow
	// 32 grow
	// 52 grow
	// 78 grow
	// 117 grow
}

func ExampleFixed() {
	law, _ := shed.Fixed(16).New()
	fmt.Println(law.Limit())
	// Output: 16
}

func ExampleAIMD() {
	_, err := shed.AIMD{Backoff: 1.5}.New()
	fmt.Println(err)
	// Output: shed: AIMD.Backoff = 1.5: must be between 0 and 1
}

func ExampleVegas() {
	law, _ := shed.Vegas{Max: 20}.New()
	fmt.Println(law.Limit())
	// Output: 20
}

func ExampleGradient2() {
	law, _ := shed.Gradient2{Tolerance: 2}.New()
	fmt.Println(law.Limit())
	// Output: 32
}
