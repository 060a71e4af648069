package e2e

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// asks sends one request of HTTP/2 made of the given fields as they are, and returns the
// status, or "reset".
func asks(t *testing.T, addr string, fields ...[2]string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(10 * time.Second))
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	for _, f := range fields {
		enc.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
	}
	io.WriteString(c, http2.ClientPreface)
	framer := http2.NewFramer(c, c)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	framer.WriteSettings()
	framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true})
	for {
		f, err := framer.ReadFrame()
		if err != nil {
			return "reset"
		}
		switch f := f.(type) {
		case *http2.MetaHeadersFrame:
			return f.PseudoValue("status")
		case *http2.RSTStreamFrame, *http2.GoAwayFrame:
			return "reset"
		}
	}
}

// What HTTP/2 names a request by is no way past a rule.
func TestNoPseudoFieldGetsPastARule(t *testing.T) {
	need(t)
	heard := make(chan *http.Request, 100)
	upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { heard <- r }))
	t.Cleanup(upstream.Close)
	const file = "http2: {cleartext: true}\ngate:\n  routes:\n    shop.test/export: {rate: {rate: 1/h, burst: 1}}\n"
	type fields = [][2]string
	plain := fields{{":method", "GET"}, {":scheme", "http"}, {":authority", "shop.test"}, {":path", "/export"}}
	for name, c := range map[string]struct {
		fields fields
		want   string
	}{
		"again":                     {plain, "429"},
		"a host for the authority":  {fields{{":method", "GET"}, {":scheme", "http"}, {":path", "/export"}, {"host", "shop.test"}}, "429"},
		"another host beside it":    {append(plain[:4:4], [2]string{"host", "other.test"}), "429 400 reset"},
		"capitals and a port":       {fields{{":method", "GET"}, {":scheme", "http"}, {":authority", "SHOP.test:80"}, {":path", "/export"}}, "429"},
		"the path of a URL":         {fields{{":method", "GET"}, {":scheme", "http"}, {":authority", "shop.test"}, {":path", "http://shop.test/export"}}, "429 400 reset"},
		"a URL within one":          {fields{{":method", "GET"}, {":scheme", "http"}, {":authority", "shop.test"}, {":path", "x:http://shop.test/export"}}, "400 reset"},
		"two slashes":               {fields{{":method", "GET"}, {":scheme", "http"}, {":authority", "shop.test"}, {":path", "//other.test/export"}}, "429"},
		"no slash":                  {fields{{":method", "GET"}, {":scheme", "http"}, {":authority", "shop.test"}, {":path", "export"}}, "400 reset"},
		"another scheme":            {fields{{":method", "GET"}, {":scheme", "ftp"}, {":authority", "shop.test"}, {":path", "/export"}}, "429 400 reset"},
		"a method in small letters": {fields{{":method", "get"}, {":scheme", "http"}, {":authority", "shop.test"}, {":path", "/export"}}, "429"},
		"two paths":                 {append(plain[:4:4], [2]string{":path", "/"}), "400 reset"},
		"a path at the end":         {append(fields{{":method", "GET"}, {":scheme", "http"}, {":path", "/"}, {":authority", "shop.test"}, {"x", "y"}}, [2]string{":path", "/export"}), "400 reset"},
		"a tunnel":                  {fields{{":method", "CONNECT"}, {":authority", "shop.test:80"}}, "405 400 reset"},
		"a tunnel for a protocol":   {fields{{":method", "CONNECT"}, {":protocol", "websocket"}, {":scheme", "http"}, {":authority", "shop.test"}, {":path", "/export"}}, "405 429 400 reset"},
		"an upgrade":                {append(plain[:4:4], [2]string{"upgrade", "h2c"}, [2]string{"connection", "upgrade"}), "429 400 reset"},
		"a body's end in a field":   {append(plain[:4:4], [2]string{"transfer-encoding", "chunked"}), "429 400 reset"},
	} {
		t.Run(name, func(t *testing.T) {
			e := startEdge(t, upstream.URL, file)
			if got := asks(t, e.addr, plain...); got != "200" {
				t.Fatalf("the first: %s", got)
			}
			if r := <-heard; r.Host != "shop.test" || r.URL.Path != "/export" {
				t.Fatalf("the upstream was asked for %s%s", r.Host, r.URL.Path)
			}
			if got := asks(t, e.addr, c.fields...); !strings.Contains(c.want, got) {
				t.Errorf("%s, want %s", got, c.want)
			}
			select {
			case r := <-heard:
				t.Errorf("the upstream was asked for %s %s%s", r.Method, r.Host, r.URL)
			default:
			}
		})
	}
}
