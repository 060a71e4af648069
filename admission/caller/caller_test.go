package caller

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/go-chi/httprate"

	"github.com/headgate-go/headgate/priority"
)

func TestAPIKeyBelievesOnlyWhatLookupKnows(t *testing.T) {
	asked := 0
	id := APIKey("x-api-key", func(_ context.Context, key string) (Caller, bool) {
		asked++
		switch key {
		case "acme-key":
			return Caller{Key: "acme", Plan: "pro", Level: AtLeast(priority.High)}, true
		case "bare key":
			return Caller{}, true
		}
		return Caller{Key: key, Verified: true}, false // what comes with false is ignored
	})
	for _, tc := range []struct {
		name   string
		values []string
		want   Caller
		asked  int
	}{
		{"known", []string{"acme-key"}, Caller{Key: "acme", Space: "key", Plan: "pro", Verified: true, Level: AtLeast(priority.High)}, 1},
		{"known, no name of its own", []string{"bare key"}, Caller{Key: "bare key", Space: "key", Verified: true}, 1},
		{"made up", []string{"xyz"}, Caller{}, 1},
		{"longest asked about", []string{strings.Repeat("k", 1024)}, Caller{}, 1},
		{"missing", nil, Caller{}, 0},
		{"empty", []string{""}, Caller{}, 0},
		{"twice", []string{"acme-key", "acme-key"}, Caller{}, 0},
		{"too long", []string{strings.Repeat("k", 1025)}, Caller{}, 0},
		{"a megabyte", []string{strings.Repeat("k", 1<<20)}, Caller{}, 0},
		{"control character", []string{"acme-key\x00"}, Caller{}, 0},
		{"tab", []string{"acme\tkey"}, Caller{}, 0},
		{"not ASCII", []string{"acme-kéy"}, Caller{}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			asked = 0
			r := from("192.0.2.1:1")
			r.Header["X-Api-Key"] = tc.values
			if c, err := id(r); c != tc.want || err != nil {
				t.Errorf("got %+v, %v; want %+v", c, err, tc.want)
			}
			if asked != tc.asked {
				t.Errorf("lookup was asked %d times; want %d", asked, tc.asked)
			}
		})
	}
}

func TestKnownKeyAllocatesNothing(t *testing.T) {
	known := map[string]Caller{}
	for i := range 10_000 {
		known["key-"+strconv.Itoa(i)] = Caller{Key: "tenant-" + strconv.Itoa(i)}
	}
	id := APIKey("X-API-Key", func(_ context.Context, key string) (Caller, bool) { c, ok := known[key]; return c, ok })
	r := from("192.0.2.1:1", "X-API-Key", "key-4711")
	if n := testing.AllocsPerRun(100, func() {
		if c, _ := id(r); c.Key != "tenant-4711" {
			t.Fatalf("got %+v", c)
		}
	}); n != 0 {
		t.Errorf("%v allocs", n)
	}
}

func TestHeaderIsBelieved(t *testing.T) {
	id := Header("X-User-ID")
	for _, tc := range []struct {
		values []string
		want   Caller
	}{
		{[]string{"ann"}, Caller{Key: "ann", Space: "header:X-User-Id", Verified: true}},
		{[]string{"täglich"}, Caller{Key: "täglich", Space: "header:X-User-Id", Verified: true}},
		{nil, Caller{}},
		{[]string{""}, Caller{}},
		{[]string{"forged", "ann"}, Caller{}},
		{[]string{"ann\x7f"}, Caller{}},
	} {
		r := from("192.0.2.1:1")
		r.Header["X-User-Id"] = tc.values
		if c, err := id(r); c != tc.want || err != nil {
			t.Errorf("%q: got %+v, %v", tc.values, c, err)
		}
	}
	c, _ := id(from("192.0.2.1:1", "X-User-ID", strings.Repeat("x", 1<<20)))
	if len(c.Key) > maxKey || !c.Verified {
		t.Errorf("a megabyte became a key of %d bytes", len(c.Key))
	}
}

