package edge

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"testing"
)

// The edge beside the plain proxy it is made of: one client, one request at a time,
// over loopback. Most of either is net/http.
func BenchmarkProxies(b *testing.B) {
	upstream := httptest.NewServer(says("hello"))
	defer upstream.Close()
	e, err := newEdge(source{upstream: upstream.URL}, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	defer e.close()
	c := e.settings
	plain := &httputil.ReverseProxy{
		Transport: c.Upstream.connections().Transport(),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(c.Upstream.parsed)
			r.Out.Host = r.In.Host
			r.SetXForwarded()
		},
	}
	for _, proxy := range []struct {
		name    string
		handler http.Handler
	}{{"plain", plain}, {"edge", e.handler}} {
		b.Run("proxy="+proxy.name, func(b *testing.B) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			server := e.server(context.Background(), c)
			server.Handler = proxy.handler
			go server.Serve(l)
			defer server.Close()
			b.ReportAllocs()
			for b.Loop() {
				resp, err := http.Get("http://" + l.Addr().String())
				if err != nil {
					b.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != 200 {
					b.Fatal(resp.StatusCode, err)
				}
				resp.Body.Close()
			}
		})
	}
}
