package policy

import (
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

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
	for _, c := range []struct{ name, text, want string }{
		{"unknown at the top", "gates: {}", "policy.yaml:1:1: gates: unknown field"},
		{"unknown below", "gate:\n  limit: 4", "policy.yaml:2:3: gate.limit: unknown field"},
		{"unknown in a route", "gate:\n  routes:\n    \"GET /a\": {lvl: high}", "policy.yaml:3:16: gate.routes.GET /a.lvl: unknown field"},
		{"given twice", "gate:\n  name: a\n  name: b", "policy.yaml:3:3: "},
		{"not YAML", "gate: [", "policy.yaml:1: "},
		{"a list for a section", "gate:\n  - 1", "policy.yaml:2:"},
		{"two documents", "gate: {}\n---\ngate: {}", "policy.yaml:3:1: a second document"},
		{"half a request", "gate:\n  limits:\n    rate:\n      burst: 1.5\n", "policy.yaml:4:14: gate.limits.rate.burst: must be a whole number, not \"1.5\""},
		{"word for a number", "gate:\n  limits: {caller_cap: ten}", "policy.yaml:2:24: gate.limits.caller_cap: must be a whole number"},
		{"list for a number", "gate:\n  limits: {caller_cap: [1]}", "policy.yaml:2:24: gate.limits.caller_cap: must be a single value"},
		{"rate without unit", "gate:\n  limits:\n    rate: {rate: 50, burst: 1}", "policy.yaml:3:18: gate.limits.rate.rate: must be a rate such as 50/s"},
		{"no duration", "gate:\n  capacity:\n    max_wait: 5", "policy.yaml:3:15: gate.capacity.max_wait: must be a time"},
		{"no level", "gate:\n  routes:\n    /a: {level: urgent}", "policy.yaml:3:17: gate.routes./a.level: must be batch, normal, high or critical"},
		{"no size", "gate:\n  capacity: {max_waiting_bytes: 1TB}", "policy.yaml:2:33: gate.capacity.max_waiting_bytes: must be a size"},
		{"size beyond numbers", "gate:\n  capacity: {max_waiting_bytes: 9999999999GiB}", "policy.yaml:2:33: gate.capacity.max_waiting_bytes: must be a size"},
		{"burst missing", "gate:\n  limits:\n    rate: {rate: 5/s}", "policy.yaml:3:11: gate.limits.rate: ratelimit"},
		{"in a block", "gate:\n  limits:\n    rate:\n      rate: 5/s", "policy.yaml:4:7: gate.limits.rate: ratelimit"},
		{"negative rate", "gate:\n  limits:\n    rate: {rate: -5/s, burst: 1}", "policy.yaml:3:11: gate.limits.rate: "},
		{"rate not a number", "gate:\n  limits:\n    rate: {rate: NaN/s, burst: 1}", "policy.yaml:3:11: gate.limits.rate: "},
		{"two laws", "gate:\n  capacity:\n    limit: {fixed: 3, throughput: {}}", "policy.yaml:3:12: gate.capacity.limit: one law, not 2"},
		{"law out of range", "gate:\n  capacity:\n    limit: {aimd: {backoff: 2}}", "policy.yaml:3:12: gate.capacity.limit: shed: AIMD.Backoff"},
		{"pressure", "gate:\n  pressure: {heap: {high: 0.5, low: 0.9}}", "policy.yaml:2:13: gate.pressure: pressure: Guard.Signals[0]"},
		{"no slots", "gate:\n  capacity:\n    limit: {fixed: 0}", "policy.yaml:3:12: gate.capacity.limit: shed: Fixed = 0"},
		{"min above max", "gate:\n  pools:\n    db: {limit: {throughput: {min: 9, max: 3}}}", "gate.pools.db.limit: shed: Throughput.Max = 3"},
		{"pool that is not there", "gate:\n  routes:\n    /a: {pool: db}", "policy.yaml:3:16: gate.routes./a.pool: unknown \"db\": gate.pools is empty"},
		{"one of other pools", "gate:\n  pools: {x: {limit: {fixed: 1}}}\n  routes:\n    /a: {pool: db}", "policy.yaml:4:16: gate.routes./a.pool: unknown \"db\"; there are: x"},
		{"patterns in conflict", "gate:\n  routes:\n    /a/{x}: {}\n    /{y}/b: {}", "policy.yaml:4:13: gate.routes./{y}/b: "},
		{"exempt and more", "gate:\n  routes:\n    /a: {exempt: true, cost: 2}", "policy.yaml:3:18: gate.routes./a.exempt: excludes"},
		{"cap and stream", "gate:\n  routes:\n    /a: {cap: 1, stream: 2}", "policy.yaml:3:15: gate.routes./a.cap: not together"},
		{"negative cost", "gate:\n  routes:\n    /a: {cost: -1}", "policy.yaml:3:16: gate.routes./a.cost: must be"},
		{"negative timeout", "gate:\n  routes:\n    /a: {timeout: -1s}", "policy.yaml:3:19: gate.routes./a.timeout: must be"},
		{"bad proxy", "gate:\n  client_ip:\n    trusted: [10.0.0.0/99]", "gate.client_ip: caller: ClientIP.Trusted[0]"},
		{"bad digest", "gate:\n  callers:\n    - api_key: {header: X-K, keys: [{sha256: abc}]}", "policy.yaml:3:37: gate.callers.0.api_key.keys.0: sha256 must be"},
		{"same key twice", "gate:\n  callers:\n    - api_key: {header: X-K, keys: [{key: a}, {key: a}]}", "gate.callers.0.api_key.keys.1: the same key twice"},
		{"no way to tell", "gate:\n  callers:\n    - {}", "policy.yaml:3:7: gate.callers.0: one of api_key"},
		{"two ways to tell", "gate:\n  callers:\n    - {header: A, address: true}", "gate.callers.0: one of api_key"},
		{"unknown layer", "gate:\n  shadow: [queue]", "policy.yaml:2:11: gate.shadow: unknown \"queue\"; there are: capacity, rate"},
		{"unknown header set", "gate:\n  headers: [rfc]", "gate.headers: unknown \"rfc\""},
		{"unknown outcomes", "gate:\n  outcomes: maybe", "policy.yaml:2:13: gate.outcomes: unknown \"maybe\""},
		{"negative deadline", "gate:\n  deadline: {longest: -1s}", "policy.yaml:2:23: gate.deadline.longest: must not"},
		{"unknown allowance", "gate:\n  limits:\n    rate: {rate: 1/s, burst: 1, plans: {a: {allow: all}}}", "gate.limits.rate.plans.a.allow: unknown"},
		{"plan beyond sense", "gate:\n  limits:\n    rate: {rate: 1/s, burst: 1, plans: {a: {share: 2}}}", "gate.limits.rate: "},
		{"count and rate", "gate:\n  limits:\n    quota: {rate: 1/s, count: 5, per: 24h}", "policy.yaml:3:12: gate.limits.quota: either rate"},
		{"count without per", "gate:\n  limits:\n    quota: {count: 5}", "policy.yaml:3:12: gate.limits.quota: ratelimit/window"},
		{"plan of a count", "gate:\n  limits:\n    quota: {count: 5, per: 24h, plans: {a: {rate: 1/s}}}", "gate.limits.quota.plans.a: a plan of a count"},
		{"plan of no count", "gate:\n  limits:\n    quota: {count: 5, per: 24h, plans: {a: {}}}", "gate.limits.quota.plans.a.count: must be"},
		{"count in a plan of a rate", "gate:\n  limits:\n    rate: {rate: 1/s, burst: 1, plans: {a: {count: 3}}}", "gate.limits.rate.plans.a.count: a plan of a rate"},
		{"redis and no way to it", "redis: redis://h:1\ngate:\n  limits:\n    rate: {rate: 1/s, burst: 1}", "policy.yaml:4:11: gate.limits.rate: redis is set"},
		{"outbound", "outbound:\n  retry: {attempts: -1}", "outbound: "},
		{"plans of calls that go out", "outbound:\n  rate: {rate: 1/s, burst: 1, plans: {gold: {rate: 2/s, burst: 2}}}", "policy.yaml:2:38: outbound.rate.plans: plans are of callers"},
		{"outbound law", "outbound:\n  in_flight: {fixed: 0}", "policy.yaml:2:14: outbound.in_flight: shed: Fixed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := build(c.text, Resources{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v\nwant %s", err, c.want)
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
