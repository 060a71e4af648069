module github.com/headgate-go/headgate/examples/edge

go 1.26.0

require github.com/headgate-go/headgate/cmd/headgate v0.1.0

require (
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/go-chi/httprate v0.16.1 // indirect
	github.com/headgate-go/headgate v0.1.0 // indirect
	github.com/headgate-go/headgate/policy v0.1.0 // indirect
	github.com/headgate-go/headgate/ratelimit/redisrate v0.1.0 // indirect
	github.com/klauspost/cpuid/v2 v2.4.0 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/prometheus/client_golang v1.25.0 // indirect
	github.com/prometheus/client_model v0.6.3 // indirect
	github.com/prometheus/common v0.72.0 // indirect
	github.com/prometheus/procfs v0.22.0 // indirect
	github.com/redis/go-redis/v9 v9.23.0 // indirect
	github.com/zeebo/xxh3 v1.1.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	go.yaml.in/yaml/v3 v3.0.6 // indirect
	golang.org/x/sys v0.48.0 // indirect
	golang.org/x/time v0.16.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace (
	github.com/headgate-go/headgate => ../..
	github.com/headgate-go/headgate/cmd/headgate => ../../cmd/headgate
	github.com/headgate-go/headgate/policy => ../../policy
	github.com/headgate-go/headgate/ratelimit/redisrate => ../../ratelimit/redisrate
)
