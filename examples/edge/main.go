// Edge is the kit as a reverse proxy: put it before any HTTP server, whatever it
// is written in.
//
//	go run ./examples/edge -upstream http://127.0.0.1:3000
//	go run ./examples/edge -config edge.yaml
//
// It is the command "headgate edge" of cmd/headgate, with the same flags: the way of a
// request is in [edge], and what people install is cmd/headgate.
package main

import (
	"os"

	"github.com/headgate-go/headgate/cmd/headgate/edge"
)

func main() { os.Exit(edge.Main(os.Args[1:])) }
