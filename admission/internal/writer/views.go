package writer

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// The letters say which optional interfaces a view has: F Flusher, H Hijacker,
// R io.ReaderFrom, P Pusher.
type (
	viewF    struct{ plain }
	viewH    struct{ plain }
	viewR    struct{ plain }
	viewP    struct{ plain }
	viewFH   struct{ viewF }
	viewFR   struct{ viewF }
	viewFP   struct{ viewF }
	viewHR   struct{ viewH }
	viewHP   struct{ viewH }
	viewRP   struct{ viewR }
	viewFHR  struct{ viewFH }
	viewFHP  struct{ viewFH }
	viewFRP  struct{ viewFR }
	viewHRP  struct{ viewHR }
	viewFHRP struct{ viewFHR }
)

type hijacked = *bufio.ReadWriter

func (w viewF) Flush()            { w.flush() }
func (w viewF) FlushError() error { return w.flushError() }

func (w viewH) Hijack() (net.Conn, hijacked, error)  { return w.hijack() }
func (w viewFH) Hijack() (net.Conn, hijacked, error) { return w.hijack() }

func (w viewR) ReadFrom(r io.Reader) (int64, error)   { return w.readFrom(r) }
func (w viewFR) ReadFrom(r io.Reader) (int64, error)  { return w.readFrom(r) }
func (w viewHR) ReadFrom(r io.Reader) (int64, error)  { return w.readFrom(r) }
func (w viewFHR) ReadFrom(r io.Reader) (int64, error) { return w.readFrom(r) }

func (w viewP) Push(t string, o *http.PushOptions) error    { return w.push(t, o) }
func (w viewFP) Push(t string, o *http.PushOptions) error   { return w.push(t, o) }
func (w viewHP) Push(t string, o *http.PushOptions) error   { return w.push(t, o) }
func (w viewRP) Push(t string, o *http.PushOptions) error   { return w.push(t, o) }
func (w viewFHP) Push(t string, o *http.PushOptions) error  { return w.push(t, o) }
func (w viewFRP) Push(t string, o *http.PushOptions) error  { return w.push(t, o) }
func (w viewHRP) Push(t string, o *http.PushOptions) error  { return w.push(t, o) }
func (w viewFHRP) Push(t string, o *http.PushOptions) error { return w.push(t, o) }

// View returns the writer for the handler. It shows exactly the optional interfaces
// that the inner writer has, and Unwrap. It allocates nothing.
func (r *Response) View() http.ResponseWriter {
	inner := r.ResponseWriter
	_, f := inner.(http.Flusher)
	_, h := inner.(http.Hijacker)
	_, rf := inner.(io.ReaderFrom)
	_, p := inner.(http.Pusher)
	v := plain{r}
	if !p {
		return v.without(f, h, rf)
	}
	return v.withPusher(f, h, rf)
}

func (w plain) without(f, h, rf bool) http.ResponseWriter {
	switch {
	case f && h && rf:
		return viewFHR{viewFH{viewF{w}}}
	case f && h:
		return viewFH{viewF{w}}
	case f && rf:
		return viewFR{viewF{w}}
	case h && rf:
		return viewHR{viewH{w}}
	case f:
		return viewF{w}
	case h:
		return viewH{w}
	case rf:
		return viewR{w}
	}
	return w
}

func (w plain) withPusher(f, h, rf bool) http.ResponseWriter {
	switch {
	case f && h && rf:
		return viewFHRP{viewFHR{viewFH{viewF{w}}}}
	case f && h:
		return viewFHP{viewFH{viewF{w}}}
	case f && rf:
		return viewFRP{viewFR{viewF{w}}}
	case h && rf:
		return viewHRP{viewHR{viewH{w}}}
	case f:
		return viewFP{viewF{w}}
	case h:
		return viewHP{viewH{w}}
	case rf:
		return viewRP{viewR{w}}
	}
	return viewP{w}
}
