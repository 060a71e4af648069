package scenes

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate-go/headgate/bench/rig"
)

// Scenes returns all of them, in the order of the table.
func Scenes() []Scene {
	return slices.Concat(links(), outages(), failovers(), valkey())
}

// alone is one server behind a link.
func alone(w rig.Way, args ...string) func(*stage) error {
	return func(s *stage) (err error) {
		if s.server, err = s.Server(args...); err != nil {
			return err
		}
		if s.link, err = s.Link(s.server.Addr, w); err != nil {
			return err
		}
		s.client = func(int) redis.UniversalClient {
			return redis.NewClient(&redis.Options{Addr: s.link.Addr, Password: rig.PasswordOf(args)})
		}
		return nil
	}
}

// near is the link of scenes that are not about distance.
var near = rig.Way{Trip: time.Millisecond}

func links() (list []Scene) {
	for _, ms := range []float64{0.2, 1, 5, 15, 25, 50, 100, 200} {
		trip := time.Duration(ms * float64(time.Millisecond))
		list = append(list, Scene{
			Name: fmt.Sprintf("far-%vms", ms), Trip: trip, stage: alone(rig.Way{Trip: trip}),
			Title: fmt.Sprintf("a steady round trip of %v", trip),
		})
	}
	return append(list, []Scene{
		{Name: "jitter-25ms", Trip: 25 * time.Millisecond, stage: alone(rig.Way{Trip: 25 * time.Millisecond, Jitter: 25 * time.Millisecond}),
			Title: "a round trip of 25 to 50 ms, at random"},
		{Name: "jitter-100ms", Trip: 100 * time.Millisecond, stage: alone(rig.Way{Trip: 100 * time.Millisecond, Jitter: 50 * time.Millisecond}),
			Title: "a round trip of 100 to 150 ms, at random"},
		{Name: "late-replies", Trip: time.Millisecond, stage: alone(rig.Way{Trip: time.Millisecond, Late: 0.005, By: 200 * time.Millisecond}),
			Title: "0.5 % of the answers come 200 ms late"},
		{Name: "ten-minutes", Trip: 25 * time.Millisecond, Least: 10 * time.Minute, stage: alone(rig.Way{Trip: 25 * time.Millisecond}),
			Title: "ten minutes of a steady round trip of 25 ms"},
		{Name: "slower", stage: alone(near), Title: "the round trip goes from 1 to 100 ms and back",
			away: set(rig.Way{Trip: 100 * time.Millisecond}), back: set(near)},
		{Name: "cut", stage: alone(near), Title: "connections are reset four times a second",
			away: cutting, back: func(*stage) error { return nil }, hold: func() time.Duration { return 0 }},
		{Name: "half-open", stage: alone(near), Title: "all connections fall silent for good, new ones are fine",
			away: func(s *stage) error { s.link.Lose(); return nil }, hold: func() time.Duration { return callTimeout }},
		{Name: "swallowed", stage: alone(near), Title: "nothing sent arrives, new connections included",
			away: set(rig.Way{Trip: near.Trip, Swallow: true}), back: set(near)},
		{Name: "one-cut-off", stage: oneBehind, Title: "one of three processes loses the store",
			away: set(rig.Way{Trip: near.Trip, Swallow: true}), back: set(near)},
	}...)
}

// callTimeout is the default of redisrate.Options.CallTimeout: until then a process may
// hold on to a connection that is dead.
const callTimeout = 500 * time.Millisecond

func set(w rig.Way) func(*stage) error {
	return func(s *stage) error { s.link.Set(w); return nil }
}

func cutting(s *stage) error {
	for range 12 {
		s.link.Cut()
		time.Sleep(250 * time.Millisecond)
	}
	return nil
}

// oneBehind puts only the first process behind the link.
func oneBehind(s *stage) error {
	if err := alone(near)(s); err != nil {
		return err
	}
	other, err := s.Link(s.server.Addr, near)
	s.client = func(process int) redis.UniversalClient {
		if process == 0 {
			return redis.NewClient(&redis.Options{Addr: s.link.Addr})
		}
		return redis.NewClient(&redis.Options{Addr: other.Addr})
	}
	return err
}

func outages() []Scene {
	return []Scene{
		{Name: "killed", Forgets: true, stage: alone(near), Title: "the server is killed, and comes back empty",
			away: func(s *stage) error { s.server.Kill(); return nil }, back: restart},
		{Name: "loading", stage: alone(near, loads...), Title: "restarted with a large dump: LOADING until it is read",
			away: reload, back: func(s *stage) error { return s.server.Wait() }, hold: func() time.Duration { return 0 }},
		{Name: "stopped", stage: alone(near), Title: "the server is stopped (SIGSTOP)",
			away: func(s *stage) error { return s.server.Suspend() }, back: func(s *stage) error { return s.server.Resume() }},
		{Name: "debug-sleep", stage: alone(near), Title: "DEBUG SLEEP 3",
			away: commands([]any{"debug", "sleep", "3"}), hold: func() time.Duration { return 0 }},
		{Name: "client-pause", stage: alone(near), Title: "CLIENT PAUSE 3000",
			away: commands([]any{"client", "pause", "3000"}), hold: func() time.Duration { return 3 * time.Second }},
		{Name: "oom", stage: alone(near), Title: "out of memory (maxmemory, noeviction): OOM",
			away: commands([]any{"config", "set", "maxmemory", "1"}), back: commands([]any{"config", "set", "maxmemory", "0"})},
		{Name: "readonly", stage: alone(near), Title: "made a replica: READONLY",
			away: commands([]any{"replicaof", "127.0.0.1", "1"}), back: commands([]any{"replicaof", "no", "one"})},
		{Name: "no-rights", stage: alone(near), Title: "the user loses the right to run scripts: NOPERM",
			away: commands([]any{"acl", "setuser", "default", "-evalsha", "-eval"}),
			back: commands([]any{"acl", "setuser", "default", "+@all"})},
		{Name: "password", stage: alone(near, "--requirepass", "old"), Title: "the password is changed and connections are closed: WRONGPASS",
			away: commands([]any{"acl", "setuser", "default", "resetpass", ">new"}, []any{"client", "kill", "type", "normal", "skipme", "yes"}),
			back: commands([]any{"acl", "setuser", "default", ">old"})},
		{Name: "scripts", stage: alone(near), Title: "SCRIPT FLUSH, ten times",
			away: flush, hold: func() time.Duration { return 0 }},
	}
}

func commands(list ...[]any) func(*stage) error {
	return func(s *stage) error { return s.server.All(list...) }
}

func flush(s *stage) error {
	for range 10 {
		if _, err := s.server.Do("script", "flush"); err != nil {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nil
}

func restart(s *stage) error {
	if err := s.server.Start(); err != nil {
		return err
	}
	return s.server.Wait()
}

// A small dump that is read as slowly as a large one.
var loads = []string{"--key-load-delay", "150", "--loading-process-events-interval-bytes", "20000", "--rdbcompression", "no"}

func reload(s *stage) error {
	if _, err := s.server.Do("debug", "populate", 20000, "filler", 100); err != nil {
		return err
	}
	s.server.Save()
	return s.server.Start()
}

// promoted waits until a replica is the primary.
func promoted(n *rig.Server) error {
	return rig.Until(context.Background(), 20*time.Second, "the replica is the primary", n.IsPrimary)
}
