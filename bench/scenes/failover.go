package scenes

import (
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate-go/headgate/bench/rig"
)

func failovers() []Scene {
	none := func() time.Duration { return 0 }
	return []Scene{
		{Name: "cluster-failover", Keys: 3, Forgets: true, stage: clustered, Title: "Cluster of 3 + 3: CLUSTER FAILOVER on each shard",
			away: handOver, hold: none},
		{Name: "cluster-kill", Keys: 3, Forgets: true, stage: clustered, Title: "Cluster of 3 + 3: a primary is killed, its replica is elected", hold: none,
			away: func(s *stage) error { s.cluster.Primaries[0].Kill(); return nil },
			back: func(s *stage) error { return promoted(s.cluster.Replicas[0]) }},
		{Name: "cluster-reshard", Keys: 3, stage: clustered, Title: "Cluster of 3 + 3: the slots in use are moved, around and back",
			away: reshard, hold: none},
		{Name: "sentinel-failover", Forgets: true, stage: watched, Title: "three Sentinels: SENTINEL FAILOVER", hold: none,
			away: func(s *stage) error {
				_, err := s.sentinels.Watchers[0].Do("sentinel", "failover", rig.Master)
				return err
			},
			back: func(s *stage) error { return promoted(s.sentinels.Replica) }},
		{Name: "sentinel-kill", Forgets: true, stage: watched, Title: "three Sentinels: the primary is killed", hold: none,
			away: func(s *stage) error { s.sentinels.Primary.Kill(); return nil },
			back: func(s *stage) error { return promoted(s.sentinels.Replica) }},
	}
}

func clustered(s *stage) (err error) {
	if s.cluster, err = s.Cluster(); err != nil {
		return err
	}
	s.client = func(int) redis.UniversalClient {
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: s.cluster.Addrs()})
	}
	return nil
}

func handOver(s *stage) error {
	for _, n := range s.cluster.Replicas {
		if _, err := n.Do("cluster", "failover"); err != nil {
			return err
		}
		if err := promoted(n); err != nil {
			return err
		}
	}
	return nil
}

// reshard moves the slot of every key that is in use to the next primary, three times:
// then each is where it began.
func reshard(s *stage) error {
	for round := range 3 {
		for _, f := range s.fleets {
			for _, key := range f.keys {
				slot, err := s.cluster.Slot(bucket(f.name, key))
				if err != nil {
					return err
				}
				from := (s.cluster.Home(slot) + round) % 3
				if err := s.cluster.Move(slot, from, (from+1)%3, 50*time.Millisecond); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func watched(s *stage) (err error) {
	if s.sentinels, err = s.Sentinels(); err != nil {
		return err
	}
	s.client = func(int) redis.UniversalClient {
		return redis.NewFailoverClient(&redis.FailoverOptions{MasterName: rig.Master, SentinelAddrs: s.sentinels.Addrs()})
	}
	return nil
}

// valkey plays some of the scenes with the other server.
func valkey() []Scene {
	const program = "valkey-server"
	kill := failovers()[1]
	kill.Name, kill.Title, kill.Program = "valkey-cluster-kill", "Valkey, "+kill.Title, program
	return []Scene{
		{Name: "valkey-far-25ms", Trip: 25 * time.Millisecond, Program: program, stage: alone(rig.Way{Trip: 25 * time.Millisecond}),
			Title: "Valkey, a steady round trip of 25 ms"},
		{Name: "valkey-killed", Forgets: true, Program: program, stage: alone(near), Title: "Valkey, the server is killed, and comes back empty",
			away: func(s *stage) error { s.server.Kill(); return nil }, back: restart},
		kill,
	}
}
