module github.com/headgate-go/headgate/admission/policy

go 1.26.0

require (
	github.com/goccy/go-yaml v1.19.2
	github.com/headgate-go/headgate v0.0.0
	golang.org/x/time v0.16.0
)

replace github.com/headgate-go/headgate => ../..
