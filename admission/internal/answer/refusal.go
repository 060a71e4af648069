// Package answer holds the bytes of a refusal: status, header fields and body, and
// the fields that tell clients about their limit. It decides nothing.
package answer

import (
	"net/http"
	"strconv"
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
	if seconds := e.Seconds(); seconds > 0 {
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

// Seconds returns the value of Retry-After, or 0 when there is none.
func (e Refusal) Seconds() int64 {
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
func (e Refusal) closes(r *http.Request) bool {
	if r.ProtoMajor != 1 {
		return false
	}
	return e.Reason == shed.Draining || r.ContentLength < 0 || r.ContentLength >= unreadBodyMax
}
