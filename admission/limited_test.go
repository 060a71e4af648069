package admission

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

var limitedStart = time.Unix(1_700_000_000, 0)

func TestTheMostLimitedComeFirstAndAreForgotten(t *testing.T) {
	l := newLimited()
	at := limitedStart
	for range 3 {
		l.note(at, shed.RateLimited, Caller{Key: "globex", Alias: "Globex"})
	}
	for range 5 {
		l.note(at, shed.CallerCap, Caller{Key: "acme", Alias: "Acme"})
	}
	l.note(at, shed.QueueFull, Caller{Key: "innocent", Alias: "Innocent"})
	want := []LimitedCaller{{"Acme", 5}, {"Globex", 3}}
	for _, later := range []time.Duration{0, limitedWindow} {
		if got := l.top(at.Add(later)); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("after %v: %v, want %v", later, got, want)
		}
	}
	if got := l.top(at.Add(2 * limitedWindow)); len(got) != 0 {
		t.Errorf("a minute later %v are still shown", got)
	}
}

func TestAFloodOfLimitedCallersStaysBoundedAndOverstatesNobody(t *testing.T) {
	l := newLimited()
	heavy := Caller{Key: "heavy", Alias: "heavy"}
	for i := range 100_000 {
		l.note(limitedStart, shed.RateLimited, Caller{Space: "addr", Key: fmt.Sprint(i)})
		if i%50 == 0 {
			l.note(limitedStart, shed.RateLimited, heavy)
		}
	}
	top := l.top(limitedStart)
	if len(top) == 0 || len(top) > limitedShown {
		t.Fatalf("%d callers shown", len(top))
	}
	if top[0].Alias != "heavy" || top[0].Refused < 1500 || top[0].Refused > 2000 {
		t.Errorf("first is %+v, want heavy with nearly 2000", top[0])
	}
	for _, c := range top[1:] {
		if c.Refused > 1 {
			t.Errorf("%+v was refused once", c)
		}
	}
}

func TestAnAliasNeverShowsAKey(t *testing.T) {
	g := MustNew(Options{})
	secret := Caller{Space: "key", Key: "sk_live_secret"}
	if a := g.Alias(secret); strings.Contains(a, "secret") || a != g.Alias(secret) || !strings.HasPrefix(a, "key ") {
		t.Errorf("alias %q", a)
	}
	if a := g.Alias(Caller{Key: "x", Alias: strings.Repeat("ä", 100)}); len(a) > aliasMost || !utf8.ValidString(a) {
		t.Errorf("alias of %d bytes: %q", len(a), a)
	}
	if a := g.Alias(Caller{Key: "x", Alias: "bad\xff"}); !utf8.ValidString(a) {
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
	p, err := g.Admit(t.Context(), Ticket{Caller: Caller{Key: "acme", Verified: true}})
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
