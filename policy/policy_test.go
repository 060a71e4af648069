package policy

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
	"github.com/headgate-go/headgate/shed/pressure"
)

func build(text string, r Resources) (admission.Options, error) {
	f, err := Parse("policy.yaml", []byte(text))
	if err != nil {
		return admission.Options{}, err
	}
	if _, err := f.OutboundOptions(r); err != nil {
		return admission.Options{}, err
	}
	return f.GateOptions(r)
}

func TestMistakesNameFileLineAndField(t *testing.T) {
	text, err := os.ReadFile("testdata/mistakes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var mistakes []struct{ Name, Text, Want, Beyond string }
	if err := yaml.Unmarshal(text, &mistakes); err != nil || len(mistakes) < 50 {
		t.Fatalf("%d mistakes, %v", len(mistakes), err)
	}
	for _, m := range mistakes {
		t.Run(m.Name, func(t *testing.T) {
			_, err := build(m.Text, Resources{})
			if err == nil || !strings.Contains(err.Error(), m.Want) {
				t.Errorf("got %v\nwant %s", err, m.Want)
			}
		})
	}
}

// Case PO-02: tried on the product
func TestAPlanThatNoLimitKnowsIsAMistake(t *testing.T) {
	const keys = "gate:\n  callers:\n    - api_key: {header: K, keys: [{key: a, plan: gold}]}\n"
	for _, c := range []struct{ name, limits, want string }{
		{"no limit at all", "", `policy.yaml:3:50: gate.callers.0.api_key.keys.0.plan: unknown "gold": no limit has such a plan`},
		{"limits without plans", "  limits: {rate: {rate: 1/s, burst: 1}}", `unknown "gold": no limit`},
		{"misspelt", "  limits: {rate: {rate: 1/s, burst: 1, plans: {glod: {rate: 2/s, burst: 2}}}}", `unknown "gold"; there are: glod`},
		{"of the address, which is counted before", "  limits: {address: {rate: 1/s, burst: 1, plans: {gold: {rate: 2/s, burst: 2}}}}", `unknown "gold": no limit`},
		{"of the rate", "  limits: {rate: {rate: 1/s, burst: 1, plans: {gold: {rate: 2/s, burst: 2}}}}", ""},
		{"of the quota", "  limits: {quota: {count: 1, per: 24h, plans: {gold: {count: 2}}}}", ""},
		{"of a route", "  routes: {/a: {rate: {rate: 1/s, burst: 1, plans: {gold: {rate: 2/s, burst: 2}}}}}", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := build(keys+c.limits, Resources{})
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v\nwant %s", err, c.want)
			}
		})
	}
	_, err := build("gate:\n  callers:\n    - join: [{api_key: {header: K, keys: [{key: a, plan: x}]}}, {address: true}]", Resources{})
	if err == nil || !strings.Contains(err.Error(), "gate.callers.0.join.0.api_key.keys.0.plan: unknown") {
		t.Errorf("within join: %v", err)
	}
}

