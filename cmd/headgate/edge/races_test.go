package edge

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Whoever changes the policy, and when: every balance is kept, and what is in force is
// one configuration as a whole.
func TestChangesThatMeetGiveNobodyAToken(t *testing.T) {
	const burst = 20
	file := fmt.Sprintf("gate:\n  limits: {rate: {rate: 1/h, burst: %d}}\n  capacity: {limit: {fixed: 60}, max_wait: 61s}\n", burst)
	e, path, _ := changeable(t, file)
	file += "admin_token_file: " + e.settings.Token + "\n"
	var served atomic.Int64
	var all sync.WaitGroup
	for i := range 3 {
		for _, do := range []func(n int){
			func(int) {
				if w := get(e, "/"); w.Code == 200 {
					served.Add(1)
				} else if w.Code != 429 {
					t.Errorf("status %d", w.Code)
				}
			},
			func(n int) {
				asked(e, "PATCH", "/policy", "secret", fmt.Sprintf("gate: {capacity: {limit: {fixed: %d}, max_wait: %ds}}", 10+n, 11+n))
			},
			func(int) {
				asked(e, "PUT", "/policy", "secret", strings.Replace(file[:strings.Index(file, "admin")], "60", "70", 1))
			},
			func(n int) { asked(e, "PATCH", "/policy?dry_run=1", "secret", "gate: {capacity: {limit: {fixed: 1}}}") },
			func(n int) {
				if n%10 == i {
					write(t, path, file)
				}
				e.reload("test")
			},
			func(int) { asked(e, "GET", "/policy", "", "") },
		} {
			all.Go(func() {
				for n := range 30 {
					do(n)
				}
			})
		}
	}
	all.Wait()
	if served.Load() != burst {
		t.Errorf("%d served of a burst of %d", served.Load(), burst)
	}
	e.reload("the last")
	if slots := e.gate.Stats().Pools[0].Limit; slots != 60 {
		t.Errorf("%d slots after the last reload", slots)
	}
}
