// Package rpc measures what stands before a gRPC handler: the interceptor alone, and whole
// calls over loopback.
package rpc

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/headgate-go/headgate/bench/overhead"
)

// Main measures for a time and writes two tables to w.
func Main(w io.Writer, args []string) error {
	f := flag.NewFlagSet("rpc", flag.ExitOnError)
	length := f.Duration("for", 10*time.Second, "how long each table takes")
	_ = f.Parse(args)
	all := subjects()
	alone, err := rounds(all, *length, 500, interceptors)
	if err != nil {
		return err
	}
	write(w, "The interceptor alone, CPU time beyond the handler's", all, alone, true)
	whole, err := rounds(all, *length, 50, calls)
	if err != nil {
		return err
	}
	write(w, "A unary call over loopback, CPU time of client and server", all, whole, false)
	return nil
}

// figures are those of one subject, per call: one for each turn.
type figures struct{ ns, allocs []float64 }

// call makes one; nil: the subject takes no part.
type call func() error

// rounds lets the subjects take turns, so that what else the machine does meets all of
// them alike.
func rounds(all []subject, length time.Duration, batch int, of func([]subject) ([]call, func(), error)) ([]figures, error) {
	callers, stop, err := of(all)
	if err != nil {
		return nil, err
	}
	defer stop()
	out := make([]figures, len(all))
	for began, n := time.Now(), 0; time.Since(began) < length || n < 5; n++ {
		for i, one := range callers {
			if one == nil {
				continue
			}
			ns, allocs, err := turn(one, batch)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", all[i].name, err)
			}
			if n > 0 { // the first warms up
				out[i].ns, out[i].allocs = append(out[i].ns, ns), append(out[i].allocs, allocs)
			}
		}
	}
	return out, nil
}

func turn(one call, batch int) (ns, allocs float64, err error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	from := overhead.CPUTime()
	for range batch {
		if err := one(); err != nil {
			return 0, 0, err
		}
	}
	took := overhead.CPUTime() - from
	runtime.ReadMemStats(&after)
	return float64(took.Nanoseconds()) / float64(batch), float64(after.Mallocs-before.Mallocs) / float64(batch), nil
}

// interceptors call the interceptors with the context of a call, and no connection.
func interceptors(all []subject) ([]call, func(), error) {
	handler := func(context.Context, any) (any, error) { return (*emptypb.Empty)(nil), nil }
	info := &grpc.UnaryServerInfo{FullMethod: method}
	ctx := peer.NewContext(context.Background(), &peer.Peer{Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1234}})
	ctx = metadata.NewIncomingContext(ctx, metadata.Pairs(":authority", "shop", "content-type", "application/grpc",
		"user-agent", "grpc-go/1.85.0", "x-api-key", "ann"))
	callers := make([]call, len(all))
	for i, s := range all {
		switch {
		case s.unary != nil:
			callers[i] = func() error { _, err := s.unary(ctx, nil, info, handler); return err }
		case s.tap == nil:
			callers[i] = func() error { _, err := handler(ctx, nil); return err }
		}
	}
	return callers, func() {}, nil
}

// calls serve each subject on loopback.
func calls(all []subject) (callers []call, stop func(), err error) {
	var stops []func()
	stop = func() {
		for _, f := range stops {
			f()
		}
	}
	ctx := metadata.AppendToOutgoingContext(context.Background(), "x-api-key", "ann")
	for _, s := range all {
		var opts []grpc.ServerOption
		if s.unary != nil {
			opts = append(opts, grpc.UnaryInterceptor(s.unary))
		}
		if s.tap != nil {
			opts = append(opts, s.tap)
		}
		server := grpc.NewServer(opts...)
		server.RegisterService(&echo, struct{}{})
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, stop, err
		}
		go func() { _ = server.Serve(l) }()
		conn, err := grpc.NewClient("passthrough:///"+l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return nil, stop, err
		}
		stops = append(stops, server.Stop, func() { _ = conn.Close() })
		callers = append(callers, func() error { return conn.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{}) })
	}
	return callers, stop, nil
}

// echo is the service that is called.
var echo = grpc.ServiceDesc{ServiceName: "bench.Echo", HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{{MethodName: "Call", Handler: serveEcho}}}

func serveEcho(srv any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
	in := new(emptypb.Empty)
	if err := decode(in); err != nil {
		return nil, err
	}
	handler := func(context.Context, any) (any, error) { return in, nil }
	if intercept == nil {
		return handler(ctx, in)
	}
	return intercept(ctx, in, &grpc.UnaryServerInfo{Server: srv, FullMethod: method}, handler)
}

func write(w io.Writer, title string, all []subject, of []figures, beyond bool) {
	base := of[0]
	fmt.Fprintf(w, "%s (medians of %d interleaved turns; in brackets the fastest tenth)\n\n", title, len(base.ns))
	fmt.Fprintln(w, "| before the handler | what it does | ns | to the yardstick | allocations |\n|---|---|---|---|---|")
	less := func(f figures, q float64) float64 {
		if beyond {
			return at(f.ns, q) - at(base.ns, q)
		}
		return at(f.ns, q)
	}
	for i, s := range all {
		if len(of[i].ns) == 0 {
			continue
		}
		fmt.Fprintf(w, "| %s | %s | %.0f (%.0f) | %.2f | %.0f |\n", s.name, s.does, less(of[i], 0.5), less(of[i], 0.1),
			less(of[i], 0.5)/max(less(of[1], 0.5), 1), at(of[i].allocs, 0.5))
	}
	fmt.Fprintln(w)
}

// at is a quantile of v.
func at(v []float64, q float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[int(q*float64(len(v)-1))]
}
