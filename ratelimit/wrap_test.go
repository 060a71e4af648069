package ratelimit

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"iter"
	"maps"
	"slices"
	"testing"
	"time"

	"golang.org/x/time/rate"
)

// able is a limiter that can do everything, and notes what reached it.
type able struct {
	called map[string]Key
	prev   Limiter
}

func newAble() *able { return &able{called: map[string]Key{}} }

func (a *able) Take(_ context.Context, now time.Time, key Key, cost int, _ time.Duration) Decision {
	a.called["Limiter"] = key
	return Decision{OK: true, Policy: "able", Grant: Grant{From: a, Key: key, Cost: cost, At: now, Mark: 7}}
}
func (a *able) Policy(Key) Policy { return Policy{Name: "able", Rate: 1, Burst: 1} }
func (a *able) Validate() error   { return nil }

func (a *able) Undo(_ time.Time, g Grant)          { a.called["Undoer"] = g.Key }
func (a *able) Adjust(_ time.Time, g Grant, _ int) { a.called["Adjuster"] = g.Key }
func (a *able) Peek(_ time.Time, key Key, _ int, _ time.Duration) Decision {
	a.called["Peeker"] = key
	return Decision{Policy: "able", Wait: time.Second}
}
func (a *able) Own(prev Limiter) Limiter {
	a.called["Owner"], a.prev = Key{}, prev
	return a
}
func (a *able) Adopts(prev Limiter) bool {
	a.called["Adopter"] = Key{}
	_, ok := prev.(*able)
	return ok
}
func (a *able) AppendPolicies(dst []Policy, key Key) []Policy {
	a.called["Lister"] = key
	return append(dst, a.Policy(key), Policy{Name: "second", Rate: 1, Burst: 1})
}
func (a *able) PlanOf(key Key) Plan {
	a.called["Planner"] = key
	return Plan{Rate: 1, Burst: 1, Cost: 3}
}
func (a *able) Plans() iter.Seq2[string, Plan] {
	a.called["PlanTable"] = Key{}
	return maps.All(map[string]Plan{"pro": {Cost: 3}})
}
func (a *able) Throttled(_ time.Time, key Key, _ time.Duration, _ float64) {
	a.called["Feedback"] = key
}
func (a *able) Stats() Stats {
	a.called["Counter"] = Key{}
	return Stats{Keys: 5}
}
func (a *able) StoreStats() StoreStats {
	a.called["Stored"] = Key{}
	return StoreStats{Name: "fleet"}
}

// probes use each optional interface of a wrapper, and say what came back is right.
var probes = map[string]func(l Limiter, key Key) bool{
	"Undoer": func(l Limiter, key Key) bool { takeKey(l, key).Undo(epoch); return true },
	"Adjuster": func(l Limiter, key Key) bool {
		d := takeKey(l, key)
		d.Adjust(epoch, 1)
		d.Settle(epoch, "tokens", 1)
		return true
	},
	"Peeker":    func(l Limiter, key Key) bool { d := l.(Peeker).Peek(epoch, key, 1, 0); return d.OK == (d.Shadow != "") },
	"Owner":     func(l Limiter, _ Key) bool { return l.(Owner).Own(l) != nil },
	"Adopter":   func(l Limiter, _ Key) bool { return l.(Adopter).Adopts(l) && Own(l, l) != nil },
	"Lister":    func(l Limiter, key Key) bool { return len(AppendPolicies(nil, l, key)) >= 2 },
	"Planner":   func(l Limiter, key Key) bool { return l.(Planner).PlanOf(key).Cost == 3 && PlannerOf(l) != nil },
	"PlanTable": func(l Limiter, _ Key) bool { return maps.Collect(l.(PlanTable).Plans())["pro"].Cost == 3 },
	"Feedback": func(l Limiter, key Key) bool {
		l.(Feedback).Throttled(epoch, key, time.Second, 0.5)
		return true
	},
	"Counter": func(l Limiter, _ Key) bool { return StatsOf(l).Keys == 5 },
	"Stored":  func(l Limiter, _ Key) bool { return l.(Stored).StoreStats().Name == "fleet" },
}

func takeKey(l Limiter, key Key) Decision { return l.Take(context.Background(), epoch, key, 1, 0) }

// wrappers are all limiters of this package that are made around others.
var wrappers = map[string]struct {
	wrap   func(Limiter) Limiter
	scoped bool // the key is in another space inside
	shadow bool
}{
	"Scoped":        {func(l Limiter) Limiter { return Scoped("s", l) }, true, false},
	"Shadow":        {Shadow, false, true},
	"All":           {func(l Limiter) Limiter { return All(l) }, false, false},
	"All of two":    {func(l Limiter) Limiter { return All(PerKey(1, 9), l) }, false, false},
	"all three":     {func(l Limiter) Limiter { return Scoped("s", Shadow(All(l))) }, true, true},
	"other way":     {func(l Limiter) Limiter { return All(PerKey(1, 9), Shadow(Scoped("s", l))) }, true, true},
	"Counting":      {func(l Limiter) Limiter { return Counting("tokens", l) }, false, false},
	"counted scope": {func(l Limiter) Limiter { return Scoped("t", Counting("tokens", Scoped("s", l))) }, true, false},
	"all counted":   {func(l Limiter) Limiter { return All(PerKey(1, 9), Shadow(Counting("tokens", All(l)))) }, false, true},
	"scope in each": {func(l Limiter) Limiter { return Scoped("t", All(Scoped("s", l))) }, true, false},
}

