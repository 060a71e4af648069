package account

import (
	"crypto/rand"
	"sync"
	"sync/atomic"
	"time"
)

// Peers knows how many processes share the ceiling. The count is the highest of
// the last few beats: a store that lost its data must not make each process believe
// to be alone.
type Peers struct {
	ID   string
	mu   sync.Mutex
	seen [beatsKept]int
	n    atomic.Int32
	sent int // beats
}

const (
	beatEvery = 2 * time.Second
	beatFirst = 250 * time.Millisecond // processes started together find each other sooner
	// BeatLife is how long a process counts after its last beat.
	BeatLife  = 6 * time.Second
	beatsKept = 4
)

// NewPeers returns a Peers with a name of its own.
func NewPeers() Peers { return Peers{ID: rand.Text()} }

// Count returns the number of processes, this one included; 0 means not known yet.
func (p *Peers) Count() int { return int(p.n.Load()) }

// Heard takes in the count that the store answered to a beat.
func (p *Peers) Heard(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	copy(p.seen[1:], p.seen[:])
	p.seen[0] = n
	top := 0
	for _, m := range p.seen {
		top = max(top, m)
	}
	p.n.Store(int32(min(top, 1<<30)))
}

// Next is how long until the next beat.
func (p *Peers) Next() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sent++; p.sent < beatsKept {
		return beatFirst
	}
	return beatEvery
}
