// LLM is a gateway before a language model: it sells requests and tokens a minute by
// plan, and keeps the model's slots busy without a line inside of the model.
//
//	go run ./examples/llm
//
// It plays the same callers twice against the same model, first with a plain limit on
// requests and then with the gateway, and prints who was served, who waited, and whose
// budget was right. The model is simulated: eight wide, streaming, slower the more it
// does at once, in the shape of OpenAI's API.
//
// The files in the order of a request: chat.go (what is asked), gateway.go (what is
// let in, and what is charged), usage.go (what was really used), model.go, load.go.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"time"
)

func main() {
	length := flag.Duration("for", 20*time.Second, "how long each of the two runs takes")
	flag.Parse()
	if *length < time.Second {
		log.Fatalf("-for = %v: must be at least 1s", *length)
	}
	if err := story(os.Stdout, *length); err != nil {
		log.Fatal(err)
	}
}

// story plays the load against both gateways, on real sockets.
func story(w io.Writer, length time.Duration) error {
	fmt.Fprintf(w, "a model %d wide; plans in tokens a minute: %s\n", width, sold())
	for _, kind := range []struct {
		name  string
		limit func(http.Handler) http.Handler
	}{
		{"a plain limit on requests", requestsAlone},
		{"requests and tokens, slots learned from the work", unitsAndSlots},
	} {
		model, stop, err := listen(newModel())
		if err != nil {
			return err
		}
		gateway, stopGateway, err := listen(newGateway(http.DefaultTransport, model, kind.limit))
		if err != nil {
			stop()
			return err
		}
		fmt.Fprintf(w, "\n%s:\n", kind.name)
		played := play(&http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}, gateway, length)
		played.print(w)
		stopGateway()
		stop()
	}
	return nil
}

// listen serves h on a port of its own.
func listen(h http.Handler) (url string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second}
	go server.Serve(l)
	return "http://" + l.Addr().String(), func() { server.Close() }, nil
}