// Case PO-01: tried on the product
func TestATextIsWhatStandsInTheFile(t *testing.T) {
	for written, want := range map[string]string{
		"0012345": "0012345", "010": "010", "0o17": "0o17", "0x1F": "0x1F", "1_000": "1_000", "1e3": "1e3", "+5": "+5",
		"1.50": "1.50", ".5": ".5", ".inf": ".inf", "yes": "yes", "NO": "NO", "true": "true", "null": "null", "~": "~",
		"2024-01-01": "2024-01-01", "2024-01-01T00:00:00Z": "2024-01-01T00:00:00Z", "12:30:45": "12:30:45",
		"0b11": "0b11", "'007'": "007", `"007"`: "007", "!!str 007": "007", "9999999999999999999999": "9999999999999999999999",
	} {
		t.Run(written, func(t *testing.T) {
			opts, err := build("gate:\n  callers:\n    - api_key: {header: K, keys: [{key: "+written+", name: "+written+", alias: "+written+"}]}\n", Resources{})
			if err != nil {
				t.Fatal(err)
			}
			r := httptest.NewRequest("GET", "/", nil)
			r.Header.Set("K", want)
			if got, err := opts.Identify(r); err != nil || got.Key != want || got.Alias != want {
				t.Errorf("got %+v, %v", got, err)
			}
			f, err := Parse("f", []byte("gate:\n  limits:\n    rate:\n      rate: 1/s\n      burst: 1\n      plans:\n        "+written+": {rate: 2/s, burst: 2}\n"))
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := f.Gate.Limits.Rate.Plans[want]; !ok {
				t.Errorf("plans are %v, want %q", f.Gate.Limits.Rate.Plans, want)
			}
		})
	}
	_, err := build("gate:\n  limits:\n    rate: {rate: 1/s, burst: 1, plans: {010: {rate: 2/s, burst: 2}, \"010\": {rate: 3/s, burst: 3}}}", Resources{})
	if err == nil || !strings.Contains(err.Error(), "gate.limits.rate.plans.010: given twice") {
		t.Errorf("one plan in two spellings: %v", err)
	}
}

// Case PO-03: tried on the product
func TestWhatStandsThereGoesBeforeWhatIsMergedIn(t *testing.T) {
	const rate = "gate:\n  limits:\n    rate: &limit {rate: 5/s, burst: 5}\n    address: &other {burst: 7, keys: 9, rate: 1/s}\n"
	for _, c := range []struct{ name, anonymous string }{
		{"block style", "    anonymous:\n      <<: *limit\n      burst: 10\n"},
		{"block style, the merge last", "    anonymous:\n      burst: 10\n      <<: *limit\n"},
		{"flow style", "    anonymous: {<<: *limit, burst: 10}\n"},
		{"flow style, the merge last", "    anonymous: {burst: 10, <<: *limit}\n"},
		{"a list of merges, the first first", "    anonymous:\n      <<: [*limit, *other]\n      burst: 10\n"},
		{"a list in block style", "    anonymous:\n      <<:\n        - *limit\n        - *other\n      burst: 10\n"},
		{"merged without an anchor", "    anonymous: {<<: {rate: 5/s, burst: 5}, burst: 10}\n"},
		{"merged by way of another merge", "    anonymous: {<<: {<<: *limit, burst: 6}, burst: 10}\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			opts, err := build(rate+c.anonymous, Resources{})
			if err != nil {
				t.Fatal(err)
			}
			if got := opts.Anonymous.Policy(ratelimit.Key{}); got.Rate != 5 || got.Burst != 10 {
				t.Errorf("in force: %+v", got)
			}
		})
	}
}

// A number alone is no time and no rate: of seconds, or of milliseconds?
func TestEveryTimeNeedsItsUnit(t *testing.T) {
	for _, field := range timed(reflect.TypeFor[Policy](), nil) {
		text := ""
		for i, name := range field {
			text += strings.Repeat("  ", i) + name + ":"
			if i < len(field)-1 {
				text += "\n"
			}
		}
		if _, err := Parse("f", []byte(text+" 5\n")); err == nil || !strings.Contains(err.Error(), strings.Join(field, ".")+": must be a ") {
			t.Errorf("%s: 5 is taken, or refused with %v", strings.Join(field, "."), err)
		}
		if _, err := Parse("f", []byte(text+" 5s\n")); (err == nil) == strings.HasSuffix(text, "rate:") {
			t.Errorf("%s: 5s: %v", strings.Join(field, "."), err)
		}
	}
}

// timed are the paths of all fields of times and rates.
func timed(t reflect.Type, path []string) (all [][]string) {
	switch t {
	case reflect.TypeFor[Duration](), reflect.TypeFor[wait](), reflect.TypeFor[perSecond]():
		return [][]string{path}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return timed(t.Elem(), path)
	case reflect.Map:
		return timed(t.Elem(), append(slices.Clone(path), "x"))
	case reflect.Struct:
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
			all = append(all, timed(t.Field(i).Type, append(slices.Clone(path), name))...)
		}
	}
	return all
}

