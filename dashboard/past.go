package dashboard

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"weak"
)

// past is what the page was told before anybody opened it: frames of the last minutes,
// as JSON. The larger a frame, the fewer are kept, so that they need about pastSize.
type past struct {
	mu     sync.Mutex
	frames []pastFrame // oldest first
	packed []byte      // all of them, compressed; nil: to be made
}

type pastFrame struct {
	at   time.Time
	json []byte
}

const (
	pastSpan    = 5 * time.Minute
	pastEvery   = 2 * time.Second // at least
	pastSparest = 10 * time.Second
	pastSize    = 400 << 10 // bytes
)

// remember has b keep what it shows, now and then, for as long as somebody holds b: the
// timer alone does not.
func remember(b *board) {
	held := weak.Make(b)
	var next func()
	next = func() {
		if b := held.Value(); b != nil {
			time.AfterFunc(b.keep(time.Now()), next)
		}
	}
	time.AfterFunc(pastEvery, next)
}

// keep takes what is shown at an instant into the past, and returns how long after it the
// next is due. What is shown comes from the program's own methods: one that panics
// leaves a gap in the past, as it would have ended a request and not the process.
func (b *board) keep(now time.Time) (next time.Duration) {
	defer func() {
		if recover() != nil {
			next = pastSparest
		}
	}()
	json := b.frame(now)
	b.past.add(now, json)
	return min(max(pastEvery, time.Duration(len(json))*pastSpan/pastSize), pastSparest)
}

func (p *past) add(now time.Time, json []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.packed = nil
	p.frames = append(p.frames, pastFrame{now, json})
	size := 0
	for _, f := range p.frames {
		size += len(f.json)
	}
	old := 0
	for old < len(p.frames)-1 && (size > pastSize || now.Sub(p.frames[old].at) > pastSpan) {
		size -= len(p.frames[old].json)
		old++
	}
	p.frames = slices.Delete(p.frames, 0, old)
}

// list returns the frames as a JSON list, compressed.
func (p *past) list() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.packed == nil {
		var to bytes.Buffer
		z, _ := gzip.NewWriterLevel(&to, gzip.BestSpeed) // a level there is; a buffer takes all
		_, _ = z.Write([]byte{'['})
		for i, f := range p.frames {
			if i > 0 {
				_, _ = z.Write([]byte{','})
			}
			_, _ = z.Write(f.json)
		}
		_, _ = z.Write([]byte{']'})
		_ = z.Close()
		p.packed = to.Bytes()
	}
	return p.packed
}

// history answers with what was shown before. Whoever takes no gzip gets the frame of
// now alone.
func (b *board) history(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Add("Vary", "Accept-Encoding")
	body := append(append([]byte{'['}, b.frame(time.Now())...), ']')
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		body = b.past.list()
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // a reader that left needs no answer
	}
}
