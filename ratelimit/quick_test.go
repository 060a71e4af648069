package ratelimit

import (
	"context"
	"testing"
	"time"
)

func TestQuick(t *testing.T) {
	l := PerKey(3.0/86400, 3)
	t0 := time.Unix(1000, 0)
	ctx := context.Background()
	for i := range 3 {
		d := l.Take(ctx, t0, Key{ID: "a"}, 1, 0)
		if !d.OK || d.Remaining != 2-i {
			t.Fatal(d)
		}
	}
	d := l.Take(ctx, t0, Key{ID: "a"}, 1, 0)
	if d.OK || d.Wait != 28800*time.Second {
		t.Fatal(d)
	}
	t1 := t0.Add(d.Wait)
	if d := l.Take(ctx, t1.Add(-1), Key{ID: "a"}, 1, 0); d.OK || d.Wait != 1 {
		t.Fatal(d)
	}
	if d := l.Take(ctx, t1, Key{ID: "a"}, 1, 0); !d.OK {
		t.Fatal(d)
	}
	if d := l.Take(ctx, t1, Key{ID: "a"}, 1, 0); d.OK {
		t.Fatal(d)
	}
	for _, r := range []float64{1, 10, 50, 0.3, 7.0 / 60, 1e9, 3e8, 1.0 / 3, 1e-9, 1e15, 3.14159265358979, 1.0 / (86400 * 30)} {
		a, b := fraction(r)
		t.Log(r, a, b)
	}
}
func BenchmarkTake(b *testing.B) {
	l := PerKey(50, 100)
	now := time.Now()
	ctx := context.Background()
	k := Key{Space: "key", ID: "acme-key"}
	b.ReportAllocs()
	for b.Loop() {
		l.Take(ctx, now, k, 1, 0)
	}
}
