package rig

import (
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Way is how a link carries what is sent.
type Way struct {
	Trip    time.Duration // both ways together
	Jitter  time.Duration // up to this much more, of the two ways together
	Late    float64       // this part of all answers
	By      time.Duration // comes so much later
	Swallow bool          // nothing arrives, and a connection that lost something is dead for good
}

// Link is a relay on loopback in front of a server.
type Link struct {
	Addr  string
	to    string
	way   atomic.Pointer[Way]
	mu    sync.Mutex
	pairs map[*pair]struct{}
}

// pair is one connection, and the one behind it.
type pair struct {
	near, far net.Conn
	dead      atomic.Bool
}

// Link opens one to an address.
func (r *Rig) Link(to string, w Way) (*Link, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &Link{Addr: ln.Addr().String(), to: to, pairs: map[*pair]struct{}{}}
	l.Set(w)
	r.later(func() {
		ln.Close()
		l.Cut()
	})
	go l.serve(ln)
	return l, nil
}

// Set changes the way for what is sent from now on.
func (l *Link) Set(w Way) { l.way.Store(&w) }

func (l *Link) serve(ln net.Listener) {
	for {
		near, err := ln.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", l.to)
		if err != nil {
			near.Close()
			continue
		}
		p := &pair{near: near, far: far}
		l.mu.Lock()
		l.pairs[p] = struct{}{}
		l.mu.Unlock()
		go l.carry(p, near, far, false)
		go l.carry(p, far, near, true)
	}
}

// Cut resets every connection there is.
func (l *Link) Cut() {
	for _, p := range l.all() {
		_ = p.near.(*net.TCPConn).SetLinger(0)
		p.near.Close()
		p.far.Close()
	}
}

// Lose leaves every connection there is open, and carries nothing on it any more. New
// ones are as good as before.
func (l *Link) Lose() {
	for _, p := range l.all() {
		p.dead.Store(true)
	}
}

func (l *Link) all() (list []*pair) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p := range l.pairs {
		list = append(list, p)
	}
	return list
}

type parcel struct {
	due  time.Time
	data []byte
}

// carry copies one direction with its delay, in order, until either end closes.
func (l *Link) carry(p *pair, from, to net.Conn, answers bool) {
	queue := make(chan parcel, 1024)
	go l.read(p, from, answers, queue)
	for x := range queue {
		time.Sleep(time.Until(x.due))
		if p.dead.Load() {
			continue
		}
		if _, err := to.Write(x.data); err != nil {
			break
		}
	}
	from.Close()
	to.Close()
	l.mu.Lock()
	delete(l.pairs, p)
	l.mu.Unlock()
	for range queue { // lets the reader end
	}
}

func (l *Link) read(p *pair, from net.Conn, answers bool, queue chan<- parcel) {
	defer close(queue)
	for {
		b := make([]byte, 16<<10)
		n, err := from.Read(b)
		if err != nil {
			return
		}
		w := l.way.Load()
		if w.Swallow {
			p.dead.Store(true)
		}
		if p.dead.Load() {
			continue
		}
		queue <- parcel{time.Now().Add(w.delay(answers)), b[:n]}
	}
}

func (w *Way) delay(answer bool) time.Duration {
	d := w.Trip / 2
	if w.Jitter > 0 {
		d += rand.N(w.Jitter) / 2
	}
	if answer && w.Late > 0 && rand.Float64() < w.Late {
		d += w.By
	}
	return d
}