func TestKeyAdaptsHTTPRate(t *testing.T) {
	var f httprate.KeyFunc = func(r *http.Request) (string, error) { return r.Header.Get("X-Org"), nil }
	if c, err := KeyFunc(f)(from("192.0.2.1:1", "X-Org", "acme")); err != nil || c != (Caller{Key: "acme", Space: "custom", Verified: true}) {
		t.Errorf("got %+v, %v", c, err)
	}
	if c, err := KeyFunc(f)(from("192.0.2.1:1")); err != nil || c != (Caller{}) {
		t.Errorf("empty key: got %+v, %v", c, err)
	}
	broken := errors.New("database away")
	if c, err := KeyFunc(func(*http.Request) (string, error) { return "x", broken })(from("192.0.2.1:1")); !errors.Is(err, broken) || c != (Caller{}) {
		t.Errorf("error: got %+v, %v", c, err)
	}
}

// is returns an identity that always answers the same.
func is(c Caller) Identify { return func(*http.Request) (Caller, error) { return c, nil } }

func fails(err error) Identify { return func(*http.Request) (Caller, error) { return Caller{}, err } }

var (
	acme    = Caller{Key: "acme", Space: "key", Plan: "pro", Verified: true, Level: AtMost(priority.Normal)}
	ann     = Caller{Key: "ann", Space: "header:X-User", Verified: true, Level: AtLeast(priority.High)}
	address = Caller{Key: "192.0.2.1", Space: "addr"}
	claim   = Caller{Key: "whoever", Space: "cookie"}
	nobody  = Caller{}
)

func TestFirstOfPrefersVerified(t *testing.T) {
	broken := errors.New("broken")
	for _, tc := range []struct {
		ids  []Identify
		want Caller
		err  error
	}{
		{[]Identify{is(acme), is(ann)}, acme, nil},
		{[]Identify{is(nobody), is(ann)}, ann, nil},
		{[]Identify{is(address), is(acme)}, acme, nil},
		{[]Identify{is(nobody), is(address), is(claim)}, address, nil},
		{[]Identify{is(nobody), is(nobody)}, nobody, nil},
		{[]Identify{is(nobody), fails(broken), is(acme)}, nobody, broken},
		{[]Identify{is(acme), fails(broken)}, acme, nil},
	} {
		if c, err := FirstOf(tc.ids...)(from("192.0.2.1:1")); c != tc.want || !errors.Is(err, tc.err) {
			t.Errorf("got %+v, %v; want %+v, %v", c, err, tc.want, tc.err)
		}
	}
}

func TestJoinTakesVerifiedPartsAndAddresses(t *testing.T) {
	broken := errors.New("broken")
	for _, tc := range []struct {
		ids  []Identify
		want Caller
		err  error
	}{
		{[]Identify{is(acme), is(ann)}, Caller{Key: "3:key4:acme13:header:X-User3:ann", Space: "join", Plan: "pro", Verified: true, Level: acme.Level}, nil},
		{[]Identify{is(ann), is(acme)}, Caller{Key: "13:header:X-User3:ann3:key4:acme", Space: "join", Plan: "pro", Verified: true, Level: ann.Level}, nil},
		{[]Identify{is(acme), is(address)}, Caller{Key: "3:key4:acme4:addr9:192.0.2.1", Space: "join", Plan: "pro", Verified: true, Level: acme.Level}, nil},
		{[]Identify{is(address)}, Caller{Key: "4:addr9:192.0.2.1", Space: "join"}, nil},
		{[]Identify{is(acme), is(claim)}, nobody, nil},
		{[]Identify{is(acme), is(nobody)}, nobody, nil},
		{[]Identify{is(acme), fails(broken)}, nobody, broken},
	} {
		if c, err := Join(tc.ids...)(from("192.0.2.1:1")); c != tc.want || !errors.Is(err, tc.err) {
			t.Errorf("got %+v, %v; want %+v, %v", c, err, tc.want, tc.err)
		}
	}
}

