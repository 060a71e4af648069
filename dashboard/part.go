package dashboard

import (
	"net/http"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/outbound/pacer"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
)

// Part is something the page shows, or a rule for who may see it.
type Part func(*board)

// gated is an *[admission.Gate].
type gated interface{ Stats() admission.Stats }

// Gate shows a gate, an *[admission.Gate]: how much is served and refused, its pools, its limits, who is
// over them, and the stores behind them. Gates of one name should not be shown on
// one page.
func Gate(g gated) Part { return func(b *board) { b.gates = append(b.gates, g) } }

// calling is an *[outbound.Transport] or an *[pacer.Pacer].
type calling interface{ Stats() pacer.Stats }

type namedTransport struct {
	name string
	calling
}

// Outbound shows the calls that the service makes through t, an [outbound.Transport]
// or its pacer.
func Outbound(name string, t calling) Part {
	return func(b *board) { b.transports = append(b.transports, namedTransport{name, t}) }
}

// work is a *queue.Queue of anything.
type work interface {
	// Waiting returns how much work waits, by level.
	Waiting() [priority.Count]int
	// Oldest returns how long, at now, the oldest has waited.
	Oldest(now time.Time) time.Duration
	// Dropped returns how much was accepted and not delivered.
	Dropped() uint64
}

type namedQueue struct {
	name string
	work
}

// Queue shows a work queue, a *queue.Queue of anything.
func Queue(name string, q work) Part {
	return func(b *board) { b.queues = append(b.queues, namedQueue{name, q}) }
}

// Store shows a shared limit that no gate on the page was given; those that one was
// given are shown with it.
func Store(s ratelimit.Stored) Part { return func(b *board) { b.stores = append(b.stores, s) } }

// Title names the page, as in "orders, eu-west". Empty: Headgate.
func Title(title string) Part {
	return func(b *board) {
		if title != "" {
			b.title = title
		}
	}
}

// publicRunbook is that of this project.
const publicRunbook = "https://github.com/headgate-go/headgate/blob/main/docs/runbook.md"

// Runbook says where the page's advice leads to: a copy of docs/runbook.md with the same
// headings, at an address of http or https. Empty: nowhere. Without this Part it is the
// page of this project. The text of the advice is in the binary in any case.
func Runbook(address string) Part { return func(b *board) { b.runbook = address } }

// InForce has the page show the numbers in force and where each comes from, as read says
// them: the text of a [policy.Document], say. It is read when somebody opens that part of
// the page, on the request's goroutine; what it returns beyond 256 KiB is cut off. Leave
// secrets out of it. Nil shows nothing.
//
// [policy.Document]: https://pkg.go.dev/github.com/headgate-go/headgate/policy#Document
func InForce(read func() string) Part { return func(b *board) { b.inForce = read } }

// Guard asks allow about every request for the page, its files and its data; those
// it says no to are answered with 403. It runs on the request's goroutine. The last
// Guard given counts; nil lets everybody look.
func Guard(allow func(*http.Request) bool) Part {
	return func(b *board) { b.guard = allow }
}
