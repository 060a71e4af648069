// Package writer shows a handler the ResponseWriter it would have had without the
// gate, and watches what goes through it.
package writer

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// Response watches what a handler answers. It is embedded by value in a larger
// object, so that the writer and its owner are one allocation. It is for the
// handler's goroutine alone.
type Response struct {
	http.ResponseWriter // the inner one
	Owner               Owner
	Status              int32 // 0: nothing sent yet
	Hijacked            bool  // the connection was taken over
	HasBody             bool  // an HTTP/1 request with a body, which may be longer than is read
	Touched             bool  // the handler may have changed the header: it asked for it, or for a writer within
}

// Owner is told of the two moments that matter to the object around a Response.
type Owner interface {
	// Heading is called before the header goes out, with what it holds so far, if the
	// handler may have changed it. More than one call is possible.
	Heading(http.Header)
	// Streaming is called before a flush and after the connection was taken over.
	Streaming()
}

// plain is the writer the handler sees: the response looked at as a ResponseWriter.
// The views below add one optional interface each, so that the handler sees
// those that the inner writer has, and no other. All are one pointer wide, so
// looking costs no allocation.
//
// http.CloseNotifier is left out: deprecated since Go 1.11 for the request's
// context.
type plain struct{ r *Response }

func (w plain) Header() http.Header {
	w.r.Touched = true
	return w.r.ResponseWriter.Header()
}

func (w plain) Write(b []byte) (int, error) {
	w.r.sent(http.StatusOK)
	return w.r.ResponseWriter.Write(b)
}

func (w plain) WriteString(s string) (int, error) {
	w.r.sent(http.StatusOK)
	return io.WriteString(w.r.ResponseWriter, s)
}

func (w plain) WriteHeader(status int) {
	if status >= 200 || status == http.StatusSwitchingProtocols { // other 1xx are not the answer
		w.r.sent(status)
	}
	w.r.ResponseWriter.WriteHeader(status)
}

func (r *Response) sent(status int) {
	if r.Status == 0 {
		if status == http.StatusRequestEntityTooLarge && r.HasBody {
			r.giveUpBody()
		}
		r.Status = int32(status)
		r.heading()
	}
}

// Returned tells that the handler has returned: if it sent nothing, net/http sends the
// header now.
func (r *Response) Returned() {
	if r.Status == 0 && !r.Hijacked {
		r.heading()
	}
}

func (r *Response) heading() {
	if r.Touched {
		r.Owner.Heading(r.ResponseWriter.Header())
	}
}

// giveUpBody makes the server answer at once and close, instead of reading on.
// http.MaxBytesReader asks for that by a method of net/http's own writer that no other
// type can have, so the answer for a body that is too long has to stand for it.
func (r *Response) giveUpBody() {
	if h := r.ResponseWriter.Header(); len(h["Connection"]) == 0 {
		h["Connection"] = []string{"close"}
	}
}

func (w plain) flush() {
	w.r.sent(http.StatusOK)
	w.r.Owner.Streaming()
	w.r.ResponseWriter.(http.Flusher).Flush()
}

// flushError is what http.ResponseController asks for first.
func (w plain) flushError() error {
	if f, ok := w.r.ResponseWriter.(interface{ FlushError() error }); ok {
		w.r.sent(http.StatusOK)
		w.r.Owner.Streaming()
		return f.FlushError()
	}
	w.flush()
	return nil
}

func (w plain) hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buf, err := w.r.ResponseWriter.(http.Hijacker).Hijack()
	w.tookOver(err)
	return conn, buf, err
}

func (w plain) tookOver(err error) {
	if err == nil {
		w.r.Hijacked = true
		w.r.Owner.Streaming()
	}
}

// readFrom answers only once there is something to read: net/http holds the header
// back until then, and a handler whose source fails first may still say so.
func (w plain) readFrom(src io.Reader) (int64, error) {
	w.r.heading()
	n, err := w.r.ResponseWriter.(io.ReaderFrom).ReadFrom(src)
	if n > 0 {
		w.r.sent(http.StatusOK)
	}
	return n, err
}

func (w plain) push(target string, opts *http.PushOptions) error {
	return w.r.ResponseWriter.(http.Pusher).Push(target, opts)
}

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
