package pages

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/headgate-go/headgate/priority"
)

// withLocalAddr says on which socket a request came, as a server does.
func withLocalAddr(r *http.Request, a net.Addr) context.Context {
	return context.WithValue(r.Context(), http.LocalAddrContextKey, a)
}

// inAMinute gives a request a deadline and a level.
func inAMinute(r *http.Request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(priority.NewContext(r.Context(), priority.Batch), time.Minute)
}
