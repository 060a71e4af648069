package recipes

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/shed"
)

// serve runs the server on a pipe that a bubble can wait on, and returns a client.
func serve(t *testing.T, s *http.Server) *http.Client {
	t.Helper()
	l := pipes{make(chan net.Conn), make(chan struct{})}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	tr := &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		select {
		case l.conns <- theirs:
			return ours, nil
		case <-l.closed:
			return nil, net.ErrClosed
		}
	}}
	return &http.Client{Transport: tr}
}

// pipes is a listener of pipes.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error {
	select {
	case <-p.closed:
	default:
		close(p.closed)
	}
	return nil
}

func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// A client that waits is answered before the server's write timeout would cut it.
func TestAWaitEndsBeforeTheServersTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := admission.MustNew(admission.Options{Pool: admission.Pool{Limit: shed.Fixed(1), MaxWait: time.Hour}})
		held, err := gate.Admit(t.Context(), admission.Ticket{})
		if err != nil {
			t.Fatal(err)
		}
		defer held.Release(shed.Served)
		client := serve(t, Server("", gate.Handler(http.NotFoundHandler())))
		start := time.Now()
		resp, err := client.Get("http://pipe/")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if waited := time.Since(start); resp.StatusCode != 503 || waited < 20*time.Second || waited > 30*time.Second {
			t.Errorf("%d after %v: want 503 shortly before 30 s", resp.StatusCode, waited)
		}
	})
}

func TestAClientThatDribblesItsHeadIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := Server("", http.NotFoundHandler())
		l := pipes{make(chan net.Conn), make(chan struct{})}
		go server.Serve(l)
		defer server.Close()
		ours, theirs := net.Pipe()
		defer ours.Close()
		l.conns <- theirs
		start := time.Now()
		io.WriteString(ours, "GET / HTTP/1.1\r\n")
		io.Copy(io.Discard, ours)
		if took := time.Since(start); took > 6*time.Second {
			t.Errorf("cut after %v", took)
		}
	})
}

func TestLeaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := admission.MustNew(admission.Options{})
		var probes Probes
		mux := http.NewServeMux()
		probes.Register(mux)
		work := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(8 * time.Second) })
		mux.Handle("/work", gate.Handler(work))
		mux.Handle("/quick", gate.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
		server := Server("", mux)
		client := serve(t, server)
		status := func(path string) int {
			resp, err := client.Get("http://pipe" + path)
			if err != nil {
				t.Errorf("%s: %v", path, err)
				return 0
			}
			resp.Body.Close()
			return resp.StatusCode
		}
		if status("/readyz") != 200 || status("/livez") != 200 {
			t.Error("not ready at the start")
		}
		running, left := make(chan int, 1), make(chan error, 1)
		go func() { running <- status("/work") }()
		go func() { left <- probes.Leave(gate, server, 5*time.Second, 20*time.Second) }()
		time.Sleep(time.Second)
		if ready, alive, quick := status("/readyz"), status("/livez"), status("/quick"); ready != 503 || alive != 200 || quick != 200 {
			t.Errorf("within the notice: ready %d, alive %d, work %d", ready, alive, quick)
		}
		time.Sleep(5 * time.Second)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("GET", "/quick", nil))
		if w.Code != 503 || w.Header().Get("Connection") != "close" {
			t.Errorf("after the notice: %d %v", w.Code, w.Header())
		}
		if got := <-running; got != 200 {
			t.Errorf("what ran: %d", got)
		}
		if err := <-left; err != nil {
			t.Error(err)
		}
	})
}
