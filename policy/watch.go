package policy

import (
	"context"
	"crypto/sha256"
	"io"
	"os"
	"time"
)

// Watch calls changed, on the calling goroutine,
// each time the content of the file at path has changed and has then stayed the
// same for one look, so that a file in the middle of being written is not read. It
// blocks until ctx ends. It looks every so often; zero or less means 2 s.
//
// It reads the file instead of asking the system for events: that sees a file that
// is replaced, a link that moves as Kubernetes moves it, and a network mount, all
// alike. A file that cannot be read, or is larger than [MaxSize], counts as
// unchanged: a deploy may be half way.
func Watch(ctx context.Context, path string, every time.Duration, changed func()) {
	if every <= 0 {
		every = 2 * time.Second
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	told, _ := fingerprint(path)
	seen := told
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, ok := fingerprint(path)
		if !ok {
			continue
		}
		if now == seen && now != told {
			told = now
			changed()
		}
		seen = now
	}
}

// fingerprint returns the hash of the file's content.
func fingerprint(path string) (sum digest, ok bool) {
	f, err := os.Open(path)
	if err != nil {
		return sum, false
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(f, MaxSize+1))
	if err != nil || n > MaxSize {
		return sum, false
	}
	return digest(h.Sum(nil)), true
}
