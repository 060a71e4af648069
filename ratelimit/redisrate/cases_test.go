package redisrate

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/account"
	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/redistest"
)

// service is a handler behind a gate with this limiter, as a program would have it.
func service(t testing.TB, l ratelimit.Limiter) http.Handler {
	t.Helper()
	gate, err := admission.New(admission.Options{Rate: l})
	if err != nil {
		t.Fatal(err)
	}
	return gate.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
}

// get sends n requests one after another and counts the answers.
func get(h http.Handler, n int) (codes map[int]int, took []time.Duration) {
	codes = map[int]int{}
	for range n {
		w, from := httptest.NewRecorder(), time.Now()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		took = append(took, time.Since(from))
		codes[w.Code]++
	}
	return codes, took
}

const slow = 1.0 / 3600 // a refill too slow to matter

// Case RD-01: public reports on limits kept in Redis
func TestNothingListensOnTheStoresPort(t *testing.T) {
	t.Parallel()
	closed := redis.NewClient(&redis.Options{Addr: redistest.FreeAddr(t)})
	defer closed.Close()
	codes, took := get(service(t, perKey(t, closed, slow, 10, shipped)), 100)
	if codes[200] != 10 || codes[429] != 90 {
		t.Errorf("answers %v, want 10 x 200 and 90 x 429", codes)
	}
	if worst := slices.Max(took); worst > 20*time.Millisecond+stall {
		t.Errorf("a request took %v with a store timeout of 20 ms", worst)
	}
}

// stall is what a busy machine may add to anything that is measured once.
const stall = 80 * time.Millisecond

// Case RD-02: public reports on limits kept in Redis
func TestASuspendedStoreDelaysOnlyTheFirst(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	l := perKey(t, s.Client(t), 1000, 1000, timeouts(50*time.Millisecond, 100*time.Millisecond))
	h := service(t, l)
	s.Suspend()
	defer s.Resume()
	codes, took := get(h, 500)
	if codes[200] != 500 {
		t.Errorf("answers %v: the local limit admits all 500", codes)
	}
	slices.SortStableFunc(took[20:], func(a, b time.Duration) int { return int(a - b) })
	if m := took[20+240]; m > 5*time.Millisecond {
		t.Errorf("from the 20th on the median is %v", m)
	}
	long := 0
	for _, d := range took {
		if d > 60*time.Millisecond+stall {
			t.Errorf("a request took %v with a store timeout of 50 ms", d)
		}
		if d > 40*time.Millisecond {
			long++
		}
	}
	if long > 3 {
		t.Errorf("%d requests waited for the store, want the first", long)
	}
	if n := l.Snapshot().Decisions[ratelimit.SourceShare].Admitted; n != 500 {
		t.Errorf("%d decided by the share: %+v", n, l.Snapshot())
	}
}

// Case RD-04: public reports on limits kept in Redis
func TestAStoreThatComesBackIsUsedAgain(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	var lines lineCount
	l := perKey(t, s.Client(t), 1000, 100, shipped, logger(slog.New(slog.NewTextHandler(&lines, nil))))
	key := ratelimit.Key{ID: "steady"}
	ask := func() ratelimit.Decision {
		time.Sleep(2 * time.Millisecond)
		return l.Take(context.Background(), time.Now(), key, 1, 0)
	}
	shared := func(d ratelimit.Decision) bool {
		return d.Source == ratelimit.SourceSlot || d.Source == ratelimit.SourceDirect
	}
	if d := ask(); !d.OK || !shared(d) {
		t.Fatalf("%+v", d)
	}
	s.Kill()
	outage := 30 * time.Second
	down := time.Now()
	probes := 0
	for time.Since(down) < outage {
		if d := ask(); !d.OK && d.Source != ratelimit.SourceShare {
			t.Fatalf("%+v", d)
		}
		if probes == 0 && time.Since(down) > time.Second {
			probes = calls(l)
		}
	}
	if st := l.Snapshot(); !st.Degraded || st.State == account.Shared.String() || st.Why != account.WhyRefused.String() {
		t.Errorf("in the outage: %+v", st)
	}
	if n := calls(l) - probes; n > 80 {
		t.Errorf("%d probes in 29 s", n)
	}
	if n := lines.n.Load(); n > 3 {
		t.Errorf("%d log lines", n)
	}
	s.Start()
	up := time.Now()
	for !shared(ask()) {
		if time.Since(up) > 10*time.Second {
			t.Fatalf("not shared again: %+v", l.Snapshot())
		}
	}
	if took := time.Since(up); took > 5*time.Second {
		t.Errorf("shared again only after %v", took)
	}
	redistest.Eventually(t, 2*time.Second, "gauge back at 0", func() bool { return !l.Snapshot().Degraded })
	if lines.n.Load() < 2 || lines.n.Load() > 4 {
		t.Errorf("%d log lines for one outage", lines.n.Load())
	}
}

// calls counts calls to the store, whatever came of them.
func calls(l *Limiter) (n int) {
	for _, c := range l.Snapshot().Calls {
		n += int(c.Count)
	}
	return n
}

type lineCount struct{ n atomic.Int64 }

func (c *lineCount) Write(b []byte) (int, error) {
	c.n.Add(1)
	return len(b), nil
}

