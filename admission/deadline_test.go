package admission

import (
	"context"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestTimeoutHeaderReadsMillisecondsAndDurations(t *testing.T) {
	const longest = 5 * time.Second
	d := TimeoutHeader("X-Timeout", longest)
	for value, want := range map[string]time.Duration{
		"250": 250 * time.Millisecond, "250ms": 250 * time.Millisecond, "1.5s": 1500 * time.Millisecond, "1": time.Millisecond,
		"0000000000000000000000000000250": 250 * time.Millisecond, "1h": longest, "5001": longest,
		"": longest, "0": longest, "0s": longest, "-5": longest, "-5s": longest, "+5": longest, "banana": longest, "1e3": longest, "NaN": longest,
		"99999999999999999999999": longest, "9223372036854775807": longest, "9223372036855": longest, "2562048h": longest,
		"1.5": longest, "１": longest, "250\x00": longest, " ": longest, strings.Repeat("1", 1<<20): longest, strings.Repeat("0", 33): longest,
	} {
		h := http.Header{"X-Timeout": {value}}
		if got, ok := d.timeout(h); got != want || !ok {
			t.Errorf("X-Timeout %.40q: %v, %v; want %v", value, got, ok, want)
		}
	}
}

func TestGRPCTimeoutFollowsTheGrammar(t *testing.T) {
	const longest = 24 * time.Hour
	d := GRPCTimeout(longest)
	for value, want := range map[string]time.Duration{
		"1H": time.Hour, "2M": 2 * time.Minute, "3S": 3 * time.Second, "4m": 4 * time.Millisecond, "5u": 5 * time.Microsecond, "6n": 6,
		"99999999H": longest, "99999999n": 99999999, "100000000n": longest, "0S": longest, "00000000m": longest,
		"": longest, "S": longest, "10": longest, "-1S": longest, "1s": longest, "1 S": longest, "1.5S": longest, "1SS": longest,
	} {
		if got, ok := d.timeout(http.Header{"Grpc-Timeout": {value}}); got != want || !ok {
			t.Errorf("grpc-timeout %q: %v, %v; want %v", value, got, ok, want)
		}
	}
}

func TestEnvoyTimeoutIsMillisecondsOnly(t *testing.T) {
	d := EnvoyTimeout(time.Minute)
	for value, want := range map[string]time.Duration{"15000": 15 * time.Second, "15s": time.Minute, "0": time.Minute, "120000": time.Minute} {
		r := from("192.0.2.1:1", "X-Envoy-Expected-Rq-Timeout-Ms", value)
		if got, ok := d.timeout(r.Header); got != want || !ok {
			t.Errorf("%q: %v, %v; want %v", value, got, ok, want)
		}
	}
}

func TestAHeaderSentTwiceSaysNothing(t *testing.T) {
	d := TimeoutHeader("X-Timeout", time.Minute)
	if got, _ := d.timeout(http.Header{"X-Timeout": {"10", "20"}}); got != time.Minute {
		t.Errorf("got %v", got)
	}
}

func TestWithoutAMaximumOnlyTheHeaderCounts(t *testing.T) {
	d := TimeoutHeader("X-Timeout", 0)
	for value, want := range map[string]time.Duration{"250": 250 * time.Millisecond, "": 0, "banana": 0, "99999999999999999999": 0} {
		got, ok := d.timeout(http.Header{"X-Timeout": {value}})
		if ok != (want > 0) || ok && got != want {
			t.Errorf("%q: %v, %v", value, got, ok)
		}
	}
	if _, ok := (Deadline{}).timeout(http.Header{"X-Timeout": {"250"}}); ok {
		t.Error("the zero Deadline set a limit")
	}
}

func TestTheSmallestDeadlineWins(t *testing.T) {
	d := Deadlines(TimeoutHeader("X-Timeout", 10*time.Second), GRPCTimeout(0), Within(8*time.Second))
	for _, tc := range []struct {
		headers []string
		want    time.Duration
	}{
		{nil, 8 * time.Second},
		{[]string{"X-Timeout", "9s"}, 8 * time.Second},
		{[]string{"X-Timeout", "7s"}, 7 * time.Second},
		{[]string{"X-Timeout", "7s", "Grpc-Timeout", "6S"}, 6 * time.Second},
		{[]string{"X-Timeout", "5s", "Grpc-Timeout", "6S"}, 5 * time.Second},
	} {
		if got, ok := d.timeout(from("192.0.2.1:1", tc.headers...).Header); got != tc.want || !ok {
			t.Errorf("%v: %v, %v; want %v", tc.headers, got, ok, tc.want)
		}
	}
}

// deadlineOf is the deadline of r, which came at arrival.
func deadlineOf(d Deadline, r *http.Request, arrival time.Time) time.Time {
	v := &visit{config: &config{Options: Options{Deadline: d}}, route: &route{}, arrived: arrival}
	return exchange{visit: v, r: r}.deadline()
}

func TestDeadlineCountsFromArrivalAndTheContextCounts(t *testing.T) {
	arrival := time.Now()
	r := from("192.0.2.1:1", "X-Timeout", "100")
	if !deadlineOf(Deadline{}, r, arrival).IsZero() {
		t.Error("a deadline from nowhere")
	}
	if at := deadlineOf(TimeoutHeader("X-Timeout", time.Second), r, arrival); at != arrival.Add(100*time.Millisecond) {
		t.Errorf("header: %v", at.Sub(arrival))
	}
	for _, own := range []time.Duration{50 * time.Millisecond, 200 * time.Millisecond} {
		ctx, cancel := context.WithDeadline(context.Background(), arrival.Add(own))
		defer cancel()
		want := arrival.Add(min(own, 100*time.Millisecond))
		if at := deadlineOf(TimeoutHeader("X-Timeout", time.Second), r.WithContext(ctx), arrival); !at.Equal(want) {
			t.Errorf("context in %v: %v", own, at.Sub(arrival))
		}
		if at := deadlineOf(Deadline{}, r.WithContext(ctx), arrival); !at.Equal(arrival.Add(own)) {
			t.Errorf("context alone: %v", at.Sub(arrival))
		}
	}
}

func TestNegativeMaximumIsAnError(t *testing.T) {
	if err := Deadlines(Within(time.Second), GRPCTimeout(-1)).validate(); err == nil || !strings.Contains(err.Error(), "longest = -1ns") {
		t.Errorf("got %v", err)
	}
	for _, d := range []Deadline{{}, Within(0), GRPCTimeout(math.MaxInt64), Deadlines()} {
		if err := d.validate(); err != nil {
			t.Errorf("%+v: %v", d, err)
		}
	}
}

func TestDeadlinesAllocateNothing(t *testing.T) {
	d := Deadlines(TimeoutHeader("X-Timeout", 10*time.Second), GRPCTimeout(time.Minute), EnvoyTimeout(time.Minute))
	r := from("192.0.2.1:1", "X-Timeout", "1.5s", "Grpc-Timeout", "9S", "X-Envoy-Expected-Rq-Timeout-Ms", "700")
	if n := testing.AllocsPerRun(100, func() { d.timeout(r.Header) }); n != 0 {
		t.Errorf("%v allocs", n)
	}
}

func from(peer string, headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = peer
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}
