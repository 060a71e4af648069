module github.com/headgate-go/headgate/bench

go 1.26.0

require github.com/headgate-go/headgate v0.0.0

replace github.com/headgate-go/headgate => ..
