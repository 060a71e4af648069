package shared

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate-go/headgate/bench/rig"
)

// server is the store all subjects of a run share: one started for the run, or
// one that was there.
type server struct {
	rig  *rig.Rig
	addr string
	own  *rig.Server // nil when it was there
}

func startServer(addr string) (*server, error) {
	if addr != "" {
		return &server{addr: addr, rig: &rig.Rig{}}, nil
	}
	r, err := rig.New("redis-server")
	if err != nil {
		return nil, err
	}
	s := &server{rig: r}
	if s.own, err = r.Server(); err != nil {
		r.Close()
		return nil, err
	}
	s.addr = s.own.Addr
	return s, nil
}

func (s *server) close() { s.rig.Close() }

// wire opens connections that are as far away as asked, and counts what is sent: with one
// command at a time on a connection, a write is a round trip. A relay would take more of
// the processor than the subjects that make many trips, and be what is measured.
type wire struct {
	rtt   time.Duration
	trips atomic.Int64
}

func (w *wire) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &farConn{Conn: c, wire: w}, nil
}

type farConn struct {
	net.Conn
	wire *wire
}

func (c *farConn) Write(b []byte) (int, error) {
	c.wire.trips.Add(1)
	time.Sleep(c.wire.rtt)
	return c.Conn.Write(b)
}

// client has the library's own settings but for the wire.
func (s *server) client(w *wire) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: s.addr, Dialer: w.dial})
}
