package admission_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"

	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// arriving is a GET from the given peer.
func arriving(peer string, headers ...string) *http.Request {
	r := request("GET", "/", headers...)
	r.RemoteAddr = peer
	return r
}

// mustCount sends the requests one after the other and checks how they end.
func mustCount(t *testing.T, h http.Handler, ok, limited int, requests ...*http.Request) {
	t.Helper()
	got := map[int]int{}
	for _, r := range requests {
		got[do(h, r).Code]++
	}
	if got[200] != ok || got[429] != limited || len(requests) != ok+limited {
		t.Errorf("answers %v to %d requests, want %d × 200 and %d × 429", got, len(requests), ok, limited)
	}
}

// mustTrack checks how many keys one of the gate's limits has.
func mustTrack(t *testing.T, g *admission.Gate, limit string, want int) {
	t.Helper()
	for _, l := range g.Stats().Limits {
		if l.Name == limit {
			if l.Keys != want {
				t.Errorf("limit %s tracks %d keys, want %d", limit, l.Keys, want)
			}
			return
		}
	}
	t.Errorf("no limit %q in the stats", limit)
}

func fivePerMinute() ratelimit.Limiter { return ratelimit.PerKey(rate.Limit(5.0/60), 5) }

// tenNet is behind the service's own proxies in 10.0.0.0/8.
var tenNet = caller.ClientIP{Trusted: []string{"10.0.0.0/8"}}

// With no trusted proxy, one peer is one caller, whatever forwarding headers it sends.
//
// Case ID-01: from reports about client addresses and keys in other limiters
func TestForwardingHeadersOfStrangersCountForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.MustNew(admission.Options{Rate: fivePerMinute()})
		var all []*http.Request
		for i := range 100 {
			claim := fmt.Sprintf("198.51.100.%d", i)
			all = append(all, arriving("203.0.113.9:4000",
				"X-Forwarded-For", claim, "X-Real-IP", claim, "True-Client-IP", claim))
		}
		mustCount(t, g.Handler(okHandler()), 5, 95, all...)
		mustTrack(t, g, "anonymous", 1)
	})
}

// Entries to the left of the first untrusted address change nothing.
//
// Case ID-02: from reports about client addresses and keys in other limiters
func TestTheFirstUntrustedAddressFromTheRightIsTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.MustNew(admission.Options{Rate: fivePerMinute(), ClientIP: tenNet})
		var all []*http.Request
		for i := range 20 {
			first := fmt.Sprintf("1.1.1.%d", i+1)
			all = append(all, arriving("10.0.0.5:4000", "X-Forwarded-For", first+", 203.0.113.50, 10.0.0.9"))
		}
		var who string
		h := g.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			v, _ := admission.FromContext(r.Context())
			who = v.Caller.Key
		}))
		mustCount(t, h, 5, 15, all...)
		mustTrack(t, g, "anonymous", 1)
		if who != "203.0.113.50" {
			t.Errorf("identity %q, want the first untrusted from the right", who)
		}
	})
}

// An address is one caller with a port and without.
//
// Case ID-06: from reports about client addresses and keys in other limiters
func TestPortsAndBracketsMakeNoNewClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.MustNew(admission.Options{Rate: fivePerMinute(), ClientIP: tenNet})
		h := g.Handler(okHandler())
		for _, spellings := range [][]string{
			{"203.0.113.7:52241", "203.0.113.7:52242", "203.0.113.7"},
			{"[2001:db8::7]:443", "[2001:db8::7]", "2001:db8::7"},
		} {
			var all []*http.Request
			for range 3 {
				for _, s := range spellings {
					all = append(all, arriving("10.0.0.5:4000", "X-Forwarded-For", s))
				}
			}
			mustCount(t, h, 5, 4, all...) // one bucket of 5 for all spellings
		}
		mustTrack(t, g, "anonymous", 2)
	})
}

// The addresses of one /64 share a bucket; the next prefix has its own.
//
// Case ID-07: from reports about client addresses and keys in other limiters
func TestAddressesOfOneIPv6PrefixAreOneCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.MustNew(admission.Options{Rate: fivePerMinute()})
		h := g.Handler(okHandler())
		var all []*http.Request
		for i := range 50 {
			all = append(all, arriving(fmt.Sprintf("[2001:db8:1:2::%x]:4000", i+1)))
		}
		mustCount(t, h, 5, 45, all...)
		mustCount(t, h, 1, 0, arriving("[2001:db8:1:3::1]:4000"))
		mustTrack(t, g, "anonymous", 2)
	})
}

