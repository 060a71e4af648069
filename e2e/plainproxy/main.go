// Plainproxy is httputil.ReverseProxy and nothing else: what the edge is compared
// with. Its transport and its buffers are the edge's, so that the difference is the
// kit's.
package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"sync"
	"time"
)

type buffers struct{ sync.Pool }

func (b *buffers) Get() []byte {
	if p, ok := b.Pool.Get().(*[32 << 10]byte); ok {
		return p[:]
	}
	return make([]byte, 32<<10)
}

func (b *buffers) Put(p []byte) { b.Pool.Put((*[32 << 10]byte)(p)) }

func main() {
	upstream, err := url.Parse(os.Args[1])
	if err != nil {
		panic(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(upstream)
			r.Out.Host = r.In.Host
			r.SetXForwarded()
		},
		BufferPool: new(buffers),
		Transport: &http.Transport{
			MaxIdleConnsPerHost: 256, IdleConnTimeout: 90 * time.Second, DisableCompression: true,
			ResponseHeaderTimeout: time.Minute,
		},
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(os.Stderr, "msg=serving listen=%s\nmsg=admin listen=none\n", l.Addr())
	server := &http.Server{Handler: proxy, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 75 * time.Second}
	panic(server.Serve(l))
}