// Whatever a limiter can do, it can still do inside of a wrapper: every wrapper is
// tried with every optional interface there is, and an interface without a probe fails.
//
// Case LI-09: tried on the product
func TestWrappersForwardEveryOptionalInterface(t *testing.T) {
	names := optionalInterfaces(t)
	if probed := slices.Sorted(maps.Keys(probes)); !slices.Equal(names, probed) {
		t.Fatalf("optional interfaces %q, probes %q", names, probed)
	}
	for wrapper, w := range wrappers {
		for _, name := range names {
			inner := newAble()
			key := Key{Space: "key", ID: "a", Plan: "pro", Units: new(Units)}
			key.Units.Set("tokens", 2)
			ok := probes[name](w.wrap(inner), key)
			got, called := inner.called[name]
			switch {
			case name == "Lister" && w.shadow:
				if called {
					t.Errorf("%s: a limit in shadow is advertised", wrapper)
				}
			case !called || !ok:
				t.Errorf("%s: %s reached the limiter: %v, with the right answer: %v", wrapper, name, called, ok)
			case got != Key{} && (got.ID != "a" || got.Plan != "pro" || name != "Planner" && (got.Space == "key") == w.scoped):
				t.Errorf("%s: %s was asked about %+v", wrapper, name, got)
			}
		}
	}
}

// optionalInterfaces are the names of those declared in optional.go.
func optionalInterfaces(t *testing.T) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "optional.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.TypeSpec); ok {
			if _, is := spec.Type.(*ast.InterfaceType); is {
				names = append(names, spec.Name.Name)
			}
		}
		return true
	})
	slices.Sort(names)
	return names
}

// Where a limiter can do nothing more, a wrapper has nothing to forward, and nothing
// is made up for it.
func TestWrappersOfPlainLimitersAddNothing(t *testing.T) {
	for name, w := range wrappers {
		l := w.wrap(plain{})
		d := takeKey(l, Key{ID: "a"})
		d.Undo(epoch)
		d.Adjust(epoch, 1)
		l.(Feedback).Throttled(epoch, Key{}, time.Second, 0.5)
		if Adapts(l) {
			t.Errorf("%s: adapts by itself", name)
		}
		if p := PlannerOf(l); p != nil {
			t.Errorf("%s: knows plans: %v", name, p)
		}
		if s := l.(Stored).StoreStats(); s.Name != "" || len(StatsOf(l).Stores) != 0 {
			t.Errorf("%s: has a store: %+v", name, s)
		}
	}
}

type plain struct{}

func (plain) Take(context.Context, time.Time, Key, int, time.Duration) Decision {
	return Decision{OK: true, Policy: "plain"}
}
func (plain) Policy(Key) Policy { return Policy{Name: "plain", Rate: rate.Inf} }
func (plain) Validate() error   { return nil }

// A client may leave the adapting to a limiter only if that enforces what it learns.
func TestOnlyWhatIsEnforcedAdapts(t *testing.T) {
	for name, tc := range map[string]struct {
		limit Limiter
		want  bool
	}{
		"one":                  {newAble(), true},
		"none":                 {PerKey(1, 1), false},
		"in a scope":           {Scoped("s", newAble()), true},
		"a scope of none":      {Scoped("s", PerKey(1, 1)), false},
		"one of several":       {All(PerKey(1, 1), newAble()), true},
		"none of several":      {All(PerKey(1, 1), Global(1, 1)), false},
		"in shadow":            {Shadow(newAble()), false},
		"beside one in shadow": {All(Shadow(newAble()), PerKey(1, 1)), false},
		"nil":                  {nil, false},
	} {
		if got := Adapts(tc.limit); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// Several limits in a scope keep their names, so that a client is told which it met.
func TestPartsInAScopeKeepTheirNames(t *testing.T) {
	l := Scoped("export", All(PerKey(1, 9, Name("second")), Shadow(PerKey(1, 1, Name("tried"))), PerKey(1, 2, Name("burst"))))
	if err := l.Validate(); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range AppendPolicies(nil, l, Key{}) {
		names = append(names, p.Name)
	}
	if !slices.Equal(names, []string{"export/second", "export/burst"}) {
		t.Errorf("policies %q", names)
	}
	takeKey(l, Key{ID: "a"})
	if d := takeKey(l, Key{ID: "a"}); !d.OK || d.Shadow != "export/tried" || d.Policy != "export/burst" {
		t.Errorf("got %+v", d)
	}
	if d := takeKey(l, Key{ID: "a"}); d.OK || d.Policy != "export/burst" {
		t.Errorf("got %+v", d)
	}
}