// Unknown keys are limited by their address, and are tracked as one caller.
//
// Case ID-12: from reports about client addresses and keys in other limiters
func TestMadeUpKeysAreChargedToTheAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		g := admission.MustNew(admission.Options{
			Identify: caller.APIKey("X-API-Key", func(_ context.Context, key string) (caller.Caller, bool) {
				asked++
				return caller.Caller{Key: "tenant-a"}, key == "A"
			}),
			Rate:      ratelimit.PerKey(rate.Limit(1.0/60), 10),
			Anonymous: ratelimit.PerKey(rate.Limit(1.0/60), 20),
		})
		h := g.Handler(okHandler())
		var all []*http.Request
		for i := range 10_000 {
			all = append(all, arriving("203.0.113.9:4000", "X-API-Key", fmt.Sprintf("made-up-%d", i)))
		}
		mustCount(t, h, 20, 9_980, all...)
		mustTrack(t, g, "anonymous", 1)
		mustTrack(t, g, "rate", 0)
		var known []*http.Request
		for range 11 {
			known = append(known, arriving("203.0.113.9:4000", "X-API-Key", "A"))
		}
		mustCount(t, h, 10, 1, known...) // its whole burst, from the same address
		if asked != 10_011 {
			t.Errorf("%d look-ups", asked) // nothing bounds them without Options.Address
		}
	})
}

// ID-12, with a look-up that costs something: the address pays before it is made.
func TestMadeUpKeysCannotBuyLookups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		g := admission.MustNew(admission.Options{
			Identify: caller.APIKey("X-API-Key", func(_ context.Context, key string) (caller.Caller, bool) {
				asked++
				return caller.Caller{}, key == "A"
			}),
			Rate:      ratelimit.PerKey(rate.Limit(1.0/60), 10),
			Anonymous: ratelimit.PerKey(rate.Limit(1.0/60), 5), // refuses while the address still has tokens
			Address:   ratelimit.PerKey(rate.Limit(1.0/60), 20, ratelimit.Name("address")),
			Pool:      admission.Pool{Limit: shed.Fixed(10)},
		})
		h := g.Handler(okHandler())
		var all []*http.Request
		for i := range 1_000 {
			all = append(all, arriving("203.0.113.9:4000", "X-API-Key", fmt.Sprintf("made-up-%d", i)))
			preflight := arriving("203.0.113.9:4000", "Origin", "https://app.example",
				"Access-Control-Request-Method", "GET", "X-API-Key", fmt.Sprintf("made-up-%d", i))
			preflight.Method = http.MethodOptions
			want := http.StatusOK
			if i >= 100 { // the burst of preflights
				want = http.StatusTooManyRequests
			}
			if code := do(h, preflight).Code; code != want {
				t.Fatalf("preflight %d: %d, want %d", i+1, code, want)
			}
		}
		mustCount(t, h, 5, 995, all...)
		if asked != 20 {
			t.Errorf("made-up keys bought %d look-ups, want the address' 20", asked)
		}
		mustCount(t, h, 1, 0, arriving("198.51.100.1:4000", "X-API-Key", "A"))
	})
}

func TestVerifiedCallerThatIsRefusedCostsItsAddressNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.MustNew(admission.Options{
			Identify: caller.Header("X-Tenant"),
			Rate:     ratelimit.PerKey(0, 1),
			Address:  ratelimit.PerKey(0, 3),
		})
		h := g.Handler(okHandler())
		var noisy []*http.Request
		for range 50 {
			noisy = append(noisy, arriving("203.0.113.9:4000", "X-Tenant", "noisy"))
		}
		mustCount(t, h, 1, 49, noisy...)
		mustCount(t, h, 2, 1, // what is left of the three
			arriving("203.0.113.9:4000", "X-Tenant", "a"),
			arriving("203.0.113.9:4000", "X-Tenant", "b"),
			arriving("203.0.113.9:4000", "X-Tenant", "c"))
	})
}

// Callers without a key are told apart by address.
//
// Case ID-13: from reports about client addresses and keys in other limiters
func TestAnonymousCallersDoNotShareABucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.MustNew(admission.Options{
			Identify: caller.APIKey("X-API-Key", func(context.Context, string) (caller.Caller, bool) { return caller.Caller{}, false }),
			Rate:     ratelimit.PerKey(rate.Limit(1.0/60), 10),
		})
		h := g.Handler(okHandler())
		var all []*http.Request
		for range 1_000 {
			all = append(all, arriving("203.0.113.1:4000"))
		}
		mustCount(t, h, 10, 990, all...)
		mustCount(t, h, 1, 0, arriving("203.0.113.2:4000"))
		mustTrack(t, g, "anonymous", 2)
	})
}
