package proxy

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/admission"
)

// guard bounds how long a client may take over the next piece of its request's
// body, or of its answer. A whole upload may last for hours and a stream for days;
// what may not last is a slot held by a client that neither sends nor reads. It
// stands inside the gate, so that only admitted requests pay for it.
//
// It also holds an answer's head back until there is something behind it, so that
// an upstream that dies in between is a 502 to the client and no broken connection.
type guard struct {
	next    http.Handler
	stall   time.Duration
	maxBody int64 // 0: any
	rate    int64 // bytes a second that a body brings at least, on average; 0: any
}

func (g guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p := &patience{ResponseWriter: w, control: http.NewResponseController(w), stall: g.stall, rate: g.rate, stream: r.ProtoMajor >= 2}
	p.deadline, p.bounded = r.Context().Deadline()
	visitor, _ := admission.FromContext(r.Context())
	p.armed = time.Now().Add(-visitor.Waited) // by the server, when the request had come
	if g.maxBody > 0 {
		r.Body = http.MaxBytesReader(w, r.Body, g.maxBody)
	}
	p.disarm()
	if r.Body != nil && r.Body != http.NoBody {
		p.body = &body{ReadCloser: r.Body, patience: p}
		r.Body = p.body
		if p.stream {
			r = r.WithContext(context.WithValue(r.Context(), bodyKey{}, p.body))
		}
		defer p.body.abandon()
	}
	defer p.brokenOff(r)
	g.next.ServeHTTP(p, r)
	p.commit()
	p.arm() // for what is still buffered
}

// patience is the ResponseWriter: each write has the time of one stall.
//
// On HTTP/1 a write deadline that has passed hurts only the next write, which has
// its own. On HTTP/2 it ends the stream when it passes, so it is taken back.
type patience struct {
	http.ResponseWriter
	control  *http.ResponseController
	stall    time.Duration
	rate     int64 // of a body, at least
	stream   bool  // HTTP/2
	status   int   // of a head that is held back; 0: none
	deadline time.Time
	bounded  bool      // deadline counts
	armed    time.Time // when the write deadline was last set; zero: there is none
	body     *body     // nil: none
	left     int64     // of an answer of known length, what is still to come

	// stalled is set when the client did not send in time. The error is of no use to
	// tell: net/http takes a failed read for a client that left, and cancels.
	stalled atomic.Bool
}

// Unwrap is for http.ResponseController, through which a proxy hijacks and flushes.
func (p *patience) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// WriteHeader holds the head back, but for hints.
func (p *patience) WriteHeader(status int) {
	switch {
	case status < 200:
		p.ResponseWriter.WriteHeader(status)
	case p.status == 0:
		p.status = status
	}
}

func (p *patience) commit() {
	if p.status != 0 {
		if length := p.Header()["Content-Length"]; len(length) == 1 {
			p.left, _ = strconv.ParseInt(length[0], 10, 64)
		}
		p.ResponseWriter.WriteHeader(p.status)
		p.status = 0
		if p.stream && p.body != nil {
			p.body.lift()
		}
	}
}

// brokenOff answers in place of an answer that ended before its first byte, of which
// the proxy knows no better than to abort. Of one that ended later, what is buffered is
// sent before the connection breaks: a client then has a status, and knows how far the
// answer came.
func (p *patience) brokenOff(r *http.Request) {
	switch e := recover(); {
	case e == nil: // no panic, or runtime.Goexit
		return
	case e != http.ErrAbortHandler:
		panic(e)
	case p.status == 0:
		_ = p.FlushError()
		panic(e)
	}
	status := statusOf(context.Cause(r.Context()))
	p.Header().Del("Trailer")
	p.status = 0
	http.Error(p.ResponseWriter, strings.ToLower(http.StatusText(status)), status)
}

// Write sends a piece at once where more is to follow: the proxy does so only where it
// does not know the length, and the next piece may take its time. The last one goes with
// the end of the answer.
func (p *patience) Write(b []byte) (int, error) {
	p.commit()
	p.arm()
	n, err := p.ResponseWriter.Write(b)
	if p.left -= int64(n); p.left > 0 && err == nil {
		_ = p.control.Flush()
	}
	p.disarm()
	return n, err
}

// FlushError is what http.ResponseController asks for first.
func (p *patience) FlushError() error {
	p.commit()
	p.arm()
	err := p.control.Flush()
	p.disarm()
	return err
}

// arm gives a write the time of one stall, or of half a one where that saves setting
// a deadline for each of many writes. It does nothing where a connection knows no
// deadlines, as in tests of handlers.
func (p *patience) arm() {
	if now := time.Now(); now.Sub(p.armed) > p.stall/2 {
		p.armed = now
		_ = p.control.SetWriteDeadline(now.Add(p.stall))
	}
}

func (p *patience) disarm() {
	if p.stream {
		p.armed = time.Time{}
		_ = p.control.SetWriteDeadline(p.armed)
	}
}
