module github.com/headgate-go/headgate/outbound/internal/breakertest

go 1.26.0

require (
	github.com/failsafe-go/failsafe-go v0.9.8
	github.com/headgate-go/headgate v0.1.0
	github.com/sony/gobreaker/v2 v2.4.0
)

require (
	github.com/bits-and-blooms/bitset v1.24.4 // indirect
	github.com/influxdata/tdigest v0.0.1 // indirect
	golang.org/x/time v0.16.0 // indirect
)

replace github.com/headgate-go/headgate => ../../..
