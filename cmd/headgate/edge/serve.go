package edge

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/headgate-go/headgate/admission"
)

// serve listens, follows the configuration, and drains when ctx has ended.
func (e *edge) serve(ctx context.Context, hup <-chan os.Signal) error {
	c := e.settings
	life, end := context.WithCancel(context.WithoutCancel(ctx)) // of every request
	defer end()
	servers, failures, err := e.listen(life, c)
	if err != nil {
		return err
	}
	following, unfollow := context.WithCancel(ctx)
	defer unfollow()
	go e.follow(following, hup)
	select {
	case err := <-failures:
		return err
	case <-ctx.Done():
	}
	e.drain(c, servers[0])
	end() // streams and whatever else is left
	for _, s := range servers {
		s.Close()
	}
	return nil
}

// listen starts the server for clients, and that of the admin pages.
func (e *edge) listen(life context.Context, c *settings) ([]*http.Server, <-chan error, error) {
	clients, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return nil, nil, err
	}
	servers, failures := []*http.Server{e.server(life, c)}, make(chan error, 2)
	if c.Admin != "" {
		pages, err := net.Listen("tcp", c.Admin)
		if err != nil {
			clients.Close()
			return nil, nil, err
		}
		admin := &http.Server{
			Handler: e.admin(), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute,
			ErrorLog: slog.NewLogLogger(e.often.Handler("admin"), slog.LevelWarn),
		}
		servers = append(servers, admin)
		go func() { failures <- admin.Serve(pages) }()
		e.log.Info("admin", "listen", "http://"+pages.Addr().String())
	}
	go func() { failures <- e.serveOn(servers[0], clients) }()
	e.log.Info("serving", "listen", clients.Addr().String(), "upstream", c.Upstream.parsed.Redacted(), "tls", c.TLS.Cert != "")
	return servers, failures, nil
}

// server is the one for clients. Its write timeout counts until the handler's
// first write, which has the guard's; it bounds refusals, and the gate keeps waits
// below it.
func (e *edge) server(life context.Context, c *settings) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(c.HTTP2.Cleartext)
	return &http.Server{
		Handler:           e.handler,
		ReadHeaderTimeout: time.Duration(c.Header),
		WriteTimeout:      c.stall(),
		IdleTimeout:       time.Duration(c.Idle),
		MaxHeaderBytes:    64 << 10,
		Protocols:         protocols,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: int(c.HTTP2.MaxStreams), WriteByteTimeout: c.stall()},
		TLSConfig: &tls.Config{
			MinVersion:     tls.VersionTLS12,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return e.cert.Load(), nil },
		},
		ErrorLog:    slog.NewLogLogger(e.often.Handler("server"), slog.LevelWarn),
		BaseContext: func(net.Listener) context.Context { return life },
	}
}

func (e *edge) serveOn(s *http.Server, l net.Listener) error {
	if e.cert.Load() != nil {
		return s.ServeTLS(l, "", "")
	}
	return s.Serve(l)
}

// drain leaves without a lost request: not ready and still serving while load
// balancers look elsewhere, then no newcomers, then the end of what runs. What is
// left after that is said, and cut.
func (e *edge) drain(c *settings, server *http.Server) {
	e.leaving.Store(true)
	e.log.Info("leaving", "notice", time.Duration(c.Drain.Notice), "grace", time.Duration(c.Drain.Grace))
	time.Sleep(time.Duration(c.Drain.Notice))
	grace, cancel := context.WithTimeout(context.Background(), time.Duration(c.Drain.Grace))
	defer cancel()
	var left admission.DrainError
	if err := (*admission.DrainError)(nil); errors.As(e.gate.Drain(grace), &err) {
		left = *err
	}
	// What was answered last has at least a moment to be sent.
	at, _ := grace.Deadline()
	last, cancel := context.WithTimeout(context.Background(), max(time.Second, time.Until(at)))
	defer cancel()
	err := server.Shutdown(last)
	e.log.Info("left", "running", left.Running, "streams", left.Streams, "connections_cut", err != nil)
}
