package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// certificate writes a certificate for 127.0.0.1 and returns its section of the
// edge's file, and who trusts it.
func certificate(t *testing.T, serial int64) (section, certFile, keyFile string, roots *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots = x509.NewCertPool()
	roots.AddCert(cert)
	return fmt.Sprintf("tls: {cert: %s, key: %s}\n", certFile, keyFile), certFile, keyFile, roots
}

func http2Client(t *testing.T, roots *x509.CertPool) *http.Client {
	t.Helper()
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func TestManyStreamsOnOneConnectionAreEachDecided(t *testing.T) {
	need(t)
	section, _, _, roots := certificate(t, 1)
	e := startEdge(t, newBackend(t).URL, section+"gate:\n  capacity: {limit: {fixed: 10}, max_wait: none}\n")
	client := http2Client(t, roots)
	var ok, refused, other atomic.Int64
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			resp, err := client.Get(e.base + "/slow?ms=1000")
			if err != nil {
				other.Add(1)
				return
			}
			defer resp.Body.Close()
			switch {
			case resp.StatusCode == 200 && resp.ProtoMajor == 2:
				ok.Add(1)
			case resp.StatusCode == 503 && resp.Header.Get("Retry-After") != "":
				refused.Add(1)
			default:
				other.Add(1)
			}
		})
	}
	all.Wait()
	if ok.Load() < 10 || ok.Load()+refused.Load() != 200 {
		t.Errorf("%d served, %d refused, %d neither: want all answered, 10 or more served", ok.Load(), refused.Load(), other.Load())
	}
	e.atRest()
}

// Streams opened and reset as fast as they can be (CVE-2023-44487) each cost their
// token, so that they reach nothing that is dear; they leave nothing behind, and
// everybody else is served meanwhile.
func TestRapidResetCostsTokensAndLeavesNothingBehind(t *testing.T) {
	need(t)
	b := newBackend(t)
	e := startEdge(t, b.URL, `
http2: {cleartext: true, max_streams: 100}
gate:
  callers: [{api_key: {header: X-API-Key, keys: [{key: mine}]}}]
  limits:
    rate: {rate: 1000/s, burst: 1000}
    anonymous: {rate: 50/s, burst: 50}
  capacity: {limit: {fixed: 60}}
`)
	before := e.metric("go_goroutines")
	var attackers sync.WaitGroup
	var opened atomic.Int64
	for range 2 {
		attackers.Go(func() {
			for range 20 {
				opened.Add(resetRapidly(e.addr, 500))
			}
		})
	}
	over := make(chan struct{})
	go func() { attackers.Wait(); close(over) }()
	for attacked := true; attacked; {
		select {
		case <-over:
			attacked = false
		default:
		}
		if got := request(e.base+"/hello", "X-API-Key", "mine"); got.err != nil || got.status != 200 {
			t.Errorf("somebody else: %+v", got)
		}
	}
	if opened.Load() < 1000 {
		t.Errorf("%d streams opened: no attack", opened.Load())
	}
	e.atRest()
	if reached := e.metric("headgate_requests_total", `reason="admitted"`); reached > 1000 {
		t.Errorf("%v of %d streams were admitted, at 50 a second", reached, opened.Load())
	}
	within(t, 10*time.Second, "goroutines at base, but for idle connections", func() bool {
		return e.metric("go_goroutines") <= before+150
	})
}

// resetRapidly opens a connection, and on it n streams that it resets at once, and
// returns once the server has seen them or has had enough. It returns how many it
// opened.
func resetRapidly(addr string, n int) (opened int64) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return 0
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		return 0
	}
	framer := http2.NewFramer(c, c)
	if framer.WriteSettings() != nil {
		return 0
	}
	caughtUp := make(chan struct{})
	go func() {
		defer close(caughtUp)
		for {
			f, err := framer.ReadFrame()
			if ping, ok := f.(*http2.PingFrame); err != nil || ok && ping.IsAck() {
				return
			}
		}
	}()
	for i := range n {
		id := uint32(2*i + 1)
		err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: head(addr), EndStream: true, EndHeaders: true})
		if err != nil || framer.WriteRSTStream(id, http2.ErrCodeCancel) != nil {
			return opened
		}
		opened++
	}
	if framer.WritePing(false, [8]byte{}) == nil {
		<-caughtUp
	}
	return opened
}

func head(addr string) []byte {
	var block writer
	enc := hpack.NewEncoder(&block)
	for _, f := range [][2]string{{":method", "GET"}, {":scheme", "http"}, {":authority", addr}, {":path", "/slow?ms=5000"}} {
		enc.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
	}
	return block
}

type writer []byte

func (w *writer) Write(p []byte) (int, error) { *w = append(*w, p...); return len(p), nil }

// An idle stream lives, though each of its writes is bounded.
func TestAnHTTP2StreamOutlivesTheStallTimeout(t *testing.T) {
	need(t)
	section, _, _, roots := certificate(t, 1)
	e := startEdge(t, newBackend(t).URL, section+"stall_timeout: 500ms\ngate:\n  routes:\n    GET /events: {stream: 5}\n")
	resp, err := http2Client(t, roots).Get(e.base + "/events?n=3&ms=1200")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.ReadAll(resp.Body); err != nil || resp.ProtoMajor != 2 {
		t.Errorf("HTTP/%d: %v", resp.ProtoMajor, err)
	}
}

func TestAnHTTP2ReaderThatStallsIsCut(t *testing.T) {
	need(t)
	section, _, _, roots := certificate(t, 1)
	e := startEdge(t, newBackend(t).URL, section+"stall_timeout: 500ms\n")
	resp, err := http2Client(t, roots).Get(e.base + "/large?pieces=10000")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	e.atRest() // without a byte read
}

func TestSIGHUPReadsTheCertificateAgain(t *testing.T) {
	need(t)
	section, certFile, keyFile, _ := certificate(t, 1)
	e := startEdge(t, newBackend(t).URL, section)
	_, newCert, newKey, _ := certificate(t, 2)
	for from, to := range map[string]string{newCert: certFile, newKey: keyFile} {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	e.signal(syscall.SIGHUP)
	e.said("(reloaded)")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(ctx, "tcp", e.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if serial := conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.Int64(); serial != 2 {
		t.Errorf("certificate %d is served, want the new one", serial)
	}
}
