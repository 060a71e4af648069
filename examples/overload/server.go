package main

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/httprate"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

const patience = time.Second // how long a client waits

// variant is one way to protect the same service.
type variant struct {
	name  string
	build func(db *database) (h http.Handler, limit func() int)
}

// variants are played in this order; show is told of the gate once there is one.
func variants(show func(*admission.Gate)) []variant {
	return []variant{
		{"nothing", func(db *database) (http.Handler, func() int) {
			return routes(db, nil), nil
		}},
		{"rate limit only", func(db *database) (http.Handler, func() int) {
			// The number from the old benchmark. The traffic never comes near it.
			return httprate.LimitBy(5000, time.Second, httprate.Key("*"))(routes(db, nil)), nil
		}},
		{"the gate", func(db *database) (http.Handler, func() int) {
			gate := admission.MustNew(admission.Options{
				Pool:     admission.Pool{Limit: shed.Throughput{Max: 512}},
				Deadline: admission.TimeoutHeader("X-Timeout", 5*time.Second),
			})
			show(gate)
			return routes(db, gate), func() int { return gate.Stats().Pools[0].Limit }
		}},
	}
}

// routes is the service: three routes over one database. A nil gate lets everybody
// through.
func routes(db *database, gate *admission.Gate) http.Handler {
	r := chi.NewRouter()
	work := func(w http.ResponseWriter, r *http.Request) {
		sent, _ := strconv.ParseInt(r.Header.Get("X-Sent"), 10, 64) // only to count what is wasted
		db.write(time.Unix(0, sent).Add(patience))
		w.WriteHeader(http.StatusOK)
	}
	r.With(gate.At(priority.Critical)).Get("/checkout", work)
	r.With(gate.At(priority.Normal)).Get("/browse", work)
	r.With(gate.At(priority.Batch)).Get("/export", work)
	return r
}

// serve runs a handler on a loopback port until stop is called.
func serve(h http.Handler) (url string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.Serve(l) }()
	return "http://" + l.Addr().String(), func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if s.Shutdown(ctx) != nil {
			_ = s.Close()
		}
	}, nil
}
