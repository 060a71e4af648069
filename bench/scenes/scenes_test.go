package scenes

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"
)

// One failover of each kind, and one slow link of each kind: nothing passes above the
// bound, and the ceiling is shared in the end. The figures are for the log; the command
// makes the table.
// Case ST-01: tried on the product
// Case ST-04: tried on the product
func TestScenesOnRealServers(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv("CI") != "" || os.Getenv("HEADGATE_REQUIRE_REDIS") != "" {
			t.Fatal("redis-server is not on the PATH: apt-get install redis-server")
		}
		t.Skip("no redis-server on the PATH")
	}
	for _, name := range []string{"cluster-kill", "sentinel-kill", "far-50ms", "jitter-25ms", "half-open", "cut"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			some, err := choose(Scenes(), name)
			if err != nil {
				t.Fatal(err)
			}
			r, err := some[0].play(context.Background(), "redis-server", 12*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range r.rows() {
				t.Log(x.cells())
				if x.Admitted == 0 || x.Beyond > 1 {
					t.Errorf("%s: %d admitted, %.1f above the bound in some window", x.Limit, x.Admitted, x.Beyond)
				}
			}
			if !r.shared {
				t.Error("not shared in the end")
			}
		})
	}
}
