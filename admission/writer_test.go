package admission_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/shed"
)

// The pieces of inner writers. Each records that it was reached.
type (
	base  struct{ *httptest.ResponseRecorder } // hides the recorder's Flush below
	plain struct{ b base }
	flush struct{ hit *string }
	hij   struct{ hit *string }
	from  struct{ hit *string }
	push  struct{ hit *string }
)

func (p plain) Header() http.Header         { return p.b.Header() }
func (p plain) Write(b []byte) (int, error) { return p.b.Write(b) }
func (p plain) WriteHeader(s int)           { p.b.WriteHeader(s) }
func (f flush) Flush()                      { *f.hit += "F" }
func (h hij) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	*h.hit += "H"
	return nil, nil, nil
}
func (f from) ReadFrom(io.Reader) (int64, error) {
	*f.hit += "R"
	return 0, nil
}
func (p push) Push(string, *http.PushOptions) error {
	*p.hit += "P"
	return nil
}

func innerWriters(hit *string) map[string]http.ResponseWriter {
	p := plain{base{httptest.NewRecorder()}}
	f, h, r, u := flush{hit}, hij{hit}, from{hit}, push{hit}
	return map[string]http.ResponseWriter{
		"": p,
		"F": struct {
			plain
			flush
		}{p, f},
		"H": struct {
			plain
			hij
		}{p, h},
		"R": struct {
			plain
			from
		}{p, r},
		"P": struct {
			plain
			push
		}{p, u},
		"FH": struct {
			plain
			flush
			hij
		}{p, f, h},
		"FR": struct {
			plain
			flush
			from
		}{p, f, r},
		"FP": struct {
			plain
			flush
			push
		}{p, f, u},
		"HR": struct {
			plain
			hij
			from
		}{p, h, r},
		"HP": struct {
			plain
			hij
			push
		}{p, h, u},
		"RP": struct {
			plain
			from
			push
		}{p, r, u},
		"FHR": struct {
			plain
			flush
			hij
			from
		}{p, f, h, r},
		"FHP": struct {
			plain
			flush
			hij
			push
		}{p, f, h, u},
		"FRP": struct {
			plain
			flush
			from
			push
		}{p, f, r, u},
		"HRP": struct {
			plain
			hij
			from
			push
		}{p, h, r, u},
		"FHRP": struct {
			plain
			flush
			hij
			from
			push
		}{p, f, h, r, u},
	}
}

// reach calls every optional interface that w has.
func reach(w http.ResponseWriter) {
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
	if h, ok := w.(http.Hijacker); ok {
		_, _, _ = h.Hijack()
	}
	if r, ok := w.(io.ReaderFrom); ok {
		_, _ = r.ReadFrom(nil)
	}
	if p, ok := w.(http.Pusher); ok {
		_ = p.Push("", nil)
	}
}

func TestHandlerSeesTheInnerWritersInterfacesAndNoOthers(t *testing.T) {
	var hit string
	writers := innerWriters(&hit)
	if len(writers) != 16 {
		t.Fatalf("%d combinations, want 16", len(writers))
	}
	g := admission.MustNew(admission.Options{})
	for want, inner := range writers {
		hit = ""
		h := g.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			reach(w)
			u, ok := w.(interface{ Unwrap() http.ResponseWriter })
			if !ok || !reflect.DeepEqual(u.Unwrap(), inner) {
				t.Errorf("%q: Unwrap does not lead to the inner writer", want)
			}
		}))
		h.ServeHTTP(inner, request("GET", "/"))
		if hit != want {
			t.Errorf("inner has %q, the handler reached %q", want, hit)
		}
	}
}

func TestOutcomesOffNeverWraps(t *testing.T) {
	g := admission.MustNew(admission.Options{HTTP: admission.HTTP{DisableResponseWrapping: true}})
	inner := httptest.NewRecorder()
	g.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if w != http.ResponseWriter(inner) {
			t.Errorf("the handler got a %T", w)
		}
	})).ServeHTTP(inner, request("GET", "/"))
}

func TestWriterIsNoContext(t *testing.T) {
	g := admission.MustNew(admission.Options{})
	get(g.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, ok := w.(interface{ Err() error }); ok {
			t.Error("the ResponseWriter shows the context's methods")
		}
	})))
}

// lazy reads as net/http does: the header waits for the first byte.
type lazy struct{ *httptest.ResponseRecorder }

func (w lazy) ReadFrom(src io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{w.ResponseRecorder}, src)
}

func TestSourceThatFailsBeforeItsFirstByteIsNoSuccess(t *testing.T) {
	for text, want := range map[string]shed.Outcome{"": shed.Failed, "some": shed.Served} {
		heard := &recorder{}
		g := admission.MustNew(admission.Options{Observer: heard})
		src := io.MultiReader(strings.NewReader(text), iotest.ErrReader(io.ErrUnexpectedEOF))
		g.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if _, err := io.Copy(w, src); err != nil {
				http.Error(w, "bad", http.StatusInternalServerError)
			}
		})).ServeHTTP(lazy{httptest.NewRecorder()}, request("GET", "/"))
		if got := heard.all()[0].Outcome; got != want {
			t.Errorf("after %q: outcome %v, want %v", text, got, want)
		}
	}
}
