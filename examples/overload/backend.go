package main

import (
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// database does 16 things at a time, each in about its mean time, and whatever it
// has begun it ends, whether or not anybody still waits for the answer.
type database struct {
	connections chan struct{}
	mean        atomic.Int64
	done        atomic.Int64 // pieces of work
	wasted      atomic.Int64 // of those, ended after their client had left
}

const width = 16

func newDatabase() *database {
	return &database{connections: make(chan struct{}, width)}
}

// write blocks until the database has done one piece of work for a client that
// waits until the deadline.
func (d *database) write(deadline time.Time) {
	d.connections <- struct{}{}
	const sigma = 0.3
	time.Sleep(time.Duration(float64(d.mean.Load()) * math.Exp(sigma*rand.NormFloat64()-sigma*sigma/2)))
	<-d.connections
	d.done.Add(1)
	if time.Now().After(deadline) {
		d.wasted.Add(1)
	}
}
