package priority

import "context"

type contextKey struct{}

// NewContext returns a context that carries l, for work that leaves the request
// which brought it: a worker queue, an outgoing call.
func NewContext(ctx context.Context, l Level) context.Context {
	return context.WithValue(ctx, contextKey{}, l)
}

// FromContext returns the level that ctx carries, or Normal and false. A context
// may answer for itself: its Value method receives [Key].
func FromContext(ctx context.Context) (Level, bool) {
	l, ok := ctx.Value(contextKey{}).(Level)
	if !ok {
		return Normal, false
	}
	return l, true
}

// Key is what [FromContext] asks a context for. A context type that knows its own
// level answers it with a [Level] and saves the allocation of [NewContext].
func Key() any { return contextKey{} }
