package ratelimit

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// using returns a key whose request takes so much of each unit.
func using(id string, of map[string]int) Key {
	key := Key{Space: "key", ID: id}
	if of != nil {
		key.Units = new(Units)
		for unit, n := range of {
			key.Units.Set(unit, n)
		}
	}
	return key
}

// ask takes one request.
func ask(l Limiter, key Key, cost int) Decision {
	return l.Take(context.Background(), epoch, key, cost, 0)
}

// left returns what a limit has for the key, by looking.
func left(l Limiter, key Key) int { return l.(Peeker).Peek(epoch, key, 1, 0).Remaining }

func requestsAndTokens(requests, tokens int) (Limiter, Limiter, Limiter) {
	r := PerKey(1, requests, Name("requests"))
	t := PerKey(1, tokens, Name("tokens"))
	return All(r, Counting("tokens", t)), r, t
}

func TestEachLimitTakesItsOwnUnit(t *testing.T) {
	both, requests, tokens := requestsAndTokens(10, 1000)
	if d := ask(both, using("a", map[string]int{"tokens": 300}), 2); !d.OK {
		t.Fatalf("refused: %+v", d)
	}
	if r, n := left(requests, using("a", nil)), left(tokens, using("a", nil)); r != 7 || n != 699 { // a look takes one as well
		t.Errorf("%d requests and %d tokens are left, want 7 and 699", r, n)
	}
}

func TestARequestThatNamesNoUnitTakesNoneOfIt(t *testing.T) {
	both, _, tokens := requestsAndTokens(10, 5)
	for range 10 {
		if d := ask(both, using("a", map[string]int{"rows": 99}), 1); !d.OK {
			t.Fatalf("refused: %+v", d)
		}
	}
	if n := left(tokens, using("a", nil)); n != 4 {
		t.Errorf("tokens are gone: %d left", n)
	}
}

func TestARefusalByOneUnitTakesNothingOfAnother(t *testing.T) {
	both, requests, tokens := requestsAndTokens(10, 1000)
	d := ask(both, using("a", map[string]int{"tokens": 1001}), 1)
	if d.OK || !d.Never || d.Policy != "tokens" || d.Cost != 1001 {
		t.Errorf("more than the burst: %+v", d)
	}
	ask(both, using("a", map[string]int{"tokens": 900}), 1)
	if d = ask(both, using("a", map[string]int{"tokens": 200}), 1); d.OK || d.Never || d.Wait != 100*time.Second {
		t.Errorf("200 of 100: %+v", d)
	}
	for range 9 {
		ask(both, using("a", map[string]int{"tokens": 1}), 1)
	}
	if d = ask(both, using("a", map[string]int{"tokens": 1}), 1); d.OK || d.Policy != "requests" {
		t.Errorf("the eleventh request: %+v", d)
	}
	if r, n := left(requests, using("a", nil)), left(tokens, using("a", nil)); r != 0 || n != 90 {
		t.Errorf("%d requests and %d tokens are left, want 0 and 90", r, n)
	}
}

func TestTheDecisionSpeaksOfTheLimitThatBinds(t *testing.T) {
	both, _, _ := requestsAndTokens(10, 1000)
	for n, want := range map[int]string{1: "requests", 500: "tokens", 90: "requests"} {
		d := ask(both, using(time.Duration(n).String(), map[string]int{"tokens": n}), 1)
		if d.Policy != want {
			t.Errorf("%d tokens a request: the decision is about %q, want %q (%+v)", n, d.Policy, want, d)
		}
	}
}

