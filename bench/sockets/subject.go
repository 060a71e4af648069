package sockets

import (
	"net/http"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

// A Subject is one way to protect the server.
type Subject struct {
	Name  string
	Does  string // in words, for the page
	build func(s *Scenario, routes http.Handler) (http.Handler, error)
}

// Subjects returns all of them, in the order of the page. The first protects nothing.
func Subjects() []Subject {
	return append(append([]Subject{{
		"nothing", "no protection",
		func(_ *Scenario, routes http.Handler) (http.Handler, error) { return routes, nil },
	}}, peers()...), gates()...)
}

// gates are the kit: as it comes, with the options of the README, and in the hands of
// somebody who knows how wide the backend is.
func gates() []Subject {
	deadline := admission.TimeoutHeader("X-Timeout", 5*time.Second)
	return []Subject{
		{"headgate", "the gate's defaults", withGate(func(*Scenario) admission.Options {
			return admission.Options{}
		})},
		{"headgate, README", "the options of the README's quickstart", withGate(func(*Scenario) admission.Options {
			return admission.Options{Pool: admission.Pool{Limit: shed.Throughput{Max: 512}, MaxWait: 250 * time.Millisecond}, Deadline: deadline}
		})},
		{"headgate, deadline", "the defaults and the client's deadline", withGate(func(*Scenario) admission.Options {
			return admission.Options{Deadline: deadline}
		})},
		{"headgate, fixed", "the true width written down, and the client's deadline", withGate(func(s *Scenario) admission.Options {
			return admission.Options{Pool: admission.Pool{Limit: shed.Fixed(s.slots())}, Deadline: deadline}
		})},
	}
}

func withGate(options func(*Scenario) admission.Options) func(*Scenario, http.Handler) (http.Handler, error) {
	return func(s *Scenario, routes http.Handler) (http.Handler, error) {
		o := options(s)
		o.Identify = identify
		o.Routes = map[string]admission.Rule{
			"/checkout": admission.AtLevel(priority.Critical),
			"/browse":   admission.AtLevel(priority.Normal),
			"/export":   admission.AtLevel(priority.Batch),
		}
		gate, err := admission.New(o)
		if err != nil {
			return nil, err
		}
		return gate.Handler(routes), nil
	}
}

var identify = caller.Header(callerHeader)

const callerHeader = "X-Caller"
