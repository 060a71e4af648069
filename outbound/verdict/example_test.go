package verdict_test

import (
	"fmt"

	"github.com/headgate-go/headgate/outbound/verdict"
)

func ExampleOfGRPC() {
	// In a unary client interceptor, with s := status.Convert(err):
	//	verdict.OfGRPC(uint32(s.Code()), pushback, local)
	fmt.Println(verdict.OfGRPC(8, "1500", false).Kind) // RESOURCE_EXHAUSTED
	fmt.Println(verdict.OfGRPC(8, "", true).Kind)      // a message too large for this side
	// Output:
	// throttled
	// permanent
}
