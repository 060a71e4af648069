package policy

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestWatchTellsOfEachContentOnceItHasSettled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write := func(s string) {
		if err := os.WriteFile(path, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var told atomic.Int64
		done := make(chan struct{})
		go func() {
			defer close(done)
			Watch(ctx, path, time.Second, func() { told.Add(1) })
		}()
		synctest.Wait()
		look := func(want int64, when string) {
			t.Helper()
			time.Sleep(time.Second)
			synctest.Wait()
			if told.Load() != want {
				t.Errorf("%s: told %d times, want %d", when, told.Load(), want)
			}
		}
		look(0, "unchanged")
		write("b")
		look(0, "half written")
		write("bb")
		look(0, "still being written")
		look(1, "settled")
		look(1, "told already")
		os.Remove(path)
		look(1, "gone")
		write("bb")
		look(1, "back as it was")
		write("a")
		look(1, "changed back")
		look(2, "changed back and settled")
		cancel()
		<-done
	})
}
