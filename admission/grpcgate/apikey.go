package grpcgate

import (
	"context"
	"net/http"
	"strings"
	"sync"

	"google.golang.org/grpc/metadata"

	"github.com/headgate-go/headgate/admission/caller"
)

// APIKey identifies callers as [caller.APIKey] does, by a key of the metadata that it reads
// itself: no header has to be made of it, so that [Options].Metadata may be empty and not
// nil. Requests of HTTP that meet the same gate are identified by their header. lookup is
// given the context of the call; a call costs one allocation beyond those of lookup. It
// panics when name is empty or lookup is nil.
func APIKey(name string, lookup func(ctx context.Context, key string) (caller.Caller, bool)) caller.Identify {
	byHeader := caller.APIKey(name, lookup)
	k := key{metadata: strings.ToLower(name), header: http.CanonicalHeaderKey(name)}
	return func(r *http.Request) (caller.Caller, error) {
		if len(r.Header) > 0 {
			return byHeader(r)
		}
		values := metadata.ValueFromIncomingContext(r.Context(), k.metadata)
		if len(values) == 0 {
			return byHeader(r)
		}
		h := headers.Get().(http.Header) // byHeader keeps neither request nor header
		before := r.Header
		h[k.header], r.Header = values, h
		c, err := byHeader(r)
		r.Header = before
		clear(h)
		headers.Put(h)
		return c, err
	}
}

// headers are empty, and used again.
var headers = sync.Pool{New: func() any { return make(http.Header, 1) }}
