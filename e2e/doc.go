// Package e2e holds the tests that need something real: a Prometheus, a browser,
// sockets, processes. They run when HEADGATE_E2E=1 or CI=true, and then a missing
// tool is a failure; otherwise they are skipped. One file for each subject.
package e2e
