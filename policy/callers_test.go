package policy

import (
	"net/http/httptest"
	"testing"

	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/priority"
)

func TestCallersAreToldAsTheFileSays(t *testing.T) {
	opts, err := build(`
gate:
  limits: {rate: {rate: 1/s, burst: 1, plans: {gold: {rate: 2/s, burst: 2}}}}
  callers:
    - api_key:
        header: X-API-Key
        keys:
          - {key: secret, name: acme, plan: gold, at_least: high}
          # printf %s other | sha256sum
          - {sha256: d9298a10d1b0735837dc4bd85dac641b0f3cef27a47e5d53a54f2f3f5b2fcffa, at_most: batch}
    - join: [{header: X-Org}, {address: true}]
`, Resources{})
	if err != nil {
		t.Fatal(err)
	}
	high, batch := caller.AtLeast(priority.High), caller.AtMost(priority.Batch)
	for _, c := range []struct {
		name, header, value string
		want                caller.Caller
	}{
		{"by name", "X-API-Key", "secret", caller.Caller{Key: "acme", Space: "key", Plan: "gold", Level: high, Verified: true}},
		{"by hash", "X-API-Key", "other", caller.Caller{
			Key: "d9298a10d1b0735837dc4bd85dac641b0f3cef27a47e5d53a54f2f3f5b2fcffa", Space: "key", Level: batch, Verified: true,
		}},
		{"unknown", "X-API-Key", "made-up", caller.Caller{}},
		{"joined", "X-Org", "acme", caller.Caller{Key: "12:header:X-Org4:acme4:addr9:192.0.2.1", Space: "join", Verified: true}},
		{"nobody", "X-Other", "x", caller.Caller{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/", nil)
			r.Header.Set(c.header, c.value)
			if got, err := opts.Identify(r); err != nil || got != c.want {
				t.Errorf("got %+v, %v\nwant %+v", got, err, c.want)
			}
		})
	}
}
