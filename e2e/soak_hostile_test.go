package e2e

import (
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// hostile opens a connection and does one of the things that no honest client does. It
// does not wait for the end of it: some of them take long on purpose.
func (s *soak) hostile(clients *sync.WaitGroup) {
	attack := attacks[rand.IntN(len(attacks))]
	conn, err := net.DialTimeout("tcp", s.edge.addr, 5*time.Second)
	if err != nil {
		s.counts.unanswered("hostile dial", err)
		return
	}
	s.counts.add("hostile")
	clients.Go(func() {
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(4 * time.Second))
		attack(conn)
	})
}

// attacks are what is done with a connection. Errors are the edge's defence.
var attacks = []func(net.Conn){
	says(strings.Repeat("\x00\xff", 4096)),
	says("GET /hello HTTP/1.1\r\nHost: h\r\nX: "), // and no end of the head
	says("GET /hello HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("x", 80<<10) + "\r\n\r\n"),
	says("POST /upload HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\nhalf"),
	says("POST /upload HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
	says("POST /upload HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\nGET /hello HTTP/1.1\r\nHost: h\r\n\r\n"),
	says("GET /hello HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n"),
	says("CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n"),
	says("POST /upload HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n"),
	says(strings.Repeat("GET /hello HTTP/1.1\r\nHost: h\r\nX-Caller: hostile\r\n\r\n", 50)), // pipelined
	leaves("GET /events HTTP/1.1\r\nHost: h\r\n\r\n"),
	leaves("GET /ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"),
	opensAndResets,
}

// says sends text, and reads until the edge has had enough.
func says(text string) func(net.Conn) {
	return func(c net.Conn) {
		if _, err := io.WriteString(c, text); err == nil {
			io.Copy(io.Discard, c)
		}
	}
}

// leaves sends a request and resets the connection once the answer begins.
func leaves(request string) func(net.Conn) {
	return func(c net.Conn) {
		io.WriteString(c, request)
		c.Read(make([]byte, 1))
		c.(*net.TCPConn).SetLinger(0)
	}
}

// opensAndResets opens streams of HTTP/2 faster than any answer comes, and resets each.
func opensAndResets(c net.Conn) {
	io.WriteString(c, http2.ClientPreface)
	frames := http2.NewFramer(c, c)
	frames.WriteSettings()
	var block strings.Builder
	fields := hpack.NewEncoder(&block)
	for _, f := range [][2]string{{":method", "GET"}, {":scheme", "http"}, {":authority", "h"}, {":path", "/hello"}, {"x-caller", "hostile"}} {
		fields.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
	}
	for i := range uint32(100) {
		if frames.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*i + 1, BlockFragment: []byte(block.String()), EndHeaders: true, EndStream: true}) != nil {
			return
		}
		frames.WriteRSTStream(2*i+1, http2.ErrCodeCancel)
	}
	io.Copy(io.Discard, c)
}