func TestSettlingAUnitLeavesTheOthersAlone(t *testing.T) {
	for name, c := range map[string]struct {
		settle       func(Decision)
		reqs, tokens int
	}{
		"more tokens":      {func(d Decision) { d.Settle(epoch, "tokens", 150) }, 8, 549},
		"fewer tokens":     {func(d Decision) { d.Settle(epoch, "tokens", -250) }, 8, 949},
		"all of them back": {func(d Decision) { d.Settle(epoch, "tokens", -300) }, 8, 999},
		"more than taken":  {func(d Decision) { d.Settle(epoch, "tokens", math.MinInt) }, 8, 999},
		"another unit":     {func(d Decision) { d.Settle(epoch, "rows", 150) }, 8, 699},
		"no unit":          {func(d Decision) { d.Settle(epoch, "", 150) }, 8, 699},
		"the cost":         {func(d Decision) { d.Adjust(epoch, 3) }, 5, 699},
		"undone":           {func(d Decision) { d.Undo(epoch) }, 9, 999},
	} {
		for how, wrap := range map[string]func(Limiter) Limiter{
			"plain":  func(l Limiter) Limiter { return l },
			"scoped": func(l Limiter) Limiter { return Scoped("s", l) },
			"shadow": Shadow,
		} {
			both, requests, tokens := requestsAndTokens(10, 1000)
			l := wrap(both)
			d := ask(l, using("a", map[string]int{"tokens": 300}), 1)
			c.settle(d)
			key := using("a", nil)
			if s, ok := l.(*scoped); ok {
				key = s.inside(key)
			}
			if r, n := left(requests, key), left(tokens, key); r != c.reqs || n != c.tokens {
				t.Errorf("%s, %s: %d requests and %d tokens are left, want %d and %d", name, how, r, n, c.reqs, c.tokens)
			}
		}
	}
}

func TestADebtOfAUnitIsWaitedOff(t *testing.T) {
	both, _, _ := requestsAndTokens(10, 1000)
	ask(both, using("a", map[string]int{"tokens": 1000}), 1).Settle(epoch, "tokens", 500)
	if d := ask(both, using("a", map[string]int{"tokens": 0}), 1); d.OK || d.Policy != "tokens" || d.Wait != 501*time.Second {
		t.Errorf("an estimate of nothing passes a debt of 500: %+v", d)
	}
	if d := ask(both, using("b", map[string]int{"tokens": 1000}), 1); !d.OK {
		t.Errorf("another caller pays for it: %+v", d)
	}
}

func TestPoliciesSayWhatTheyCount(t *testing.T) {
	l := Scoped("s", All(PerKey(1, 5), Counting("tokens", All(PerKey(1, 6, Name("a")), Global(1, 7, Name("b"))))))
	var got []string
	for _, p := range AppendPolicies(nil, l, Key{}) {
		got = append(got, p.Name+" "+p.Unit)
	}
	if want := "s/default |s/a tokens|s/b tokens"; strings.Join(got, "|") != want {
		t.Errorf("policies %q, want %q", got, want)
	}
	if !Counts(l, "tokens") || Counts(l, "rows") || Counts(nil, "tokens") || Counts(l, "") {
		t.Error("Counts")
	}
}

func TestWrongUnitsAreErrors(t *testing.T) {
	for want, l := range map[string]Limiter{
		"unit is empty":        Counting("", PerKey(1, 1)),
		"counts requests":      Counting("requests", PerKey(1, 1)),
		"counts a unit itself": Counting("tokens", All(PerKey(1, 1), Scoped("s", Counting("rows", PerKey(1, 1))))),
		"limiter is nil":       Counting("tokens", nil),
		"Burst":                Counting("tokens", PerKey(1, 0)),
	} {
		if err := All(PerKey(1, 1), l).Validate(); err == nil || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(want)) {
			t.Errorf("%v, want one that says %q", err, want)
		}
	}
	var u Units
	if u.Set("", 1) || !u.Set("a", -5) || !u.Set("b", 1) || !u.Set("c", 1) || !u.Set("d", 1) || u.Set("e", 1) || !u.Set("a", 7) {
		t.Error("Set")
	}
	if n, ok := u.Of("a"); n != 7 || !ok {
		t.Errorf("a: %d, %v", n, ok)
	}
}

func TestAReloadKeepsTheBalancesOfAUnit(t *testing.T) {
	old, _, _ := requestsAndTokens(10, 1000)
	old = Own(old, nil)
	ask(old, using("a", map[string]int{"tokens": 900}), 1)
	fresh, _, _ := requestsAndTokens(10, 1000)
	if d := ask(Own(fresh, old), using("a", map[string]int{"tokens": 200}), 1); d.OK {
		t.Error("the balance is new")
	}
	rows := All(PerKey(1, 10, Name("requests")), Counting("rows", PerKey(1, 1000, Name("tokens"))))
	if d := ask(Own(rows, old), using("a", map[string]int{"rows": 1000}), 1); !d.OK {
		t.Errorf("rows go on from the balance of tokens: %+v", d)
	}
}

