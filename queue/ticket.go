package queue

import (
	"time"

	"github.com/headgate-go/headgate/priority"
)

// NoWait as a MaxWait means: go at once or be refused.
const NoWait = time.Duration(-1)

// Ticket is what a piece of work says about itself when it asks for a slot.
type Ticket struct {
	Level    priority.Level
	Tenant   string        // whose turn it uses; the empty name is a tenant like any other
	Deadline time.Time     // when its answer becomes worthless; zero: never
	MaxWait  time.Duration // longest stay in the queue; zero: the queue's own; NoWait: none; never longer than the queue's own
	Bytes    int64         // announced size of its body, counted only when the queue has a bound in bytes
}