func TestAllMistakesAreToldAtOnce(t *testing.T) {
	_, err := build("gate:\n  outcomes: x\n  shadow: [y]\n  capacity: {limit: {fixed: 0}}", Resources{})
	for _, field := range []string{"gate.outcomes", "gate.shadow", "gate.capacity.limit"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s is missing in: %v", field, err)
		}
	}
	var one *FieldError
	if !errors.As(err, &one) || one.Field() == "" {
		t.Errorf("no FieldError in %v", err)
	}
}

func TestAnEmptyFileHasTheDefaultsOfTheKit(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "gate: {}\n", "gate:\noutbound:\n"} {
		opts, err := build(text, Resources{})
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if _, err := admission.New(opts); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// The example states the defaults, so it must behave as an empty file does.
func TestTheExampleHoldsTheDefaults(t *testing.T) {
	numbers := func(text string) (admission.Stats, any) {
		f, err := Parse("example.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		opts, err := f.GateOptions(Resources{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.OutboundOptions(Resources{}); err != nil {
			t.Fatal(err)
		}
		stats := admission.MustNew(opts).Stats()
		stats.ID = 0
		return stats, opts.Pools
	}
	said, _ := numbers(Example)
	silent, _ := numbers("")
	if !reflect.DeepEqual(said, silent) {
		t.Errorf("the example is in force as\n%+v\nan empty file as\n%+v", said, silent)
	}
}

// The file with every option is right, so that a schema can be held to it.
func TestTheFileWithEveryOptionIsTaken(t *testing.T) {
	text, err := os.ReadFile("testdata/examples.yaml")
	if err != nil {
		t.Fatal(err)
	}
	opts, err := build(string(text), Resources{Shared: func(s SharedLimit) (ratelimit.Limiter, error) {
		return ratelimit.PerKey(s.Plan.Rate, s.Plan.Burst), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if opts.HTTP.Preflights != admission.PreflightsAnswered || opts.HTTP.PreflightRate.Policy(ratelimit.Key{}).Burst != 200 {
		t.Errorf("preflights are in force as %v, %v", opts.HTTP.Preflights, opts.HTTP.PreflightRate)
	}
	for _, field := range fields(reflect.TypeFor[Policy](), nil) {
		if !strings.Contains(string(text), field+":") {
			t.Errorf("the file does not show %q", field)
		}
	}
}

// Nobody can set a field the example does not show.
func TestTheExampleShowsEveryField(t *testing.T) {
	for _, field := range fields(reflect.TypeFor[Policy](), nil) {
		if !strings.Contains(Example, field+":") {
			t.Errorf("the example does not show %q", field)
		}
	}
}

func fields(t reflect.Type, seen []reflect.Type) (names []string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Map || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	for _, s := range seen {
		if s == t {
			return nil
		}
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	for i := range t.NumField() {
		f := t.Field(i)
		names = append(names, strings.Split(f.Tag.Get("yaml"), ",")[0])
		names = append(names, fields(f.Type, append(seen, t))...)
	}
	return names
}

// A request takes from all limits of a field or from none, each in its unit.
func TestLimitsBesideOthersHoldAsWell(t *testing.T) {
	opts, err := build(`
gate:
  limits:
    rate:
      rate: 1/h
      burst: 3
      and:
        - {counts: tokens, rate: 1/h, burst: 1000}
        - {name: global, rate: 1/h, burst: 100, global: true}
  routes:
    /chat: {units: {tokens: 400}}
`, Resources{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range ratelimit.AppendPolicies(nil, opts.Rate, ratelimit.Key{}) {
		names = append(names, p.Name+" "+p.Unit)
	}
	if want := []string{"rate ", "rate-tokens tokens", "global "}; !slices.Equal(names, want) {
		t.Errorf("limits %q, want %q", names, want)
	}
	h := admission.MustNew(opts).Handler(http.NotFoundHandler())
	for i, c := range []struct {
		path string
		want int
	}{{"/chat", 404}, {"/chat", 404}, {"/chat", 429}, {"/", 404}, {"/", 429}} {
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, httptest.NewRequest("POST", c.path, nil)); w.Code != c.want {
			t.Errorf("request %d, %s: %d, want %d: %s", i, c.path, w.Code, c.want, w.Body)
		}
	}
}

func TestWithRedisLimitsAreSharedUnlessTheySayLocal(t *testing.T) {
	var asked []SharedLimit
	r := Resources{Shared: func(s SharedLimit) (ratelimit.Limiter, error) {
		asked = append(asked, s)
		return ratelimit.PerKey(1, s.Plan.Burst), nil
	}}
	_, err := build("redis: redis://h:1\ngate:\n  limits:\n    rate: {rate: 1/s, burst: 1, name: x}\n    address: {rate: 2/s, burst: 1, name: x}", r)
	if err == nil || !strings.Contains(err.Error(), `policy.yaml:5:14: gate.limits.address: another limit named "x"`) {
		t.Errorf("one name for two limits: %v", err)
	}
	asked = nil
	_, err = build(`
redis: redis://127.0.0.1:6379
gate:
  limits:
    rate: {rate: 60/m, burst: 7, keys: 9, plans: {gold: {rate: 5/s, burst: 8}}}
    address: {rate: 1/s, burst: 1, local: true}
  routes:
    "GET /a": {rate: {rate: 1/s, burst: 2, name: mine}}
`, r)
	if err != nil {
		t.Fatal(err)
	}
	want := []SharedLimit{
		{"redis://127.0.0.1:6379", "gate.limits.rate", ratelimit.Plan{Rate: 1, Burst: 7}, map[string]ratelimit.Plan{"gold": {Rate: 5, Burst: 8}}, 9},
		{"redis://127.0.0.1:6379", "mine", ratelimit.Plan{Rate: 1, Burst: 2}, nil, 0},
	}
	if !reflect.DeepEqual(asked, want) {
		t.Errorf("asked for %+v, want %+v", asked, want)
	}
}

func TestEveryLawAndSignalCanBeNamed(t *testing.T) {
	for law, want := range map[string]shed.Limit{
		"throughput: {max: 9}":      shed.Throughput{Max: 9},
		"gradient2: {tolerance: 2}": shed.Gradient2{Tolerance: 2},
		"vegas: {min: 3}":           shed.Vegas{Min: 3},
		"aimd: {backoff: 0.5}":      shed.AIMD{Backoff: 0.5},
		"fixed: 4":                  shed.Fixed(4),
	} {
		opts, err := build("gate: {capacity: {limit: {"+law+"}}}", Resources{})
		if err != nil || opts.Pool.Limit != want {
			t.Errorf("%s is %+v, %v", law, opts.Pool.Limit, err)
		}
	}
	opts, err := build("gate: {pressure: {heap: {}, scheduler: {high: 0.1}}}", Resources{})
	if err != nil {
		t.Fatal(err)
	}
	signals := opts.Pressure.(pressure.Guard).Signals
	heap, scheduler := signals[0], signals[1]
	if heap.High != pressure.Heap().High || heap.Low != pressure.Heap().Low || scheduler.High != 0.1 || scheduler.Low != 0 {
		t.Errorf("signals %+v and %+v", heap, scheduler)
	}
}

func TestAFileTooLargeIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, []byte(strings.Repeat("# x\n", MaxSize/4+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil {
		t.Error("accepted")
	}
	if _, err := Load(path + "x"); err == nil || !strings.Contains(err.Error(), path+"x") {
		t.Errorf("a missing file: %v", err)
	}
}
