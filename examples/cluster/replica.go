package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/ratelimit/redisrate"
)

// replica is one copy of the service, with its own connections to Redis.
type replica struct {
	url     string
	limiter *redisrate.Limiter
	rdb     *redis.Client
	server  *http.Server
}

func startReplica(name, store string, r, burst, replicas int) (*replica, error) {
	rdb := redis.NewClient(&redis.Options{Addr: store})
	limiter := redisrate.PerKey(rdb, rate.Limit(r), burst, redisrate.Options{
		Name:     "api",
		MinPeers: replicas, // what to divide by if Redis is away from the start
	})
	gate, err := admission.New(admission.Options{Name: name, Rate: limiter})
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello from", name) })
	s := &http.Server{Handler: gate.Handler(handler), ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = s.Serve(listener) }()
	return &replica{url: "http://" + listener.Addr().String(), limiter: limiter, rdb: rdb, server: s}, nil
}

func (r *replica) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = r.server.Shutdown(ctx)
	_ = r.limiter.Close()
	_ = r.rdb.Close()
}
