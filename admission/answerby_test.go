package admission_test

import (
	"bytes"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/shed"
)

// A wait ends before the server's own timeouts make an answer impossible: the write
// timeout always, the read timeout where a body is still to be read. The work that is
// known to follow is part of it.
//
// Case GA-05: tried on the product
func TestWaitsEndBeforeTheServersTimeouts(t *testing.T) {
	const never = time.Hour
	for name, c := range map[string]struct {
		write, read time.Duration
		body        int
		service     time.Duration // of work before; 0: none is known
		frees       time.Duration // when the slot comes free
		want        int
	}{
		"read timeout, body":          {read: 500 * time.Millisecond, body: 100 << 10, frees: 800 * time.Millisecond, want: 503},
		"read timeout, body, in time": {read: 500 * time.Millisecond, body: 100 << 10, frees: 300 * time.Millisecond, want: 200},
		"read timeout, no body":       {read: 500 * time.Millisecond, frees: 800 * time.Millisecond, want: 200},
		"write timeout":               {write: time.Second, frees: never, want: 503},
		"write timeout, body":         {write: time.Second, body: 10, frees: 950 * time.Millisecond, want: 503},
		"both, the earlier counts":    {write: time.Second, read: 500 * time.Millisecond, body: 10, frees: 700 * time.Millisecond, want: 503},
		"both, no body":               {write: time.Second, read: 500 * time.Millisecond, frees: 700 * time.Millisecond, want: 200},
		"the work would be cut off":   {write: time.Second, service: 600 * time.Millisecond, frees: 500 * time.Millisecond, want: 503},
		"the work fits":               {write: time.Second, service: 300 * time.Millisecond, frees: 500 * time.Millisecond, want: 200},
		"no timeouts":                 {body: 10, frees: 20 * time.Second, want: 200},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := admission.MustNew(admission.Options{Pool: admission.Pool{Limit: shed.Fixed(1), MaxWait: time.Minute}})
				for i := 0; i < 50 && c.service > 0; i++ { // so much is known
					p, _ := g.Admit(t.Context(), admission.Ticket{})
					time.Sleep(c.service)
					p.Release(shed.Served)
				}
				ran := false
				w := newWire(t, g.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { ran = true })), func(s *http.Server) {
					s.WriteTimeout, s.ReadTimeout = c.write, c.read
				})
				held, _ := g.Admit(t.Context(), admission.Ticket{})
				free := time.AfterFunc(c.frees, func() { held.Release(shed.Ignored) })
				defer func() {
					if free.Stop() {
						held.Release(shed.Ignored)
					}
				}()
				start := time.Now()
				res, err := w.Post("http://service/", "text/plain", bytes.NewReader(make([]byte, c.body)))
				if err != nil {
					t.Fatalf("after %v: %v", time.Since(start), err)
				}
				defer res.Body.Close()
				if res.StatusCode != c.want || ran != (c.want == 200) {
					t.Errorf("%d, handler ran: %v; want %d", res.StatusCode, ran, c.want)
				}
				if c.want == 503 && res.Header.Get("Retry-After") == "" {
					t.Error("no Retry-After")
				}
				if most := c.write + c.read; c.want == 503 && time.Since(start) >= most {
					t.Errorf("answered after %v", time.Since(start))
				}
			})
		})
	}
}
