package admission

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

func TestAnAliasNeverShowsAKey(t *testing.T) {
	g := MustNew(Options{})
	secret := caller.Caller{Space: "key", Key: "sk_live_secret"}
	if a := g.Alias(secret); strings.Contains(a, "secret") || a != g.Alias(secret) || !strings.HasPrefix(a, "key ") {
		t.Errorf("alias %q", a)
	}
	if a := g.Alias(caller.Caller{Key: "x", Alias: strings.Repeat("ä", 100)}); len(a) > 64 || !utf8.ValidString(a) {
		t.Errorf("alias of %d bytes: %q", len(a), a)
	}
	if a := g.Alias(caller.Caller{Key: "x", Alias: "bad\xff"}); !utf8.ValidString(a) {
		t.Errorf("alias %q is not UTF-8", a)
	}
}

func TestAnObserverIsToldOnce(t *testing.T) {
	a, b := new(countingObserver), new(countingObserver)
	all := Observers(a, nil, Observers(b, a), a)
	all.Observe(Event{})
	all.Attach("g", nil)
	if a.events != 1 || a.gates != 1 || b.events != 1 || b.gates != 1 {
		t.Errorf("told a %+v, b %+v", *a, *b)
	}
}

type countingObserver struct{ events, gates int }

func (o *countingObserver) Observe(Event)               { o.events++ }
func (o *countingObserver) Attach(string, func() Stats) { o.gates++ }

func TestStatsShowTheLimitsInForce(t *testing.T) {
	g := MustNew(Options{Rate: ratelimit.PerKey(50, 100), Quota: ratelimit.PerKey(1, 10)})
	g.At(0, Rate(ratelimit.PerKey(5, 5)))
	p, err := g.Admit(t.Context(), Ticket{Caller: caller.Caller{Key: "acme", Verified: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release(shed.Served)
	want := map[string]struct{ burst, keys int }{"rate": {100, 1}, "anonymous": {100, 0}, "quota": {10, 1}, "route": {0, 0}}
	limits := g.Stats().Limits
	for _, l := range limits {
		if w := want[l.Name]; l.Policy.Burst != w.burst || l.Keys != w.keys {
			t.Errorf("%+v, want burst %d and %d keys", l, w.burst, w.keys)
		}
	}
	if len(limits) != len(want) {
		t.Errorf("%d limits, want %d", len(limits), len(want))
	}
}
