package admission_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/priority"
)

// wrapped shows what it wraps by Unwrap only, as much middleware does.
type wrapped struct{ http.ResponseWriter }

func (w wrapped) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// A stream leaves its slot however deep its Flusher or its Hijacker is.
func TestAStreamLeavesItsSlotBehindOtherMiddleware(t *testing.T) {
	for name, start := range map[string]func(*http.ResponseController) error{
		"flushed": (*http.ResponseController).Flush,
		"hijacked": func(c *http.ResponseController) error {
			conn, _, err := c.Hijack()
			if err == nil {
				conn.Close()
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := capped(1)
			started := make(chan int, 1)
			inner := g.At(priority.Normal, admission.Stream(1))(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if _, shows := w.(http.Flusher); shows {
					t.Error("the writer shows more than the one outside")
				}
				if err := start(http.NewResponseController(w)); err != nil {
					t.Error(err)
				}
				started <- g.Stats().InFlight()
			}))
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				inner.ServeHTTP(wrapped{wrapped{w}}, r)
			}))
			defer server.Close()
			if resp, err := http.Get(server.URL); err == nil {
				resp.Body.Close()
			}
			if held := <-started; held != 0 {
				t.Errorf("%d slots held by an open stream", held)
			}
			atRest(t, g)
		})
	}
}

// Where there is nothing to find, the answer is the same as without the gate.
func TestWhatAWriterCannotDoItCannotDoBehindTheGate(t *testing.T) {
	type bare struct{ http.ResponseWriter }
	g := capped(1)
	h := g.At(priority.Normal)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c := http.NewResponseController(w)
		_, _, err := c.Hijack()
		for what, err := range map[string]error{"flush": c.Flush(), "hijack": err, "deadline": c.SetWriteDeadline(time.Now())} {
			if !errors.Is(err, http.ErrNotSupported) {
				t.Errorf("%s: %v", what, err)
			}
		}
	}))
	h.ServeHTTP(bare{httptest.NewRecorder()}, request("GET", "/"))
}
