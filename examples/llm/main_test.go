package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// direct carries requests to a handler without sockets, so that time can be fake.
type direct struct{ http.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	read, write := io.Pipe()
	w := &streamWriter{header: http.Header{}, begun: make(chan int, 1), body: write}
	go func() {
		defer func() {
			_ = recover() // http.ErrAbortHandler, of a proxy whose client is gone
			w.WriteHeader(http.StatusOK)
			write.Close()
			cancel()
		}()
		d.ServeHTTP(w, r.Clone(ctx))
	}()
	select {
	case code := <-w.begun:
		return &http.Response{StatusCode: code, Header: w.header.Clone(), Body: body{read, cancel}, Request: r}, nil
	case <-r.Context().Done():
		read.Close()
		return nil, r.Context().Err()
	}
}

// body ends the request when it is closed, as a connection does.
type body struct {
	*io.PipeReader
	cancel context.CancelFunc
}

func (b body) Close() error {
	b.cancel()
	return b.PipeReader.Close()
}

type streamWriter struct {
	header http.Header
	begun  chan int
	wrote  bool
	body   io.Writer
}

func (w *streamWriter) Header() http.Header { return w.header }
func (w *streamWriter) Flush()              {}
func (w *streamWriter) WriteHeader(code int) {
	if !w.wrote {
		w.wrote = true
		w.begun <- code
	}
}
func (w *streamWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

// gateway is one before a model of its own, without sockets.
func gateway(limit func(http.Handler) http.Handler) *http.Client {
	return &http.Client{Transport: direct{newGateway(direct{newModel()}, "http://model", limit)}}
}

// Three minutes of the story's load: no budget is exceeded in any minute, those who ask
// for little are served at once, and a plain limit on requests manages neither.
func TestBudgetsAreKeptInEveryMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := play(gateway(unitsAndSlots), "http://gateway", 3*time.Minute)
		plain := play(gateway(requestsAlone), "http://gateway", 3*time.Minute)
		for _, c := range clients {
			if s := kept.of(c.key); s.worst > s.allowed || s.served == 0 {
				t.Errorf("%s: %d tokens in a minute that allows %d, %d served", c.key, s.worst, s.allowed, s.served)
			}
		}
		if s := kept.of("gold-acme"); s.limited > 0 || s.full*50 > s.served || s.median() > 50*time.Millisecond {
			t.Errorf("gold pays for the others: %d served, %d and %d refused, %v until the first token", s.served, s.limited, s.full, s.median())
		}
		if s := kept.of("free-bulk"); s.limited == 0 {
			t.Error("nothing was refused")
		}
		if s := plain.of("free-bulk"); s.worst <= s.allowed {
			t.Errorf("a plain limit kept the budget: %d of %d", s.worst, s.allowed)
		}
		if s := plain.of("gold-acme"); s.median() < time.Second {
			t.Errorf("behind a plain limit gold waits %v only", s.median())
		}
	})
}

// What a stream may take is reserved at the door; one that its client cuts pays for what
// was sent and gives the rest back.
func TestACutStreamPaysForWhatWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := gateway(unitsAndSlots)
		status := func(answer, leaves int) int {
			c := client{key: "free-x", answer: answer, prompt: "Hi", leaves: leaves}
			return c.call(t.Context(), to, "http://gateway", time.Now()).status
		}
		var all sync.WaitGroup
		for range width { // reserve 1,128 of 1,200
			all.Go(func() {
				if got := status(140, 100); got != http.StatusOK {
					t.Errorf("a stream within the budget: %d", got)
				}
			})
		}
		time.Sleep(10 * time.Millisecond)
		if got := status(200, 0); got != http.StatusTooManyRequests {
			t.Errorf("what is reserved is granted again: %d", got)
		}
		all.Wait() // 808 are taken, in a second in which 200 come back
		synctest.Wait()
		if got := status(700, 1); got != http.StatusTooManyRequests {
			t.Errorf("what was sent is not paid for: %d", got)
		}
		if got := status(500, 1); got != http.StatusOK {
			t.Errorf("what was not sent is kept: %d", got)
		}
	})
}

func TestAnAnswerPassesAsItComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asks := client{key: "gold-x", answer: 100, prompt: "Hi"}
		alone := asks.call(t.Context(), &http.Client{Transport: direct{newModel()}}, "http://model", time.Now())
		gated := asks.call(t.Context(), gateway(unitsAndSlots), "http://gateway", time.Now())
		if gated.first != alone.first || gated.tokens != alone.tokens {
			t.Errorf("first token after %v, %d in all; without the gateway %v and %d", gated.first, gated.tokens, alone.first, alone.tokens)
		}
	})
}

func TestWhatIsNoChatIsRefusedBeforeItCosts(t *testing.T) {
	h := newGateway(direct{newModel()}, "http://model", unitsAndSlots)
	for body, want := range map[string]int{
		"":                               http.StatusBadRequest,
		"[]":                             http.StatusBadRequest,
		`{"max_tokens":1e99}`:            http.StatusBadRequest,
		`{"max_tokens":10,"n":500}`:      http.StatusBadRequest, // 500 answers for the price of one
		`{"max_completion_tokens":1201}`: http.StatusTooManyRequests,
		`{"max_tokens":1,"max_completion_tokens":1201}`: http.StatusTooManyRequests,
		`{"max_tokens":99999999999999}`:                 http.StatusTooManyRequests, // counts as the longest answer there is
		strings.Repeat("x", longestBody+1):              http.StatusRequestEntityTooLarge,
		`{"max_tokens":-5,"messages":[]}`:               http.StatusTooManyRequests,
		`{"messages":[{"content":"unlabel"}]}`:          http.StatusTooManyRequests,
	} {
		r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer free-ann")
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != want {
			t.Errorf("%.40q: %d, want %d", body, w.Code, want)
		}
	}
}

// However a stream is cut into reads, it counts for the same, and no stream makes the
// meter keep much or count below nothing.
func FuzzUsage(f *testing.F) {
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"usage\":{\"total_tokens\":7}}\n\ndata: [DONE]\n\n"), 3)
	f.Add([]byte("data: {\"usage\":{\"total_tokens\":-7}}\r\n\r\ndata:{\"choices\":[{}]}\n"), 1)
	f.Add(bytes.Repeat([]byte("x"), longestLine+10), 1000)
	f.Add(append([]byte("data: {\"usage\":{\"total_tokens\":7}}"), append(bytes.Repeat([]byte(" "), longestLine), '\n')...), 100)
	f.Fuzz(func(t *testing.T, stream []byte, at int) {
		c := &chat{MaxTokens: 5}
		var whole, cut usage
		whole.write(stream)
		for at = max(at, 1); len(stream) > at; stream = stream[at:] {
			cut.write(stream[:at])
		}
		cut.write(stream)
		if whole.total(c) != cut.total(c) || whole.total(c) < 0 || whole.total(c) > longestBody+mostTokens+len(stream)+whole.pieces || cap(cut.line) > 2*longestLine {
			t.Errorf("whole %d, cut %d, keeps %d", whole.total(c), cut.total(c), cap(cut.line))
		}
	})
}
