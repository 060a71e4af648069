package shared

import (
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
	r, err := rig.New("redis-server")
	if err != nil && addr == "" {
		return nil, err
	}
	s := &server{rig: r, addr: addr}
	if addr != "" {
		s.rig = &rig.Rig{}
		return s, nil
	}
	if s.own, err = r.Server(); err != nil {
		r.Close()
		return nil, err
	}
	s.addr = s.own.Addr
	return s, nil
}

func (s *server) close() { s.rig.Close() }

// client has the library's own settings.
func (r *run) client() *redis.Client { return redis.NewClient(&redis.Options{Addr: r.link.Addr}) }
