package dashboard

import (
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// data answers with one frame, for those who poll.
func (b *board) data(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	body := b.frame(time.Now())
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // a reader that left needs no answer
	}
}

// streams counts open streams.
type streams struct{ open atomic.Int64 }

const (
	streamsMost  = 64 // beyond, pages poll
	streamEvery  = time.Second
	streamFrames = 8 // then the page asks again: see stream
	streamWrite  = 3 * time.Second
)

// stream sends a frame a second, as server-sent events. A stream ends by itself
// after some seconds, and its connection with it; the page then asks for the next.
// That is what drops a reader that is gone or has stopped reading: what it has not
// read fits into the buffers of the kernel for minutes, where no write deadline
// strikes. It also lets a server that shuts down finish in time.
func (b *board) stream(w http.ResponseWriter, r *http.Request) {
	rc := http.NewResponseController(w)
	if b.streams.open.Add(1) > streamsMost || rc.SetWriteDeadline(time.Now().Add(streamWrite)) != nil {
		b.streams.open.Add(-1)
		w.Header().Set("Retry-After", "5")
		http.Error(w, "no stream to be had: poll data.json", http.StatusServiceUnavailable)
		return
	}
	defer b.streams.open.Add(-1)
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("X-Accel-Buffering", "no") // nginx would collect frames
	if r.ProtoMajor == 1 {
		h.Set("Connection", "close")
	}
	if r.Method == http.MethodHead {
		return
	}
	b.send(w, r, rc)
}

func (b *board) send(w http.ResponseWriter, r *http.Request, rc *http.ResponseController) {
	tick := time.NewTicker(streamEvery)
	defer tick.Stop()
	for i := range streamFrames {
		if i > 0 {
			select {
			case <-tick.C:
			case <-r.Context().Done():
				return
			}
		}
		if rc.SetWriteDeadline(time.Now().Add(streamWrite)) != nil || b.event(w) != nil || rc.Flush() != nil {
			return
		}
	}
}

// event writes one frame. JSON has no line break in it, so it is one data line.
func (b *board) event(w http.ResponseWriter) error {
	frame := b.frame(time.Now())
	message := make([]byte, 0, len(frame)+32)
	message = append(message, "retry: 500\ndata: "...)
	message = append(message, frame...)
	_, err := w.Write(append(message, "\n\n"...))
	return err
}
