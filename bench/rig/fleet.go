package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// nodeTimeout is how long a node, or a primary that Sentinels watch, is silent before it
// counts as dead.
const nodeTimeout = "1000"

// Cluster is three primaries that share the slots, each with a replica.
type Cluster struct {
	Primaries, Replicas []*Server // in the same order, as they began
}

// Cluster starts six nodes.
func (r *Rig) Cluster() (*Cluster, error) {
	c := &Cluster{}
	for i := range 6 {
		n, err := r.Server("--cluster-enabled", "yes", "--cluster-node-timeout", nodeTimeout,
			"--cluster-require-full-coverage", "no", "--repl-diskless-sync-delay", "0")
		if err != nil {
			return nil, err
		}
		if i < 3 {
			c.Primaries = append(c.Primaries, n)
		} else {
			c.Replicas = append(c.Replicas, n)
		}
	}
	return c, c.join()
}

const slots = 16384

func (c *Cluster) join() error {
	all := c.Nodes()
	for i, n := range all {
		if _, err := n.Do("cluster", "set-config-epoch", i+1); err != nil {
			return err
		}
		if i < 3 {
			if _, err := n.Do("cluster", "addslotsrange", i*slots/3, (i+1)*slots/3-1); err != nil {
				return err
			}
		}
		if _, err := all[0].Do("cluster", "meet", "127.0.0.1", n.Port()); err != nil {
			return err
		}
	}
	if err := c.each("the nodes have met", func(n *Server) bool {
		return n.says("cluster_known_nodes:6", "cluster", "info") && n.says("cluster_state:ok", "cluster", "info")
	}); err != nil {
		return err
	}
	for i, n := range c.Replicas {
		id, err := c.Primaries[i].Do("cluster", "myid")
		if err != nil {
			return err
		}
		err = Until(context.Background(), 10*time.Second, "a node is a replica", func() bool {
			_, err := n.Do("cluster", "replicate", id)
			return err == nil
		})
		if err != nil {
			return err
		}
	}
	for _, n := range c.Replicas {
		if err := linked(n); err != nil {
			return err
		}
	}
	return c.each("every node knows the replicas", func(n *Server) bool {
		v, err := n.Do("cluster", "slots")
		shards, ok := v.([]any)
		for _, s := range shards {
			ok = ok && len(s.([]any)) == 4
		}
		return err == nil && ok && len(shards) == 3
	})
}

// linked waits until a replica has its primary's data.
func linked(n *Server) error {
	return Until(context.Background(), 20*time.Second, "a replica has the data", func() bool {
		return n.says("master_link_status:up", "info", "replication")
	})
}

func (c *Cluster) each(what string, ok func(*Server) bool) error {
	for _, n := range c.Nodes() {
		if err := Until(context.Background(), 20*time.Second, what, func() bool { return ok(n) }); err != nil {
			return err
		}
	}
	return nil
}

// Nodes returns all of them.
func (c *Cluster) Nodes() []*Server {
	return append(append([]*Server{}, c.Primaries...), c.Replicas...)
}

// Addrs returns their addresses.
func (c *Cluster) Addrs() (list []string) {
	for _, n := range c.Nodes() {
		list = append(list, n.Addr)
	}
	return list
}

// Slot returns the slot of a key.
func (c *Cluster) Slot(key string) (int, error) {
	v, err := c.Primaries[0].Do("cluster", "keyslot", key)
	n, _ := v.(int64)
	return int(n), err
}

// Home returns which of the primaries had a slot at the start.
func (c *Cluster) Home(slot int) int { return min(2, slot*3/slots) }

// Move moves a slot between primaries, as a resharding does: for pause it is neither
// here nor there.
func (c *Cluster) Move(slot, from, to int, pause time.Duration) error {
	a, b := c.Primaries[from], c.Primaries[to]
	aID, err := a.Do("cluster", "myid")
	if err != nil {
		return err
	}
	bID, err := b.Do("cluster", "myid")
	if err != nil {
		return err
	}
	err = errors.Join(b.All([]any{"cluster", "setslot", slot, "importing", aID}), a.All([]any{"cluster", "setslot", slot, "migrating", bID}))
	if err != nil {
		return err
	}
	time.Sleep(pause)
	keys, err := a.Do("cluster", "getkeysinslot", slot, 100)
	if err != nil {
		return err
	}
	for _, key := range keys.([]any) {
		if _, err := a.Do("migrate", "127.0.0.1", b.Port(), key, 0, 5000); err != nil {
			return err
		}
	}
	time.Sleep(pause)
	for _, n := range []*Server{b, a, c.Primaries[3-from-to]} {
		if _, err := n.Do("cluster", "setslot", slot, "node", bID); err != nil {
			return err
		}
	}
	return nil
}

// Sentinels is a primary with a replica, and three that watch them.
type Sentinels struct {
	Primary, Replica *Server
	Watchers         []*Server
}

// Master is the name under which the Sentinels know the primary.
const Master = "shop"

// Sentinels starts the five.
func (r *Rig) Sentinels() (*Sentinels, error) {
	s := &Sentinels{}
	var err error
	if s.Primary, err = r.Server("--repl-diskless-sync-delay", "0"); err != nil {
		return nil, err
	}
	if s.Replica, err = r.Server("--replicaof", "127.0.0.1 "+s.Primary.Port(), "--repl-diskless-sync-delay", "0"); err != nil {
		return nil, err
	}
	if err := linked(s.Replica); err != nil {
		return nil, err
	}
	for range 3 {
		w, err := r.watcher(s.Primary)
		if err != nil {
			return nil, err
		}
		s.Watchers = append(s.Watchers, w)
	}
	for _, w := range s.Watchers {
		err := Until(context.Background(), 20*time.Second, "the Sentinels know all", func() bool {
			return w.says("slaves=1,sentinels=3", "info", "sentinel")
		})
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// watcher starts one Sentinel. Its file is its own to write.
func (r *Rig) watcher(primary *Server) (*Server, error) {
	file, err := os.CreateTemp(r.dir, "sentinel*.conf")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	fmt.Fprintf(file, "sentinel monitor %s 127.0.0.1 %s 2\nsentinel down-after-milliseconds %[1]s %[3]s\nsentinel failover-timeout %[1]s 10000\n",
		Master, primary.Port(), nodeTimeout)
	return r.start([]string{filepath.Join(r.dir, filepath.Base(file.Name())), "--sentinel"}, nil)
}

// Addrs returns the Sentinels' addresses.
func (s *Sentinels) Addrs() (list []string) {
	for _, w := range s.Watchers {
		list = append(list, w.Addr)
	}
	return list
}
