package e2e

import (
	"bufio"
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Readers that vanish without a word, and one that stops reading, are dropped from
// real sockets too, whose buffers hide them from a write deadline for minutes.
func TestReadersThatVanishOrStallAreDropped(t *testing.T) {
	need(t)
	s := newShop(t, "", "Acme")
	before := served()
	for range 50 {
		conn, _ := follow(t, s)
		if err := conn.(*net.TCPConn).SetLinger(0); err != nil { // reset, not closed
			t.Fatal(err)
		}
		conn.Close()
	}
	stalled, _ := follow(t, s)
	defer stalled.Close()
	live, frames := follow(t, s)
	defer live.Close()
	for range 3 {
		began := time.Now()
		frame(t, frames)
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("a frame took %v beside a stalled reader", took)
		}
	}
	for end := time.Now().Add(15 * time.Second); served() > before; time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d connections are still served, %d were before", served(), before)
		}
	}
}

// served counts the goroutines that serve a connection of this process.
func served() int {
	stacks := make([]byte, 4<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "net/http.(*conn).serve(")
}

// follow opens a feed and reads its first frame.
func follow(t *testing.T, s *shop) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "GET /headgate/events HTTP/1.1\r\nHost: x\r\n\r\n")
	frames := bufio.NewReader(conn)
	frame(t, frames)
	return conn, frames
}

func frame(t *testing.T, frames *bufio.Reader) {
	t.Helper()
	for {
		line, err := frames.ReadString('\n')
		if err != nil {
			t.Fatalf("the feed ended: %v", err)
		}
		if strings.HasPrefix(line, "data: ") {
			return
		}
	}
}
