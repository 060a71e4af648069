package store

import (
	"context"
	"crypto/tls"
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"
)

// errNode is what a connection ends with that leads to one node of a Cluster. Its keys
// would be refused or, worse, counted by each node for itself.
var errNode = errors.New("this is a node of a Redis Cluster: say redis-cluster:// and any of its nodes")

// client opens what an address names. Nothing is connected yet.
func client(a *address) (redis.UniversalClient, error) {
	secure, err := a.tls()
	if err != nil {
		return nil, err
	}
	switch a.kind {
	case cluster:
		return redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: a.hosts, Username: a.common.Username, Password: a.common.Password, TLSConfig: secure,
		}), nil
	case sentinel:
		return redis.NewFailoverClient(a.failover(secure)), nil
	}
	o := *a.common
	o.OnConnect = noNode
	if secure != nil {
		name := o.TLSConfig.ServerName
		o.TLSConfig = secure
		o.TLSConfig.ServerName = name
	}
	return redis.NewClient(&o), nil
}

func (a *address) failover(secure *tls.Config) *redis.FailoverOptions {
	return &redis.FailoverOptions{
		MasterName: a.params.Get("master"), SentinelAddrs: a.hosts,
		SentinelUsername: a.params.Get("sentinel_username"), SentinelPassword: a.params.Get("sentinel_password"),
		Username: a.common.Username, Password: a.common.Password, DB: a.common.DB, TLSConfig: secure,
	}
}

// noNode refuses connections to a node of a Cluster. A user that may not ask is let
// through: its errors will tell.
func noNode(ctx context.Context, cn *redis.Conn) error {
	info, err := cn.Info(ctx, "cluster").Result()
	if err == nil && strings.Contains(info, "cluster_enabled:1") {
		return errNode
	}
	return nil
}
