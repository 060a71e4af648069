// Package upstream is the edge's way to the server behind it: connections, what its
// answers mean for others, and what is sent again.
package upstream

import (
	"net"
	"net/http"
	"time"
)

// Connections says how the upstream is connected to.
type Connections struct {
	DialTimeout   time.Duration
	HeaderTimeout time.Duration // longest wait for the head of an answer; 0: none
	Idle          int           // kept open
	H2C           bool          // HTTP/2 without TLS
}

// Transport returns the http.Transport for c.
func (c Connections) Transport() *http.Transport {
	t := &http.Transport{
		DialContext:           (&net.Dialer{Timeout: c.DialTimeout}).DialContext,
		MaxIdleConnsPerHost:   c.Idle,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   5 * time.Second,
		ResponseHeaderTimeout: c.HeaderTimeout,
		ExpectContinueTimeout: time.Second,
		DisableCompression:    true, // answers pass as they are
		ForceAttemptHTTP2:     true,
	}
	if c.H2C {
		t.Protocols = new(http.Protocols)
		t.Protocols.SetUnencryptedHTTP2(true)
		t.Protocols.SetHTTP2(true)
	}
	return t
}

// ClientFault is the error of a request whose body could not be read: it says nothing
// about the upstream.
type ClientFault struct{ Err error }

// Error says what was wrong with the body.
func (e *ClientFault) Error() string { return "edge: request body: " + e.Err.Error() }

// Unwrap returns what was wrong.
func (e *ClientFault) Unwrap() error { return e.Err }
