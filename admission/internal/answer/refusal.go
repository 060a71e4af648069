// Package answer holds the bytes of a refusal: status, header fields and body, and
// the fields that tell clients about their limit. It decides nothing.
package answer

import (
	"net/http"
	"strings"
	"time"

	"github.com/headgate-go/headgate/shed"
)

// Refusal is what is said to a client that is refused. Its fields are those of
// admission.Rejection.
type Refusal struct {
	Reason     shed.Reason
	RetryAfter time.Duration
	Policy     string
}

// Status returns the HTTP status for the reason.
func (e Refusal) Status() int { return answerTo(e.Reason).status }

// Write answers r.
//
// Headers are assigned from one array made for this response: an outer handler may
// change or append to what it finds there without touching another response.
func (e Refusal) Write(w http.ResponseWriter, r *http.Request) {
	a, h := answerTo(e.Reason), w.Header()
	values := e.head(h, r, a)
	b := &a.text
	values[0] = textType
	if acceptsProblem(r.Header["Accept"]) {
		values[0], b = problemType, a.problem(e.Policy)
	}
	values[1] = b.length
	h["Content-Type"], h["Content-Length"] = values[0:1:1], values[1:2:2]
	w.WriteHeader(a.status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(b.text) // no client is left to tell of a failure
	}
}

// WriteWith lets f write the body and further headers. The status is that of the refusal
// unless f sets another; f may change all headers but has no need to.
func (e Refusal) WriteWith(w http.ResponseWriter, r *http.Request, f func(http.ResponseWriter, *http.Request)) {
	a := answerTo(e.Reason)
	e.head(w.Header(), r, a)
	own := &refusing{ResponseWriter: w, status: a.status}
	f(own, r)
	own.begin()
}

// refusing answers with the status of a refusal where none is said.
type refusing struct {
	http.ResponseWriter
	status int // 0: sent
}

func (w *refusing) begin() {
	if w.status != 0 {
		w.WriteHeader(w.status)
	}
}

func (w *refusing) WriteHeader(status int) {
	if status >= 200 {
		w.status = 0
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *refusing) Write(b []byte) (int, error) {
	w.begin()
	return w.ResponseWriter.Write(b)
}

// FlushError is what http.ResponseController asks for: a flush sends the status.
func (w *refusing) FlushError() error {
	w.begin()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap lets http.ResponseController see the writer within.
func (w *refusing) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// head sets the headers of every refusal. The first two of the values returned are the
// body's to fill.
func (e Refusal) head(h http.Header, r *http.Request, a *answer) *[7]string {
	if len(h) > 0 {
		clean(h)
	}
	values := &[7]string{"", "", "nosniff", "no-store", a.reason, "close"}
	h["X-Content-Type-Options"] = values[2:3:3]
	h["Cache-Control"] = values[3:4:4]
	h["Headgate-Reason"] = values[4:5:5]
	if e.closes(r) {
		h["Connection"] = values[5:6:6]
	}
	if seconds := e.Seconds(); seconds > 0 {
		values[6] = number(seconds)
		h["Retry-After"] = values[6:7:7]
	}
	return values
}

// clean removes what outer handlers have said of another body, or to a cache: a refusal
// that a cache keeps is one for all its clients.
func clean(h http.Header) {
	for name := range h {
		if foreign(http.CanonicalHeaderKey(name)) {
			delete(h, name)
		}
	}
}

// foreign reports whether a header cannot be true of a refusal. Those of RFC 9213 §2
// end in Cache-Control; the others steer one cache or server each.
func foreign(name string) bool {
	switch name {
	case "Content-Encoding", "Content-Length", "Content-Type", "Content-Language", "Content-Range", "Content-Location",
		"Content-Disposition", "Content-Md5", "Content-Digest", "Repr-Digest", "Digest", "Trailer", "Accept-Ranges",
		"Etag", "Last-Modified", "Expires", "Age", "Pragma",
		"Surrogate-Control", "Edge-Control", "X-Accel-Expires", "X-Accel-Redirect", "X-Sendfile",
		"Retry-After", "Headgate-Reason":
		return true
	}
	return strings.HasSuffix(name, "Cache-Control")
}

// Seconds returns the value of Retry-After, or 0 when there is none.
func (e Refusal) Seconds() int64 {
	if e.Reason == shed.NotAdmissible || e.Reason == shed.Unidentified {
		return 0
	}
	return max(wholeSeconds(e.RetryAfter), 1)
}

// The server reads this much of a body that no handler asked for to save the connection
// (net/http, maxPostHandlerReadBytes); from here on it gives up and closes.
const unreadBodyMax = 256 << 10

// closes reports whether the answer says Connection: close. A body of unknown
// length would make net/http wait for its end before it sends the answer, so it
// counts as long. HTTP/2 resets the one stream and has no such field.
func (e Refusal) closes(r *http.Request) bool {
	if r.ProtoMajor != 1 {
		return false
	}
	return e.Reason == shed.Draining || r.ContentLength < 0 || r.ContentLength >= unreadBodyMax
}
