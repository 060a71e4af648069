// Size answers "which number goes where": from a rate and a latency, or from an
// access log, which it also replays through the gate to show what would have been
// turned away.
//
//	go run ./examples/size -rps 500 -p50 30ms -p99 120ms
//	go run ./examples/size -accesslog access.log
//	go run ./examples/size -accesslog access.log -rate 20 -burst 40 -level 'POST /checkout=critical'
//
// It is the command "headgate size" of cmd/headgate, with the same flags.
package main

import (
	"fmt"
	"os"

	"github.com/headgate-go/headgate/internal/size"
)

func main() {
	if err := size.Run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "size:", err)
		os.Exit(1)
	}
}
