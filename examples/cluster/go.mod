module github.com/headgate-go/headgate/examples/cluster

go 1.26.0

replace github.com/headgate-go/headgate => ../..

replace github.com/headgate-go/headgate/ratelimit/redisrate => ../../ratelimit/redisrate

require (
	github.com/headgate-go/headgate v0.1.0
	github.com/headgate-go/headgate/ratelimit/redisrate v0.1.0
	github.com/redis/go-redis/v9 v9.23.0
	golang.org/x/time v0.16.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
)
