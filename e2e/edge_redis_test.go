package e2e

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// One line of the file makes a limit everybody's; while the store is away each edge
// keeps to its share, and says so.
func TestTwoEdgesShareALimitThroughRedis(t *testing.T) {
	need(t, "redis-server")
	b, redis := newBackend(t), startRedis(t)
	file := "redis: redis://" + redis.addr + "\ngate:\n  limits: {rate: {rate: 1/h, burst: 6}}\n"
	one, other := startEdge(t, b.URL, file), startEdge(t, b.URL, file)
	served := 0
	for range 6 {
		for _, e := range []*edge{one, other} {
			if status(t, e.base+"/hello") == 200 {
				served++
			}
		}
	}
	if served != 6 {
		t.Errorf("%d of a shared burst of 6 were served", served)
	}
	one.write(strings.Replace(file, "burst: 6", "burst: 7", 1))
	one.signal(syscall.SIGHUP)
	one.said("(reloaded)")
	if got := status(t, one.base+"/hello"); got != 429 {
		t.Errorf("after a reload: %d, the balance was not kept", got)
	}
	redis.kill()
	within(t, 10*time.Second, "an answer while the store is away", func() bool {
		code := status(t, other.base+"/hello")
		return code == 200 || code == 429
	})
	within(t, 10*time.Second, "a warning, and still ready", func() bool {
		code, _, said := visit(t, from(t, "127.0.0.1"), other.admin+"/readyz")
		return code == 200 && strings.Contains(said, "warning")
	})
}
