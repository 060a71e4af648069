package outbound

import (
	"io"
	"net/http"
	"time"
)

const (
	mostDrained  = 64 << 10
	drainTimeout = 250 * time.Millisecond
)

// discard is done with resp: it reads a little of what is left, so that the
// connection can be used again, and closes it. Bytes and time are bounded, because
// an error's body may never end: a connection lost is cheaper than a call stuck.
func discard(resp *http.Response) {
	if resp.Body == nil || resp.Body == http.NoBody {
		return
	}
	if resp.ContentLength > mostDrained {
		_ = resp.Body.Close()
		return
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.CopyN(io.Discard, resp.Body, mostDrained)
	}()
	timer := time.NewTimer(drainTimeout)
	defer timer.Stop()
	select {
	case <-drained:
	case <-timer.C:
	}
	_ = resp.Body.Close() // and ends the read, if it is still on
}
