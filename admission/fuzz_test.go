package admission

import (
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"
)

// bigTimeout reads digits with arbitrary precision.
func bigTimeout(digits string, unit, longest time.Duration) time.Duration {
	n, _ := new(big.Int).SetString(digits, 10)
	n.Mul(n, big.NewInt(int64(unit)))
	if n.Sign() == 0 || n.Cmp(big.NewInt(int64(longest))) > 0 {
		return longest
	}
	return time.Duration(n.Int64())
}

func FuzzDeadlineHeaders(f *testing.F) {
	for _, s := range []string{"", "0", "250", "1.5s", "-5", "99999999999999999999", "99999999H", "5m", "9223372036854775807", "1h1m1s1ms1us1ns"} {
		f.Add(s)
	}
	const longest = time.Hour
	f.Fuzz(func(t *testing.T, value string) {
		for name, d := range map[string]Deadline{
			"X-Timeout": TimeoutHeader("X-Timeout", longest), "Grpc-Timeout": GRPCTimeout(longest), "X-Envoy-Expected-Rq-Timeout-Ms": EnvoyTimeout(longest),
		} {
			got, ok := d.timeout(http.Header{name: {value}})
			if !ok || got <= 0 || got > longest {
				t.Fatalf("%s %q: %v, %v", name, value, got, ok)
			}
			if strings.Trim(value, "0123456789") == "" && value != "" && len(value) <= maxTimeoutText && name != "Grpc-Timeout" {
				if want := bigTimeout(value, time.Millisecond, longest); got != want {
					t.Errorf("%s %q: %v; want %v", name, value, got, want)
				}
			}
		}
	})
}
