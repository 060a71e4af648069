package outbound_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/outbound/internal/oracle"
	"github.com/headgate-go/headgate/outbound/pacer"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

func TestASlotIsHeldUntilTheBodyIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := outbound.MustNew(outbound.Options{
			InFlight: shed.Fixed(1), MaxWait: 10 * time.Second,
			Base: tripper(func(r *http.Request) (*http.Response, error) { return answer(r, 200), nil }),
		})
		req, _ := http.NewRequest(http.MethodGet, "http://service.test/", nil)
		resp, err := rt.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		var waited time.Duration
		var wg sync.WaitGroup
		wg.Go(func() {
			start := time.Now()
			if _, _, err := get(t, t.Context(), rt); err != nil {
				t.Error(err)
			}
			waited = time.Since(start)
		})
		time.Sleep(time.Second)
		if o := operation(t, rt); o.InFlight != 1 {
			t.Errorf("%d in flight", o.InFlight)
		}
		if _, err := io.ReadAll(resp.Body); err != nil { // the end is enough; Close may come later
			t.Fatal(err)
		}
		wg.Wait()
		if waited != time.Second {
			t.Errorf("the second call waited %v", waited)
		}
		resp.Body.Close()
		if o, s := operation(t, rt), rt.Stats().Services[0]; o.InFlight != 0 || s.Slots.InFlight != 0 {
			t.Errorf("left in flight: %d, slots %d", o.InFlight, s.Slots.InFlight)
		}
	})
}

// A server that stalls fills the cap; calls that wait for a slot must not have paid
// already, or all of them leave at once when it comes back.
func TestAStallDoesNotTurnIntoABurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, burst = 20, 5
		var mu sync.Mutex
		var sent []time.Time
		stalled := make(chan struct{})
		rt := outbound.MustNew(outbound.Options{
			Rate: ratelimit.PerKey(limit, burst), InFlight: shed.Fixed(10),
			Base: tripper(func(r *http.Request) (*http.Response, error) {
				mu.Lock()
				sent = append(sent, time.Now())
				mu.Unlock()
				<-stalled
				return answer(r, 200), nil
			}),
		})
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if _, _, err := get(t, t.Context(), rt); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(20 * time.Second)
		close(stalled)
		wg.Wait()
		if excess := oracle.Worst(sent, limit, burst); excess > 1e-6 || len(sent) != 100 {
			t.Errorf("%d sent, a window exceeds its bound by %v", len(sent), excess)
		}
	})
}

func inFlight(rt *outbound.Transport) int { return rt.Stats().Services[0].Slots.InFlight }

func TestInFlightAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int32
		base := tripper(func(r *http.Request) (*http.Response, error) {
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(time.Second)
			now.Add(-1)
			if r.URL.Path == "/broken" {
				return nil, io.ErrUnexpectedEOF
			}
			return answer(r, 200), nil
		})
		f := outbound.MustNew(outbound.Options{
			Base: base, InFlight: shed.Fixed(3), MaxWait: 4 * time.Second, Retry: outbound.RetryOptions{Attempts: 1},
		})
		var wg sync.WaitGroup
		var refused atomic.Int32
		for i := range 40 {
			wg.Go(func() {
				path := "/"
				if i%4 == 0 {
					path = "/broken"
				}
				req, _ := http.NewRequest(http.MethodGet, "http://service.test"+path, nil)
				resp, err := f.RoundTrip(req)
				var r *pacer.Refusal
				switch {
				case errors.As(err, &r) && r.Reason == pacer.NoSlot:
					refused.Add(1)
				case err == nil:
					resp.Body.Close()
				case !errors.Is(err, io.ErrUnexpectedEOF):
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if most.Load() != 3 || refused.Load() == 0 || inFlight(f) != 0 {
			t.Errorf("%d at once, %d refused, %d left", most.Load(), refused.Load(), inFlight(f))
		}
	})
}

// twoWay is the body of an answer that switched protocols.
type twoWay struct {
	io.Reader
	written strings.Builder
	closed  bool
}

func (b *twoWay) Write(p []byte) (int, error) { return b.written.Write(p) }

func (b *twoWay) Close() error {
	b.closed = true
	return nil
}

func TestASwitchedConnectionStaysOneAndHoldsItsSlot(t *testing.T) {
	conn := &twoWay{Reader: strings.NewReader("")}
	rt := outbound.MustNew(outbound.Options{
		InFlight: shed.Fixed(1), AttemptTimeout: time.Minute,
		Base: tripper(func(r *http.Request) (*http.Response, error) {
			resp := answer(r, http.StatusSwitchingProtocols)
			resp.Body = conn
			return resp, nil
		}),
	})
	req, _ := http.NewRequest(http.MethodGet, "http://service.test/", nil)
	resp, err := rt.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	w, ok := resp.Body.(io.Writer)
	if !ok {
		t.Fatal("the body cannot be written to")
	}
	if _, err := io.WriteString(w, "hello"); err != nil || conn.written.String() != "hello" {
		t.Errorf("wrote %q, %v", conn.written.String(), err)
	}
	if n := inFlight(rt); n != 1 {
		t.Errorf("%d slots held", n)
	}
	resp.Body.Close()
	if n := inFlight(rt); n != 0 || !conn.closed {
		t.Errorf("%d slots held after Close, connection closed: %v", n, conn.closed)
	}
}

func TestALongErrorIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := 0
		s := 0
		rt := outbound.MustNew(outbound.Options{Base: tripper(func(r *http.Request) (*http.Response, error) {
			if s++; s > 1 {
				return answer(r, 200), nil
			}
			resp := answer(r, 500)
			resp.ContentLength = 1 << 30
			resp.Body = io.NopCloser(readerFunc(func(p []byte) (int, error) {
				read += len(p)
				return len(p), nil
			}))
			return resp, nil
		})})
		if status, _, err := get(t, t.Context(), rt); err != nil || status != 200 || read != 0 {
			t.Errorf("status %d, error %v, %d bytes read of a gigabyte", status, err, read)
		}
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
