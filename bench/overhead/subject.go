package overhead

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"
)

// subject is one way to decide about a request: the kit, a part of it, another
// library, or what somebody would write by hand. All are asked through one
// function, so that nothing but the deciding differs.
type subject struct {
	name string
	does string // in words, for the page
	bare bool   // pieces without an answer to the client: no headers, no text
	// build makes it for the given terms. A bench it cannot take part in is left
	// out of benches.
	build   func(terms) (*instance, error)
	benches []string
	headers []string // that each of its answers carries, admitted or not
	status  int      // of its refusals where they are not the bench's
}

func (s *subject) takesPart(bench string) bool {
	for _, b := range s.benches {
		if b == bench {
			return true
		}
	}
	return false
}

// terms are the numbers a subject is to work under.
type terms struct {
	perSecond float64       // tokens of each key
	burst     int           // likewise; also what a window holds
	window    time.Duration // of those that count in windows
	slots     int
	full      bool // no slot is free
}

// instance is a subject at work.
type instance struct {
	ask   func(*sender) int // decides about one request: the status of its answer
	keys  func() int        // how many keys it remembers; nil: it does not say
	close func()            // nil: nothing to stop
}

func (in *instance) stop() {
	if in.close != nil {
		in.close()
	}
}

// sender is one goroutine's requests: always the same request, under changing
// keys, so that what is measured is the deciding and not a cold request.
type sender struct {
	key    string
	header []string // the request's, whose one value is the key
	r      *http.Request
	timed  *http.Request // the same with the client's deadline
	w      answer

	order []string // the keys, in the order they ask
	at    int
	batch [batchSize]string
}

// batchSize is how many requests are timed at once. Their keys are touched before:
// a key that was just read from a request is in the cache.
const batchSize = 256

const keyHeader = "X-Api-Key"

func newCaller(order []string, at int) *sender {
	r, err := http.NewRequest(http.MethodGet, "http://example.com/search", nil)
	if err != nil {
		panic(err) // the address is a constant
	}
	r.RemoteAddr = "192.0.2.1:1234"
	c := &sender{header: []string{""}, r: r, timed: r.Clone(r.Context()), order: order, at: at % len(order)}
	r.Header[keyHeader], c.timed.Header[keyHeader] = c.header, c.header
	c.timed.Header.Set("X-Timeout", "800")
	c.w.header = make(http.Header, 8)
	return c
}

func (c *sender) as(key string) { c.key, c.header[0] = key, key }

// fill takes the next keys and touches them.
func (c *sender) fill() (touched byte) {
	for i := range c.batch {
		c.batch[i] = c.order[c.at]
		touched ^= c.batch[i][len(c.batch[i])-1]
		if c.at++; c.at == len(c.order) {
			c.at = 0
		}
	}
	return touched
}

// answer is the cheapest ResponseWriter. Every request finds its header empty.
type answer struct {
	header http.Header
	status int
	bytes  int
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) Write(b []byte) (int, error) {
	a.bytes += len(b)
	return len(b), nil
}

func (a *answer) WriteHeader(status int) { a.status = status }

func (a *answer) reset() {
	a.status, a.bytes = 0, 0
	if len(a.header) > 0 {
		clear(a.header)
	}
}

// over asks a handler.
func over(h http.Handler) func(*sender) int {
	return func(c *sender) int {
		c.w.reset()
		h.ServeHTTP(&c.w, c.r)
		return c.w.status
	}
}

// served is the handler behind everything.
var served http.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusNoContent)
})

// keyNames returns n names in the order their state is made, and in the order they
// ask: at random, since traffic is not sorted, and what lies side by side in memory
// must not be asked side by side.
func keyNames(n int) (made, asking []string) {
	made = make([]string, n)
	for i := range made {
		made[i] = fmt.Sprintf("key-%07d", i)
	}
	asking = append(asking, made...)
	rand.New(rand.NewPCG(1, 2)).Shuffle(n, func(i, j int) { asking[i], asking[j] = asking[j], asking[i] })
	return made, asking
}