func TestCountingAllocatesNothing(t *testing.T) {
	both, _, _ := requestsAndTokens(1<<30, 1<<30)
	key := using("a", map[string]int{"tokens": 3})
	if n := testing.AllocsPerRun(1000, func() { ask(both, key, 1).Settle(epoch, "tokens", 1) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Whatever is asked, granted, settled and undone, each limit holds what a plain counter
// of its own unit says, and a refusal changes none of them.
func TestUnitsAgainstPlainCounters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const full = 100
		units := []string{"", "tokens", "bytes"}
		limits := map[string]*Buckets{}
		var parts []Limiter
		for _, u := range rapid.Permutation(units).Draw(t, "order") {
			limits[u] = PerKey(0, full, Name("n"+u)) // no refill: balances are plain counters
			if parts = append(parts, limits[u]); u != "" {
				parts[len(parts)-1] = Counting(u, limits[u])
			}
		}
		l := All(parts...)
		balance := map[string]int{"": full, "tokens": full, "bytes": full}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			takes := map[string]int{"": rapid.IntRange(1, 40).Draw(t, "cost")}
			named := map[string]int{}
			for _, u := range units[1:] {
				if rapid.Bool().Draw(t, "names "+u) {
					named[u] = rapid.IntRange(-1, 60).Draw(t, u)
					takes[u] = max(named[u], 1)
				}
			}
			fits := true
			for u, n := range takes {
				fits = fits && n <= balance[u]
			}
			d := ask(l, using("a", named), takes[""])
			if d.OK != fits {
				t.Fatalf("takes %v of %v: admitted %v", takes, balance, d.OK)
			}
			if !d.OK {
				continue
			}
			if rapid.Bool().Draw(t, "undo") {
				d.Undo(epoch)
				continue
			}
			for u, n := range takes {
				by := rapid.IntRange(-n, 30).Draw(t, "by "+u)
				balance[u] -= n + by
				if u == "" {
					d.Adjust(epoch, by)
				} else {
					d.Settle(epoch, u, by)
				}
			}
		}
		for u, b := range balance {
			if b < 1 {
				continue // a look at nothing left says no more than that
			}
			if got := left(limits[u], using("a", nil)); got != b-1 {
				t.Fatalf("%q: %d left, want %d", u, got, b-1)
			}
		}
	})
}

// What is made of several limits gives all of it back from inside of a wrapper too: a
// refusal by a later limit, and an adjustment, reach every part.
func TestSeveralLimitsInsideAWrapperAreGivenBack(t *testing.T) {
	for name, wrap := range map[string]func(Limiter) Limiter{
		"scoped":   func(l Limiter) Limiter { return Scoped("s", l) },
		"shadow":   Shadow,
		"counting": func(l Limiter) Limiter { return Counting("tokens", l) },
		"twice":    func(l Limiter) Limiter { return Scoped("t", Scoped("s", All(l))) },
	} {
		a, b, last := PerKey(1, 100, Name("a")), Global(1, 100, Name("b")), PerKey(1, 10, Name("last"))
		l := All(PerKey(1, 100, Name("first")), wrap(All(a, b)), last)
		if err := l.Validate(); err != nil {
			t.Fatal(err)
		}
		key := using("x", map[string]int{"tokens": 5})
		held := func() int { return left(b, Key{}) }
		if d := ask(l, key, 5); !d.OK || held() != 94 {
			t.Fatalf("%s: %+v, %d left", name, d, held())
		} else {
			d.Adjust(epoch, 2)
			d.Settle(epoch, "tokens", 2)
			if held() != 92 {
				t.Errorf("%s: %d are left after an adjustment, want 92", name, held())
			}
		}
		if d := ask(l, key, 8); d.OK || held() != 92 {
			t.Errorf("%s: a refusal by the last limit left %d, want 92: %+v", name, held(), d)
		}
	}
	if err := All(PerKey(1, 1), Scoped("s", All(PerKey(1, 1), PerKey(1, 1), PerKey(1, 1), PerKey(1, 1), PerKey(1, 1), PerKey(1, 1)))).Validate(); err == nil {
		t.Error("more limits than a grant can remember are accepted")
	}
}
