package admission

import (
	"net/http"
	"strconv"
	"time"

	"github.com/headgate-go/headgate/shed"
)

// Rejection is a refusal: why, until when, and by which limit. It is an error;
// errors.Is finds its Reason in it (errors.Is(err, shed.QueueFull)) and errors.As
// finds the Rejection itself. It is also an [http.Handler] that answers a request
// with the refusal, for code that calls Gate.Admit by hand.
type Rejection struct {
	Reason     shed.Reason
	RetryAfter time.Duration // until another try makes sense; rounded up to whole seconds, at least 1, on the wire
	Policy     string        // name of the limit that refused; empty when it was no limit
}

// Error says which reason, which limit and when to come back. It is meant for the
// service's own log; clients never see it.
func (e *Rejection) Error() string {
	text := e.Reason.Error()
	if e.Policy != "" {
		text += " by " + strconv.Quote(e.Policy)
	}
	if seconds := e.retrySeconds(); seconds > 0 {
		text += ", retry after " + strconv.FormatInt(seconds, 10) + " s"
	}
	return text
}

// Unwrap returns the Reason.
func (e *Rejection) Unwrap() error { return e.Reason }

// Status returns the HTTP status of the refusal: 429 when the caller is over a
// limit of its own, 503 when the service cannot take the work, 403 when the
// identify step refused the caller (401 would need a challenge, and only the
// service knows its scheme). A client that is gone gets 503 as well: should
// somebody still listen, silence would reach them as an empty 200.
func (e *Rejection) Status() int { return answerTo(e.Reason).status }

// ServeHTTP answers r with the refusal: the status, Retry-After where waiting
// helps, Cache-Control: no-store, Headgate-Reason, and a body of
// application/problem+json where the client accepts it, else one line of text.
// HEAD gets the headers alone.
//
// Headers set by outer handlers stay, except Content-Length and those it sets
// itself. The request's body is not read. On HTTP/1 the connection is closed when
// the server is draining and when the body is too long, or of unknown length, to
// be worth reading past; otherwise it serves the next request.
func (e *Rejection) ServeHTTP(w http.ResponseWriter, r *http.Request) { e.write(w, r) }

// Headers are assigned from one array made for this response: an outer handler may
// change or append to what it finds there without touching another response.
func (e *Rejection) write(w http.ResponseWriter, r *http.Request) {
	a := answerTo(e.Reason)
	h := w.Header()
	json := acceptsProblem(r.Header["Accept"])
	values := &[6]string{textType, "nosniff", "no-store", a.reason, "close"}
	if json {
		values[0] = problemType
	}
	delete(h, "Content-Length") // of some other body
	h["Content-Type"] = values[0:1:1]
	h["X-Content-Type-Options"] = values[1:2:2]
	h["Cache-Control"] = values[2:3:3]
	h["Headgate-Reason"] = values[3:4:4]
	if e.closes(r) {
		h["Connection"] = values[4:5:5]
	}
	delete(h, "Retry-After")
	if seconds := e.retrySeconds(); seconds > 0 {
		values[5] = strconv.FormatInt(seconds, 10)
		h["Retry-After"] = values[5:6:6]
	}
	w.WriteHeader(a.status)
	if r.Method == http.MethodHead {
		return
	}
	if json {
		_, _ = w.Write(a.problem(e.Policy)) // nobody is left to tell of a failure
		return
	}
	_, _ = w.Write(a.text)
}

// retrySeconds returns the value of Retry-After, or 0 when there is none.
func (e *Rejection) retrySeconds() int64 {
	if e.Reason == shed.NotAdmissible || e.Reason == shed.Unidentified {
		return 0
	}
	return max(wholeSeconds(e.RetryAfter), 1)
}

// The server reads this much of a body nobody asked for to save the connection
// (net/http, maxPostHandlerReadBytes); from here on it gives up and closes.
const unreadBodyMax = 256 << 10

// closes reports whether the answer says Connection: close. A body of unknown
// length would make net/http wait for its end before it sends the answer, so it
// counts as long. HTTP/2 resets the one stream and has no such field.
func (e *Rejection) closes(r *http.Request) bool {
	if r.ProtoMajor != 1 {
		return false
	}
	return e.Reason == shed.Draining || r.ContentLength < 0 || r.ContentLength >= unreadBodyMax
}

var (
	_ error        = (*Rejection)(nil)
	_ http.Handler = (*Rejection)(nil)
)
