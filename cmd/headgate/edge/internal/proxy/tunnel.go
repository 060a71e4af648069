package proxy

import (
	"io"
	"net/http"
)

// tunnel is the upstream's side of a connection that has switched protocols. It
// copies by a small buffer: sockets are many and idle, and two buffers of the usual
// 32 KB for each of them are the larger part of what it costs.
type tunnel struct{ io.ReadWriteCloser }

const tunnelBuffer = 4 << 10

// narrow makes a tunnel of a 101's body, where it is one.
func narrow(resp *http.Response) {
	if conn, ok := resp.Body.(io.ReadWriteCloser); ok && resp.StatusCode == http.StatusSwitchingProtocols {
		resp.Body = tunnel{conn}
	}
}

// WriteTo is what io.Copy asks for first.
func (t tunnel) WriteTo(w io.Writer) (int64, error) {
	return io.CopyBuffer(onlyWriter{w}, onlyReader{t.ReadWriteCloser}, make([]byte, tunnelBuffer))
}

// ReadFrom is what io.Copy asks for next.
func (t tunnel) ReadFrom(r io.Reader) (int64, error) {
	return io.CopyBuffer(onlyWriter{t.ReadWriteCloser}, onlyReader{r}, make([]byte, tunnelBuffer))
}

// These hide what would make io.CopyBuffer look for a buffer of its own.
type (
	onlyReader struct{ io.Reader }
	onlyWriter struct{ io.Writer }
)
