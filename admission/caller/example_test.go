package caller_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/go-chi/httprate"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

func ExampleAPIKey() {
	plans := map[string]caller.Caller{
		"acme-key":   {Key: "acme", Plan: "pro", Level: caller.AtLeast(priority.High)},
		"globex-key": {Key: "globex", Plan: "free", Level: caller.AtMost(priority.Batch)},
	}
	identify := caller.APIKey("X-API-Key", func(_ context.Context, key string) (caller.Caller, bool) {
		c, ok := plans[key]
		return c, ok
	})
	for _, key := range []string{"acme-key", "made-up"} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("X-API-Key", key)
		c, _ := identify(r)
		fmt.Printf("%s: %q on plan %q, verified %v\n", key, c.Key, c.Plan, c.Verified)
	}
	// Output:
	// acme-key: "acme" on plan "pro", verified true
	// made-up: "" on plan "", verified false
}

func ExampleHeader() {
	identify := caller.Header("X-User-ID") // the authenticating gateway in front sets it
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("X-User-ID", "ann")
	c, _ := identify(r)
	fmt.Println(c.Space, c.Key, c.Verified)
	// Output: header:X-User-Id ann true
}

func ExampleKeyFunc() {
	var byHost httprate.KeyFunc = func(r *http.Request) (string, error) { return r.Host, nil }
	c, _ := caller.KeyFunc(byHost)(httptest.NewRequest(http.MethodGet, "https://shop.example/", nil))
	fmt.Println(c.Key)
	// Output: shop.example
}

func ExampleFirstOf() {
	lookup := func(context.Context, string) (caller.Caller, bool) { return caller.Caller{}, false }
	identify := caller.FirstOf(caller.APIKey("X-API-Key", lookup), caller.Header("X-User-ID"))
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("X-API-Key", "unknown")
	r.Header.Set("X-User-ID", "ann")
	c, _ := identify(r)
	fmt.Println(c.Key)
	// Output: ann
}

func ExampleJoin() {
	addresses, err := caller.NewAddresses(caller.ClientIP{})
	if err != nil {
		panic(err)
	}
	identify := caller.Join(caller.Header("X-User-ID"), addresses.Identify) // each user, from each address
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("X-User-ID", "ann")
	c, _ := identify(r)
	fmt.Println(c.Key)
	// Output: 16:header:X-User-Id3:ann4:addr9:192.0.2.1
}

func ExampleNewAddresses() {
	addresses, err := caller.NewAddresses(caller.ClientIP{Trusted: []string{"10.0.0.0/8"}})
	if err != nil {
		panic(err)
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("X-Forwarded-For", "1.1.1.1, 203.0.113.50, 10.0.0.9")
	r.RemoteAddr = "10.0.0.5:41234"
	fmt.Println("through our proxy:", addresses.Key(r))
	r.RemoteAddr = "[2001:db8:1:2::99]:41234"
	fmt.Println("directly:", addresses.Key(r))

	_, err = caller.NewAddresses(caller.ClientIP{Trusted: []string{"10.0.0.0/33"}})
	fmt.Println(err)
	// Output:
	// through our proxy: 203.0.113.50
	// directly: 2001:db8:1:2::/64
	// caller: ClientIP.Trusted[0]: "10.0.0.0/33" is no CIDR prefix, address or "unix"
}

func ExampleRejection() {
	refusal := &admission.Rejection{Reason: shed.RateLimited, RetryAfter: 1500 * time.Millisecond, Policy: "tenant"}
	fmt.Println(refusal)

	w := httptest.NewRecorder()
	refusal.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	fmt.Println(w.Code, "after", w.Header().Get("Retry-After"), "s:", w.Header().Get("Headgate-Reason"))
	fmt.Print(w.Body)
	// Output:
	// headgate: rate-limited by "tenant", retry after 2 s
	// 429 after 2 s: rate-limited
	// {"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota Exceeded","status":429,"detail":"More requests than this caller's limit allows. Retry-After says when to try again.","reason":"rate-limited","violated-policies":["tenant"]}
}
