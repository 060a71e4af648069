package answer

import (
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/ratelimit"
)

func perMinute(n float64) rate.Limit { return rate.Limit(n / 60) }

func TestHeadersDescribeTheLimit(t *testing.T) {
	most := strconv.FormatInt(min(999999999999999, math.MaxInt), 10) // fifteen digits, where an int has them
	for _, tc := range []struct {
		name         string
		policy       ratelimit.Policy
		left         int
		reset        time.Duration
		declared, at string // the draft's two fields
		x            string // limit, remaining, reset
	}{
		{
			"a bucket", ratelimit.Policy{Name: "tenant", Rate: 50, Burst: 100}, 42, 1160 * time.Millisecond,
			`"tenant";q=100;w=2`, `"tenant";r=42;t=2`, "100 42 2",
		},
		{
			"a rate that is no exact float", ratelimit.Policy{Name: "tenant", Rate: perMinute(10), Burst: 10}, 0, 6 * time.Second,
			`"tenant";q=10;w=60`, `"tenant";r=0;t=6`, "10 0 6",
		},
		{
			"three a day", ratelimit.Policy{Name: "d", Rate: 3.0 / 86400, Burst: 3}, 0, 8 * time.Hour,
			`"d";q=3;w=86400`, `"d";r=0;t=28800`, "3 0 28800",
		},
		{
			"a long window", ratelimit.Policy{Name: "day", Rate: 1, Burst: 10_000, Window: 24 * time.Hour}, 9_999, time.Hour,
			`"day";q=10000;w=86400`, `"day";r=9999;t=3600`, "10000 9999 3600",
		},
		{
			"exactly a second", ratelimit.Policy{Name: "s", Rate: 100, Burst: 100}, 99, 1,
			`"s";q=100;w=1`, `"s";r=99;t=1`, "100 99 1",
		},
		{
			"a window below a second", ratelimit.Policy{Name: "s", Rate: 1000, Burst: 10}, 9, time.Millisecond,
			`"s";q=10`, `"s";r=9;t=1`, "10 9 1",
		},
		{
			"no refill", ratelimit.Policy{Name: "once", Burst: 1}, 0, 0,
			`"once";q=1`, `"once";r=0;t=0`, "1 0 0",
		},
		{
			"numbers beyond the field", ratelimit.Policy{Name: "big", Rate: 1e-300, Burst: math.MaxInt}, math.MaxInt, math.MaxInt64,
			`"big";q=` + most + `;w=999999999999999`, `"big";r=` + most + `;t=9223372037`, most + " " + most + " 9223372037",
		},
		{
			"numbers that cannot be", ratelimit.Policy{Name: "odd", Rate: rate.Limit(math.NaN()), Burst: -1}, -8, -time.Second,
			`"odd";q=0`, `"odd";r=0;t=0`, "0 0 0",
		},
		{
			"a name to escape", ratelimit.Policy{Name: `a"b\c` + "ä\r\n", Rate: 1, Burst: 1}, 0, 0,
			`"a\"b\\c____";q=1;w=1`, `"a\"b\\c____";r=0;t=0`, "1 0 0",
		},
		{"no name", ratelimit.Policy{Rate: 1, Burst: 1}, 0, 0, `"default";q=1;w=1`, `"default";r=0;t=0`, "1 0 0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := http.Header{}
			AllFields.Write(h, tc.policy, tc.left, tc.reset)
			if got := h.Get("RateLimit-Policy"); got != tc.declared {
				t.Errorf("RateLimit-Policy: %s; want %s", got, tc.declared)
			}
			if got := h.Get("RateLimit"); got != tc.at {
				t.Errorf("RateLimit: %s; want %s", got, tc.at)
			}
			x := []string{h.Get("X-RateLimit-Limit"), h.Get("X-RateLimit-Remaining"), h.Get("X-RateLimit-Reset")}
			if got := strings.Join(x, " "); got != tc.x {
				t.Errorf("X-RateLimit: %s; want %s", got, tc.x)
			}
		})
	}
}

func TestEachSetIsAnOptionOfItsOwn(t *testing.T) {
	p := ratelimit.Policy{Name: "t", Rate: 1, Burst: 1}
	for set, want := range map[Fields][]string{
		0:          nil,
		Draft11:    {"RateLimit-Policy", "RateLimit"},
		XRateLimit: {"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"},
	} {
		h := http.Header{}
		set.Write(h, p, 1, 0)
		for _, name := range want {
			if len(h.Values(name)) != 1 {
				t.Errorf("set %d: %s = %q", set, name, h.Values(name))
			}
		}
		if len(h) != len(want) {
			t.Errorf("set %d wrote %v", set, h)
		}
	}
}

