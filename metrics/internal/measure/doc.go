// Package measure says what is measured, whatever library the figures end up in.
// Package metrics brings them to Prometheus and package metrics/otel to
// OpenTelemetry, under the same names; both are thin, and this is where they meet.
//
// Two kinds of figures come from two places. What happens to a request (how it
// ended, how long it took) is told by events, and counted the moment it is told.
// What is true right now (the limit in force, who waits) is read from snapshots
// when somebody asks, and costs a request nothing.
//
// Label sets are closed. Labels hold the names that a service gave its gates,
// pools, transports, queues and stores, and words from the kit's own lists:
// levels, outcomes, reasons, sources, causes; and the patterns of routes, which come
// from code and are bounded. Nothing a client sends becomes one: no key, no path, no
// method.
package measure
