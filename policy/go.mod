module github.com/headgate-go/headgate/policy

go 1.26.0

require (
	github.com/headgate-go/headgate v0.1.0
	go.yaml.in/yaml/v3 v3.0.6
	golang.org/x/time v0.16.0
)

require (
	github.com/go-chi/httprate v0.16.1 // indirect
	github.com/klauspost/cpuid/v2 v2.2.10 // indirect
	github.com/zeebo/xxh3 v1.0.2 // indirect
	golang.org/x/sys v0.48.0 // indirect
)

replace github.com/headgate-go/headgate => ..
