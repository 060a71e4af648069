package main

import (
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/dashboard"
)

// page is the live page, on an address of its own. It shows the gate of the run that
// has one.
type page struct {
	gate atomic.Pointer[admission.Gate]
}

func (p *page) show(g *admission.Gate) { p.gate.Store(g) }

// Stats are those of the gate being shown, or of one that has seen nothing.
func (p *page) Stats() admission.Stats {
	if g := p.gate.Load(); g != nil {
		return g.Stats()
	}
	return admission.Stats{Name: "default"}
}

// serve runs the page until the program ends, and returns where.
func (p *page) serve(addr string) (url string, err error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return "", err
	}
	mux := http.NewServeMux()
	mux.Handle("/headgate/", dashboard.Handler(dashboard.Title("Overload: writes take 90 ms"), dashboard.Gate(p)))
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.Serve(l) }()
	return "http://" + l.Addr().String() + "/headgate/", nil
}
