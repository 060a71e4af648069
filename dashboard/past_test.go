package dashboard_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/dashboard"
)

// pastOf returns the frames that a page begins with.
func pastOf(t *testing.T, h http.Handler) (frames []struct{ At int64 }) {
	t.Helper()
	r := httptest.NewRequest("GET", "/headgate/history.json", nil)
	r.Header.Set("Accept-Encoding", "gzip")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != 200 || w.Header().Get("Content-Encoding") != "gzip" || w.Header().Get("Vary") != "Accept-Encoding" {
		t.Fatalf("%d, %v", w.Code, w.Header())
	}
	z, err := gzip.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(z).Decode(&frames); err != nil {
		t.Fatal(err)
	}
	return frames
}

func TestThePageBeginsWithTheLastFiveMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := dashboard.Handler(dashboard.Gate(everyReason{}))
		if frames := pastOf(t, h); len(frames) != 0 {
			t.Errorf("%d frames before anything happened", len(frames))
		}
		time.Sleep(time.Minute + time.Second)
		if frames := pastOf(t, h); len(frames) != 30 {
			t.Errorf("%d frames after a minute, want one every 2 s", len(frames))
		}
		time.Sleep(time.Hour)
		frames := pastOf(t, h)
		now := time.Now().UnixMilli()
		for i, f := range frames {
			if i > 0 && f.At <= frames[i-1].At {
				t.Fatalf("frame %d is not after the one before", i)
			}
		}
		if first, last := now-frames[0].At, now-frames[len(frames)-1].At; first < 298_000 || first > 302_000 || last > 2000 {
			t.Errorf("from %d ms to %d ms ago, want five minutes", first, last)
		}
	})
}

// manyPools has frames of some 40 KB.
type manyPools struct{ asked *atomic.Int64 }

func (m manyPools) Stats() admission.Stats {
	m.asked.Add(1)
	s := admission.Stats{Name: "wide"}
	for i := range 200 {
		s.Pools = append(s.Pools, admission.PoolStats{Name: fmt.Sprint("pool-", i)})
	}
	return s
}

func TestThePastIsBoundedHoweverMuchIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		h := dashboard.Handler(dashboard.Gate(manyPools{&asked}))
		time.Sleep(20 * time.Minute)
		frame := len(get(h, "/headgate/data.json").Body.Bytes())
		if frames := pastOf(t, h); len(frames) < 2 || len(frames)*frame > 400<<10 {
			t.Errorf("%d frames of %d bytes each", len(frames), frame)
		}
		if n := asked.Load(); n > 130 {
			t.Errorf("asked %d times in 20 minutes, want every 10 s", n)
		}
	})
}

// moody panics when it is asked for the second time.
type moody struct{ asked *atomic.Int64 }

func (m moody) Stats() admission.Stats {
	if m.asked.Add(1) == 2 {
		panic("not now")
	}
	return admission.Stats{Name: "moody"}
}

func TestAProgramsPanicIsAGapInThePast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := dashboard.Handler(dashboard.Gate(moody{new(atomic.Int64)}))
		time.Sleep(31 * time.Second)
		frames := pastOf(t, h)
		if len(frames) < 5 || frames[1].At-frames[0].At < 10_000 {
			t.Errorf("%v", frames)
		}
	})
}

func TestThePastEndsWithTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		h := dashboard.Handler(dashboard.Gate(manyPools{&asked}))
		time.Sleep(5 * time.Second)
		runtime.KeepAlive(h)
		before := asked.Load()
		for range 3 {
			runtime.GC()
		}
		time.Sleep(time.Hour)
		if n := asked.Load(); before == 0 || n > before+1 {
			t.Errorf("asked %d times, %d of them after the handler was garbage", n, n-before)
		}
	})
}

func TestWithoutGzipThePastIsNow(t *testing.T) {
	w := get(dashboard.Handler(dashboard.Gate(everyReason{})), "/headgate/history.json")
	var frames []struct{ At int64 }
	if err := json.Unmarshal(w.Body.Bytes(), &frames); err != nil || len(frames) != 1 || w.Header().Get("Content-Encoding") != "" {
		t.Errorf("%v, %v, %v", frames, err, w.Header())
	}
}