func TestUnlimitedCallersAreToldNothing(t *testing.T) {
	h := http.Header{}
	AllFields.Write(h, ratelimit.Policy{Name: "t", Rate: rate.Inf}, 1, 0)
	if len(h) != 0 {
		t.Errorf("got %v", h)
	}
}

func TestHeadersAreWrittenOnceAndShareNothing(t *testing.T) {
	p := ratelimit.Policy{Name: "t", Rate: 1, Burst: 5}
	h := http.Header{}
	AllFields.Write(h, p, 4, 0)
	AllFields.Write(h, p, 3, 0)
	for name, values := range h {
		if len(values) != 1 || cap(values) != 1 {
			t.Errorf("%s = %q, capacity %d", name, values, cap(values))
		}
	}
	if got := h.Get("X-RateLimit-Remaining"); got != "3" {
		t.Errorf("remaining %s; want the later number", got)
	}
}

// What is rendered once for a limit is never told of another one, however alike.
func TestLimitsThatDifferInOneThingAreToldApart(t *testing.T) {
	p := ratelimit.Policy{Name: "aa", Rate: 1, Burst: 5}
	alike := []ratelimit.Policy{p, p, p, p, p, p}
	alike[1].Name, alike[2].Rate, alike[3].Burst, alike[4].Window, alike[5].Unit = "bb", 2, 6, time.Hour, "rows"
	want := []string{`"aa";q=5;w=5`, `"bb";q=5;w=5`, `"aa";q=5;w=3`, `"aa";q=6;w=6`, `"aa";q=5;w=3600`, `"aa";q=5;qu="rows";w=5`}
	for range 2 {
		for i, p := range alike {
			h := http.Header{}
			AllFields.Write(h, p, 4, time.Second)
			name := `"` + p.Name + `";r=4;t=1`
			if h.Get("RateLimit-Policy") != want[i] || h.Get("RateLimit") != name || h.Get("X-RateLimit-Limit") != strconv.Itoa(p.Burst) {
				t.Errorf("%+v: %v", p, h)
			}
		}
	}
}

func BenchmarkFields(b *testing.B) {
	p := ratelimit.Policy{Name: "tenant", Rate: 50, Burst: 1000}
	for name, set := range map[string]Fields{"x": XRateLimit, "draft": Draft11, "both": AllFields} {
		b.Run("set="+name, func(b *testing.B) {
			h := http.Header{}
			b.ReportAllocs()
			for b.Loop() {
				set.Write(h, p, 998, time.Second)
			}
		})
	}
}

func TestHeadersAllocateLittle(t *testing.T) {
	h, p := http.Header{}, ratelimit.Policy{Name: "tenant", Rate: 50, Burst: 1000}
	for set, most := range map[Fields]float64{Draft11: 2, XRateLimit: 2, AllFields: 2} {
		if n := testing.AllocsPerRun(100, func() { set.Write(h, p, 9999, 2*time.Hour) }); n > most {
			t.Errorf("set %d: %v allocs", set, n)
		}
	}
	if n := testing.AllocsPerRun(100, func() { XRateLimit.Write(h, p, 999, time.Second) }); n > 1 {
		t.Errorf("small numbers: %v allocs", n)
	}
}

var (
	policyField = regexp.MustCompile(`^"(?:[ !#-\[\]-~]|\\["\\])+";q=\d{1,15}(?:;w=[1-9]\d{0,14})?$`)
	limitField  = regexp.MustCompile(`^"(?:[ !#-\[\]-~]|\\["\\])+";r=\d{1,15};t=\d{1,15}$`)
)

func FuzzHeadersAreWellFormed(f *testing.F) {
	f.Add("tenant", 50.0, 100, int64(0), 42, int64(time.Second))
	f.Add("\"\\\x00", math.Inf(-1), -1, int64(-1), -1, int64(math.MinInt64))
	f.Add("", 5e-324, math.MaxInt, int64(math.MaxInt64), math.MaxInt, int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, name string, r float64, burst int, window int64, left int, reset int64) {
		p := ratelimit.Policy{Name: name, Rate: rate.Limit(r), Burst: burst, Window: time.Duration(window)}
		h := http.Header{}
		AllFields.Write(h, p, left, time.Duration(reset))
		if p.Unlimited() {
			return
		}
		if got := h.Get("RateLimit-Policy"); !policyField.MatchString(got) {
			t.Errorf("RateLimit-Policy: %s", got)
		}
		if got := h.Get("RateLimit"); !limitField.MatchString(got) {
			t.Errorf("RateLimit: %s", got)
		}
	})
}
