package pages

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/shed"
)

func TestDeclaredStreamsLeaveTheirSlots(t *testing.T) {
	gate := admission.MustNew(admission.Options{Pool: admission.Pool{Limit: shed.Fixed(1), MaxWait: admission.NoWait}})
	open, over := make(chan int, 1), make(chan struct{})
	stream := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.(http.Flusher).Flush()
		open <- gate.Stats().InFlight()
		<-over
	})
	mux := streams(gate, stream, stream, stream)
	server := httptest.NewServer(mux)
	defer server.Close()
	defer close(over)
	for _, path := range []string{"/events", "/ws", "/watch"} { // all at once, over one slot
		resp, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if held := <-open; resp.StatusCode != 200 || held != 0 {
			t.Errorf("%s: %d, with %d slots held", path, resp.StatusCode, held)
		}
	}
}

func TestAPatientHandlerEndsAStall(t *testing.T) {
	ended := make(chan error, 1)
	server := httptest.NewServer(patient(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		ended <- err
	}), 100*time.Millisecond))
	defer server.Close()
	body, never := io.Pipe()
	defer never.Close()
	go func() {
		if resp, err := http.Post(server.URL, "text/plain", body); err == nil {
			resp.Body.Close()
		}
	}()
	if err := <-ended; err == nil {
		t.Error("a body that never came was read")
	}
}