// Case RD-05: public reports on limits kept in Redis
func TestAFlushOfScriptsIsNoOutage(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	l := perKey(t, s.Client(t), slow, 10)
	h := service(t, l)
	if codes, _ := get(h, 6); codes[200] != 6 {
		t.Fatalf("%v", codes)
	}
	s.Do("script", "flush")
	if codes, _ := get(h, 10); codes[200] != 4 || codes[429] != 6 {
		t.Errorf("after a flush of the scripts: %v, want 4 x 200 and 6 x 429", codes)
	}
	if st := l.Snapshot(); st.Degraded || st.Decisions[ratelimit.SourceShare].Admitted != 0 {
		t.Errorf("fell back: %+v", st)
	}
}

// Case RD-09: public reports on limits kept in Redis
func TestNamesWithBracesKeepToOneSlot(t *testing.T) {
	t.Parallel()
	nodes := redistest.Cluster(t)
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{nodes[0].Addr, nodes[1].Addr, nodes[2].Addr}})
	defer rdb.Close()
	reads, writes := perKey(t, rdb, slow, 7, name("reads")), perKey(t, rdb, slow, 3, name("wr{i}tes"))
	tenants := []string{"{a}", "a{b}c", "{}", "}{", strings.Repeat("é世", 60), "", ":", "a:b", "%7B", "{a}{b}"}
	for i := len(tenants); i < 100; i++ {
		tenants = append(tenants, fmt.Sprintf("tenant {%d", i))
	}
	for _, name := range tenants {
		if r, w := admit(reads, name, 12), admit(writes, name, 12); r != 7 || w != 3 {
			t.Errorf("tenant %q: %d reads of 7, %d writes of 3", name, r, w)
		}
	}
	for _, l := range []*Limiter{reads, writes} {
		st := l.Snapshot()
		if st.Degraded || st.Calls[0].Count == 0 || calls(l) != int(st.Calls[0].Count) {
			t.Errorf("%+v", st)
		}
	}
	for _, n := range nodes {
		if size := n.Do("dbsize").(int64); size < 30 {
			t.Errorf("a node has %d of about 200 keys", size)
		}
	}
}

// Case RD-13: public reports on limits kept in Redis
func TestOneTokenAtATimeIsNotLost(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	l := perKey(t, s.Client(t), 2, 1)
	ok := 0
	for range 20 {
		ok += admit(l, "a", 1)
		time.Sleep(510 * time.Millisecond)
	}
	if ok < 19 {
		t.Errorf("admitted %d of 20", ok)
	}
}

// Case RD-14: public reports on limits kept in Redis
func TestANilClientIsAnErrorOfSetUp(t *testing.T) {
	t.Parallel()
	var none *redis.Client
	var noCluster *redis.ClusterClient
	for _, rdb := range []redis.UniversalClient{none, noCluster, nil} {
		l := PerKey(rdb, 10, 10, Options{})
		if err := l.Validate(); err == nil {
			t.Errorf("%T is accepted", rdb)
		}
		if _, err := admission.New(admission.Options{Rate: l}); err == nil {
			t.Errorf("a gate takes %T", rdb)
		}
		d := l.Take(context.Background(), time.Now(), ratelimit.Key{ID: "a"}, 1, 0)
		if d.OK || !d.Never {
			t.Errorf("%+v", d)
		}
		d.Undo(time.Now())
		l.Throttled(time.Now(), ratelimit.Key{}, time.Second, 0.7)
		if l.Policy(ratelimit.Key{}).Burst != 10 || l.Close() != nil || l.Snapshot().Name == "" {
			t.Error("a limiter without a client misbehaves")
		}
	}
}

// Case RD-18: public reports on limits kept in Redis
func TestALimitChangesUnderSpentTokens(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ burst, most int }{{10, 2}, {40, 22}} {
		s := redistest.Start(t)
		if got := admit(perKey(t, s.Client(t), slow, 20), "a", 18); got != 18 {
			t.Fatal(got)
		}
		l := perKey(t, s.Client(t), slow, c.burst)
		ok := 0
		for range 50 {
			d := l.Take(context.Background(), time.Now(), ratelimit.Key{ID: "a"}, 1, 0)
			if d.Remaining < 0 || d.Remaining > c.burst {
				t.Errorf("limit %d: remaining %d", c.burst, d.Remaining)
			}
			if d.OK {
				ok++
			}
		}
		if ok > c.most || ok < 2 {
			t.Errorf("limit %d: %d more admitted, want 2 to %d", c.burst, ok, c.most)
		}
		if l.Snapshot().Degraded {
			t.Errorf("%+v", l.Snapshot())
		}
	}
}

// Case RD-20: public reports on limits kept in Redis
func TestThreeProcessesShareOneCeiling(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	var procs []http.Handler
	for range 3 {
		procs = append(procs, service(t, perKey(t, s.Client(t), 0.5, 30)))
	}
	begin := time.Now()
	var ok atomic.Int64
	var wg sync.WaitGroup
	for _, h := range procs {
		wg.Go(func() {
			codes, _ := get(h, 30)
			ok.Add(int64(codes[200]))
		})
	}
	wg.Wait()
	refilled := int64(time.Since(begin).Seconds()*0.5) + 1
	if n := ok.Load(); n < 30 || n > 30+refilled {
		t.Errorf("three processes admitted %d of a ceiling of 30", n)
	}
}
