package admission

import "github.com/headgate-go/headgate/priority"

// lowered returns the level of a request to a route whose client sent the given
// values of the priority header. A client may lower its own level, never raise it.
// Anything but one value that names a level leaves the route's.
func lowered(route priority.Level, values []string) priority.Level {
	value, ok := onlyValue(values)
	if !ok {
		return route
	}
	wish, ok := priority.Parse(value)
	if !ok {
		return route
	}
	return min(route, wish)
}
