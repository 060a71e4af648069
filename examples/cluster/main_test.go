package main

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"
)

func TestCeilingHoldsThroughAKill(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv("CI") != "" || os.Getenv("HEADGATE_REQUIRE_REDIS") != "" {
			t.Fatal("redis-server is not on the PATH: apt-get install redis-server")
		}
		t.Skip("no redis-server on the PATH")
	}
	if err := run(context.Background(), 300, 60, 3, 9*time.Second, "", true); err != nil {
		t.Error(err)
	}
}
