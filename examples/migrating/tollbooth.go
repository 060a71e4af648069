package migrating

import (
	"net/http"

	"github.com/didip/tollbooth/v8"
	"github.com/didip/tollbooth/v8/limiter"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
)

func tollboothBefore(login, search http.HandlerFunc) http.Handler {
	// tollbooth-before: begin
	lookup := limiter.IPLookup{Name: "X-Forwarded-For", IndexFromRight: 0}
	perClient := tollbooth.NewLimiter(20, nil).SetBurst(40).SetIPLookup(lookup)
	onLogin := tollbooth.NewLimiter(1, nil).SetBurst(5).SetIPLookup(lookup)

	mux := http.NewServeMux()
	mux.Handle("POST /login", tollbooth.HTTPMiddleware(onLogin)(login))
	mux.Handle("GET /search", tollbooth.HTTPMiddleware(perClient)(search))
	// tollbooth-before: end
	return mux
}

func tollboothAfter(login, search http.HandlerFunc) http.Handler {
	// tollbooth-after: begin
	gate := admission.MustNew(admission.Options{
		ClientIP: caller.ClientIP{Hops: 1}, // one proxy, and no client reaches this server past it
		Rate:     ratelimit.PerKey(20, 40),
	})
	onLogin := admission.Rate(ratelimit.PerKey(1, 5, ratelimit.Name("login"))) // besides the gate's own

	mux := http.NewServeMux()
	mux.Handle("POST /login", gate.At(priority.High, onLogin)(login))
	mux.Handle("GET /search", gate.At(priority.Normal)(search))
	// tollbooth-after: end
	return mux
}
