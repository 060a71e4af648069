package redistest

import (
	"net"
	"testing"
	"time"
)

// SlowLink returns an address on loopback that leads to addr: what is sent through it
// takes half of trip each way. It ends with the test.
func SlowLink(t testing.TB, addr string, trip time.Duration) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", addr)
			if err != nil {
				near.Close()
				continue
			}
			go carry(near, far, trip/2)
			go carry(far, near, trip/2)
		}
	}()
	return l.Addr().String()
}

type parcel struct {
	due  time.Time
	data []byte
}

// carry copies with a delay, in order, and closes both ends when one does.
func carry(to, from net.Conn, delay time.Duration) {
	way := make(chan parcel, 1024)
	go func() {
		defer close(way)
		for {
			b := make([]byte, 16<<10)
			n, err := from.Read(b)
			if err != nil {
				return
			}
			way <- parcel{time.Now().Add(delay), b[:n]}
		}
	}()
	for p := range way {
		time.Sleep(time.Until(p.due))
		if _, err := to.Write(p.data); err != nil {
			break
		}
	}
	to.Close()
	from.Close()
	for range way {
	}
}
