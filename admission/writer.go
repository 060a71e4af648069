package admission

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// response watches what the handler answers.
type response struct {
	http.ResponseWriter
	status   int // 0: nothing sent yet
	hijacked bool
	told     Headers // what the client is told about its limit
}

// plain is the writer the handler sees: the request's own object, looked at as a
// ResponseWriter. The types after it add one optional interface each, so that the
// handler sees those that the inner writer has, and no other. All are one pointer
// wide, so looking costs no allocation.
//
// http.CloseNotifier is left out: deprecated since Go 1.11 for the request's
// context.
type plain struct{ r *request }

func (w plain) Header() http.Header { return w.r.ResponseWriter.Header() }

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

func (r *response) sent(status int) {
	if r.status == 0 {
		r.status = status
		r.told.once(r.ResponseWriter.Header())
	}
}

func (w plain) flush() {
	w.r.sent(http.StatusOK)
	w.r.leaveSlot()
	w.r.ResponseWriter.(http.Flusher).Flush()
}

// flushError is what http.ResponseController asks for first.
func (w plain) flushError() error {
	if f, ok := w.r.ResponseWriter.(interface{ FlushError() error }); ok {
		w.r.sent(http.StatusOK)
		w.r.leaveSlot()
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
		w.r.hijacked = true
		w.r.leaveSlot()
	}
}

// readFrom answers only once there is something to read: net/http holds the header
// back until then, and a handler whose source fails first may still say so.
func (w plain) readFrom(src io.Reader) (int64, error) {
	w.r.told.once(w.r.ResponseWriter.Header())
	n, err := w.r.ResponseWriter.(io.ReaderFrom).ReadFrom(src)
	if n > 0 {
		w.r.sent(http.StatusOK)
	}
	return n, err
}

func (w plain) push(target string, opts *http.PushOptions) error {
	return w.r.ResponseWriter.(http.Pusher).Push(target, opts)
}