func joined(parts ...string) string {
	ids := make([]Identify, len(parts))
	for i, p := range parts {
		ids[i] = is(Caller{Key: p, Verified: true})
	}
	c, _ := Join(ids...)(nil)
	return c.Key
}

func TestJoinKeepsDifferentListsApart(t *testing.T) {
	seen := map[string][]string{}
	long := strings.Repeat("x", 300)
	for _, parts := range [][]string{
		{"a", "b"}, {"ab", "c"}, {"a", "bc"}, {"a:b", "c"}, {"a", "b:c"}, {"1:a", "b"}, {"a", "1:b"}, {"a"}, {"a", "a"}, {"a", "a", "a"},
		{long, "a"}, {"a", long}, {long + "a"}, {long}, {joined(long)}, {"0:", "a"}, {"0:1:a"},
	} {
		k := joined(parts...)
		if other, dup := seen[k]; dup {
			t.Errorf("%q and %q make the same key %q", other, parts, k)
		}
		if len(k) > maxKey {
			t.Errorf("%q: key of %d bytes", parts, len(k))
		}
		seen[k] = parts
	}
}

func TestNoShortKeyStandsForALongOne(t *testing.T) {
	long := boundKey(strings.Repeat("x", 1000))
	if got := boundKey(long); got == long || len(got) > maxKey {
		t.Errorf("the text of a hash keeps its own name: %q", got)
	}
	sum := sha256.Sum256([]byte(strings.Repeat("x", 1000)))
	if want := "sha256:" + base64.RawURLEncoding.EncodeToString(sum[:]); long != want {
		t.Errorf("got %q; want %q", long, want)
	}
	if exact := strings.Repeat("x", maxKey); boundKey(exact) != exact {
		t.Error("a key at the bound was hashed")
	}
}

func TestMisusePanicsAtSetUp(t *testing.T) {
	lookup := func(context.Context, string) (Caller, bool) { return Caller{}, false }
	for want, f := range map[string]func(){
		"APIKey: the header's name is empty":  func() { APIKey("", lookup) },
		"APIKey: lookup is nil":               func() { APIKey("X-API-Key", nil) },
		"Header: the header's name is empty":  func() { Header("") },
		"KeyFunc: the function is nil":        func() { KeyFunc(nil) },
		"FirstOf needs at least one identity": func() { FirstOf() },
		"FirstOf: an identity is nil":         func() { FirstOf(is(acme), nil) },
		"Join needs at least one identity":    func() { Join() },
		"Join: an identity is nil":            func() { Join(nil) },
	} {
		func() {
			defer func() {
				if got, _ := recover().(string); got != "caller: "+want {
					t.Errorf("panic %q; want %q", got, "caller: "+want)
				}
			}()
			f()
		}()
	}
}

func TestLevelBoundsMoveTheRoutesLevel(t *testing.T) {
	const invalid = priority.Level(99)
	for _, route := range priority.All() {
		for _, l := range priority.All() {
			if got := AtLeast(l).Apply(route); got != max(route, l) {
				t.Errorf("AtLeast(%v) on %v = %v", l, route, got)
			}
			if got := AtMost(l).Apply(route); got != min(route, l) {
				t.Errorf("AtMost(%v) on %v = %v", l, route, got)
			}
		}
		if LevelBound(0).Apply(route) != route || AtLeast(invalid).Apply(route) != route || AtMost(-invalid).Apply(route) != route {
			t.Errorf("zero or an invalid level moved %v", route)
		}
		for _, none := range []LevelBound{math.MinInt8, -priority.Count - 1, priority.Count + 1, math.MaxInt8} {
			if got := none.Apply(route); got != route {
				t.Errorf("bound %d moved %v to %v", none, route, got)
			}
		}
	}
}
