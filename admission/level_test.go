package admission

import (
	"strings"
	"testing"

	"github.com/headgate-go/headgate/priority"
)

func TestClientsLowerTheirLevelButNeverRaiseIt(t *testing.T) {
	for _, route := range priority.All() {
		for _, wish := range priority.All() {
			if got := lowered(route, []string{wish.String()}); got != min(route, wish) {
				t.Errorf("route %v, client says %v: got %v", route, wish, got)
			}
		}
	}
}

// PR-04 without the gate: nothing unreadable moves the level.
func TestUnreadablePrioritiesLeaveTheRoutesLevel(t *testing.T) {
	for _, values := range [][]string{
		nil, {}, {""}, {"banana"}, {"-5"}, {"3"}, {"99999999999999999999"}, {"batch", "critical"}, {"batch", "batch"},
		{"batch,critical"}, {"critical\x00"}, {strings.Repeat("batch", 1<<18)},
	} {
		for _, route := range priority.All() {
			if got := lowered(route, values); got != route {
				t.Errorf("route %v, client says %.40q: got %v", route, values, got)
			}
		}
	}
}
