package writer

import (
	"bufio"
	"net"
	"net/http"
)

// The writers that [http.ResponseController] meets when it unwraps the gate's, where
// some middleware outside of the gate shows Flusher or Hijacker through its own
// Unwrap only. Without them a stream would pass the gate by, and keep its slot.
type (
	beneathF  struct{ plain }
	beneathH  struct{ plain }
	beneathFH struct{ beneathF }
)

// Unwrap lets http.ResponseController see the writers within.
func (w plain) Unwrap() http.ResponseWriter {
	w.r.Touched = true
	inner := w.r.ResponseWriter
	f, h := hides[http.Flusher](inner), hides[http.Hijacker](inner)
	if _, shown := inner.(http.Flusher); !shown && reaches[interface{ FlushError() error }](inner) {
		f = true
	}
	switch {
	case f && h:
		return beneathFH{beneathF{w}}
	case f:
		return beneathF{w}
	case h:
		return beneathH{w}
	}
	return inner
}

func (w beneathF) FlushError() error {
	w.r.sent(http.StatusOK)
	w.r.Owner.Streaming()
	return w.control().Flush()
}

func (w beneathH) Hijack() (net.Conn, *bufio.ReadWriter, error)  { return w.takeOver() }
func (w beneathFH) Hijack() (net.Conn, *bufio.ReadWriter, error) { return w.takeOver() }

func (w plain) takeOver() (net.Conn, *bufio.ReadWriter, error) {
	conn, buf, err := w.control().Hijack()
	w.tookOver(err)
	return conn, buf, err
}

func (w plain) control() *http.ResponseController {
	return http.NewResponseController(w.r.ResponseWriter)
}

// Unwrap goes on below.
func (w beneathF) Unwrap() http.ResponseWriter { return w.r.ResponseWriter }

// Unwrap goes on below.
func (w beneathH) Unwrap() http.ResponseWriter { return w.r.ResponseWriter }

// hides reports whether w has the interface by Unwrap only.
func hides[T any](w http.ResponseWriter) bool {
	_, shows := w.(T)
	return !shows && reaches[T](w)
}

// reaches reports whether w has the interface itself or by Unwrap.
func reaches[T any](w http.ResponseWriter) bool {
	for w != nil {
		if _, found := w.(T); found {
			return true
		}
		u, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return false
		}
		w = u.Unwrap()
	}
	return false
}
