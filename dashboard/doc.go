// Package dashboard is the kit's live page: what a gate serves and refuses, why,
// where it gets stuck and who is to blame, as it happens, in the service's own
// binary. Beside it lie a Grafana dashboard (grafana/headgate.json) and Prometheus
// rules (rules/headgate.yml) that ask the same questions of the recorded metrics.
//
//	r.Mount("/headgate", dashboard.Handler(dashboard.Gate(gate)))
//
// The page asks nobody but its own server for anything: script, style and charts
// come with it, under a content security policy that allows nothing else. It is
// told what to show by snapshots (Stats methods); it hears of no request and slows
// none down. Names are text, whatever is in them. Callers appear by alias only
// (see caller.Caller): a key never leaves the gate.
//
// Frames come as server-sent events, one a second. The tabs of a browser share one
// stream, since a browser opens six connections to a host and no more. Where no
// stream comes through, pages poll.
package dashboard
