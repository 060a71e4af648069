package grpcgate

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// call is one call as HTTP/2 carries it, in one allocation. It is not used again: an
// identify function may keep what it was given.
type call struct {
	r    http.Request
	path url.URL
}

// request is the call of a method as the gate reads it.
func (s *Server) request(ctx context.Context, method string) *http.Request {
	c := new(call)
	c.path.Path = method
	r := &http.Request{
		Method: http.MethodPost, URL: &c.path, Body: http.NoBody,
		Proto: "HTTP/2.0", ProtoMajor: 2, ContentLength: -1, RequestURI: method,
	}
	r.Header, r.Host = s.headers(ctx)
	if p, ok := peer.FromContext(ctx); ok {
		r.RemoteAddr = addressOf(p.Addr)
		if info, ok := p.AuthInfo.(credentials.TLSInfo); ok {
			state := info.State // its address alone would put info on the heap, for every call
			r.TLS = &state
		}
	}
	c.r = *r.WithContext(ctx) // inlined: the copy lives in the call
	return &c.r
}

// addressOf writes an address as String does, in one allocation for that of TCP.
func addressOf(a net.Addr) string {
	tcp, ok := a.(*net.TCPAddr)
	switch {
	case ok && tcp != nil:
		var buf [64]byte
		if ip := tcp.AddrPort(); ip.IsValid() {
			return string(netip.AddrPortFrom(ip.Addr().Unmap(), ip.Port()).AppendTo(buf[:0]))
		}
		return tcp.String()
	case a == nil:
		return ""
	}
	return a.String()
}

// key is a name in the metadata, and the same as a header.
type key struct{ metadata, header string }

const authorityKey = ":authority"

// headers are the metadata that the gate may read, and the host that was asked.
func (s *Server) headers(ctx context.Context) (h http.Header, host string) {
	if s.all {
		return allHeaders(ctx)
	}
	if len(s.keys) > 0 {
		h = make(http.Header, len(s.keys))
	}
	for _, k := range s.keys {
		if values := metadata.ValueFromIncomingContext(ctx, k.metadata); len(values) > 0 {
			h[k.header] = values
		}
	}
	return h, first(metadata.ValueFromIncomingContext(ctx, authorityKey))
}

// allHeaders leaves out what HTTP/2 itself needs, and bytes that are no text. The copy
// that it is given becomes the header.
func allHeaders(ctx context.Context) (h http.Header, host string) {
	md, _ := metadata.FromIncomingContext(ctx)
	host = first(md[authorityKey])
	for name, values := range md {
		header := http.CanonicalHeaderKey(name)
		switch {
		case strings.HasPrefix(name, ":"), strings.HasSuffix(name, "-bin"):
			delete(md, name)
		case header != name: // what the loop has written itself may come by again
			delete(md, name)
			md[header] = values
		}
	}
	return http.Header(md), host
}
