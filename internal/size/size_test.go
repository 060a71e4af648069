package size

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/headgate-go/headgate/internal/size/traffic"
	"github.com/headgate-go/headgate/shed"
)

// size runs the program and returns what it printed.
func size(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := Run(&out, args)
	return out.String(), err
}

// written writes a log and returns its name.
func written(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "access.log")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// generate writes n combined lines of the given rate, from callers in turn.
func generate(w io.Writer, n int, perSecond float64, callers int) {
	rng := rand.New(rand.NewPCG(1, 1))
	at := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	for i := range n {
		at = at.Add(time.Duration(rng.ExpFloat64() / perSecond * float64(time.Second)))
		took := time.Duration(rng.ExpFloat64() * float64(30*time.Millisecond))
		route := []string{"GET /search?q=x", "POST /checkout", fmt.Sprintf("GET /users/%d", i)}[i%3]
		fmt.Fprintf(w, "192.0.2.%d - - [%s] \"%s HTTP/1.1\" 200 12 \"-\" \"curl/8\" %.3f\n",
			i%callers, at.Add(took).Format("02/Jan/2006:15:04:05 -0700"), route, took.Seconds())
	}
}

func generated(n int, perSecond float64, callers int) string {
	var b strings.Builder
	generate(&b, n, perSecond, callers)
	return b.String()
}

func wantLines(t *testing.T, out string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(out, line) {
			t.Errorf("no %q in:\n%s", line, out)
		}
	}
}

func TestNumbersFollowFromLittlesLaw(t *testing.T) {
	s := little(500, 30*time.Millisecond, 120*time.Millisecond)
	if math.Abs(s.slots-17.92) > 0.05 || s.mean.Round(time.Millisecond) != 36*time.Millisecond || s.peak != 32 {
		t.Errorf("%+v", s)
	}
	out, err := size(t, "-rps", "500", "-p50", "30ms", "-p99", "120ms", "-callers", "40")
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, out, "shed.Throughput{Max: 64}", "MaxWait:  240ms", "ratelimit.PerKey(25, 50)", "27.9 requests a second")
}

// TestPoissonQuantiles compares both branches with counted draws of the process
// they stand for: how many arrivals fall into one unit of time.
func TestPoissonQuantiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for _, mean := range []float64{0.5, 18, 600} {
		q := poissonQuantile(mean, 0.99)
		const draws = 4000
		within := 0
		for range draws {
			n := 0
			for at := rng.ExpFloat64() / mean; at < 1; at += rng.ExpFloat64() / mean {
				n++
			}
			if n <= q {
				within++
			}
		}
		if part := float64(within) / draws; part < 0.98 {
			t.Errorf("mean %v: %d holds in %.3f of draws, want 0.99", mean, q, part)
		}
	}
}

func TestALogInWhichNothingWouldBeShedSaysSo(t *testing.T) {
	out, err := size(t, "-accesslog", written(t, generated(3000, 100, 10)))
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, out, "3000 lines, 3000 requests", "malformed: 0", "GET /users/{}", "nothing would have been shed")
	if strings.Contains(out, "would have been shed:") {
		t.Errorf("and says otherwise too:\n%s", out)
	}
}

func TestWhatWouldHaveBeenShedIsTold(t *testing.T) {
	log := written(t, generated(3000, 100, 10))
	out, err := size(t, "-accesslog", log, "-rate", "2", "-burst", "4")
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, out, "replayed through the gate with Rate: ratelimit.PerKey(2, 4)", "rate-limited", "caller 192.0.2.")
	out, err = size(t, "-accesslog", log, "-fixed", "2", "-wait", "60ms", "-level", "POST /checkout=critical", "-level", "GET /gone=batch")
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, out, "Limit: shed.Fixed(2), MaxWait: 60ms", "of the route", `no route "GET /gone"`, "with 503")
	if search, checkout := refused(t, out, "GET /search"), refused(t, out, "POST /checkout"); checkout*3 > search {
		t.Errorf("checkout is critical, and was refused %d times, search %d times", checkout, search)
	}
}

// refused adds up a route's refusals in the output.
func refused(t *testing.T, out, route string) (n int) {
	t.Helper()
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); strings.HasPrefix(strings.TrimSpace(line), route) && strings.Contains(line, "of the route") {
			var k int
			if _, err := fmt.Sscan(fields[3], &k); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			n += k
		}
	}
	return n
}

func TestMalformedLinesAreCountedAndShown(t *testing.T) {
	broken := "\x1b[31mnot a line\n{\"time\":\n" + strings.Repeat("x", 1<<17) + "\n- - -\n"
	out, err := size(t, "-accesslog", written(t, broken+generated(100, 100, 3)))
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, out, "104 lines, 100 requests", "malformed: 4", `line 1: no format that is known: "\x1b[31mnot a line"`, "line 2: broken JSON", "line 3: line longer", "and 1 more")
	if strings.Contains(out, "\x1b") {
		t.Error("the log's bytes reach the terminal")
	}
	out, err = size(t, "-accesslog", written(t, broken))
	if err == nil || !strings.Contains(out, "malformed: 4") {
		t.Errorf("a log of which nothing can be read: %v\n%s", err, out)
	}
}

const untimed = `a - - [02/Mar/2026:10:00:05 +0000] "GET / HTTP/1.1" 200 12
b - - [02/Mar/2026:10:00:06 +0000] "GET / HTTP/1.1" 503 12
`

func TestALogWithoutLatenciesSizesTheRateOnly(t *testing.T) {
	log := written(t, untimed)
	out, err := size(t, "-accesslog", log)
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, out, "2 requests do not say how long they took", "Limit:    none from these figures", "1 were already answered 429 or 503", "nothing would have been shed")
	out, err = size(t, "-accesslog", log, "-p50", "30ms", "-p99", "120ms")
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, out, "Limit:    shed.Throughput{Max: 8}", "slots in force")
}

// TestTheKneeIsFound: beyond some load the median grows; the limit belongs there.
func TestTheKneeIsFound(t *testing.T) {
	var b strings.Builder
	at := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	for second := range 120 { // every other second brings 40 at once, which then take longer each
		n, took := 4, 20*time.Millisecond
		if second%2 == 1 {
			n, took = 40, 100*time.Millisecond
		}
		for range n {
			fmt.Fprintf(&b, `{"time":%q,"method":"GET","path":"/","duration":"%v","ip":"192.0.2.1"}`+"\n",
				at.Add(time.Duration(second)*time.Second+time.Millisecond+took).Format(time.RFC3339Nano), took)
		}
	}
	c, err := parseFlags(io.Discard, []string{"-accesslog", written(t, b.String())})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := sizeLog(&out, c); err != nil {
		t.Fatal(err)
	}
	wantLines(t, out.String(), "something queues below", "all lines come from one caller")
}

func TestWrongFlagsAreNamed(t *testing.T) {
	for want, args := range map[string][]string{
		"-rps":          {},
		"-p50":          {"-rps", "5"},
		"-p99":          {"-rps", "5", "-p50", "2s", "-p99", "1s"},
		"-max and":      {"-accesslog", "x", "-max", "1", "-fixed", "1"},
		"negative":      {"-accesslog", "x", "-wait", "-1s"},
		"-stamp":        {"-accesslog", "x", "-stamp", "noon"},
		"ROUTE=LEVEL":   {"-accesslog", "x", "-level", "nothing"},
		"no such level": {"-accesslog", "x", "-level", "GET /=urgent"},
		"no such file":  {"-accesslog", filepath.Join(t.TempDir(), "gone")},
	} {
		if _, err := size(t, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v does not say %q", args, err, want)
		}
	}
}

// TestMemoryDoesNotGrowWithTheLog reads a log that is produced while it is read,
// and looks at the heap on the way.
func TestMemoryDoesNotGrowWithTheLog(t *testing.T) {
	var after [2]uint64
	for i, lines := range []int{10_000, 30_000} { // both beyond the window
		r, w := io.Pipe()
		go func() {
			generate(w, lines, 2000, 200)
			w.Close()
		}()
		after[i] = heapAfter(t, r)
	}
	if grown := int64(after[1]) - int64(after[0]); grown > 1<<18 {
		t.Errorf("three times the lines hold %d bytes more (%d, %d)", grown, after[0], after[1])
	}
}

// heapAfter returns the heap in use once the log is read, before it is replayed.
func heapAfter(t *testing.T, log io.Reader) uint64 {
	t.Helper()
	s := newStudy(&config{rows: 1, window: 1 << 12}, newSpool(t))
	if err := s.read(log); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	a := advise(s.Measure)
	var out bytes.Buffer
	if _, _, err := s.replay(&out, &a); err != nil {
		t.Fatal(err)
	}
	wantLines(t, out.String(), "replayed", shed.Admitted.String())
	return m.HeapAlloc
}

func BenchmarkMillionLines(b *testing.B) {
	var log bytes.Buffer
	generate(&log, 1_000_000, 500, 200)
	b.SetBytes(int64(log.Len()))
	for b.Loop() {
		s := newStudy(&config{rows: 1, window: traffic.Window}, newSpool(b))
		if err := s.read(bytes.NewReader(log.Bytes())); err != nil {
			b.Fatal(err)
		}
		a := advise(s.Measure)
		if _, _, err := s.replay(io.Discard, &a); err != nil {
			b.Fatal(err)
		}
	}
}

func newSpool(t testing.TB) *traffic.Spool {
	t.Helper()
	s, err := traffic.NewSpool()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// truncated writes a log that is packed by gzip and cut off in its midst.
func truncated(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, text); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	return written(t, b.String()[:b.Len()/2])
}

func TestATruncatedGzipGivesTheReportOfWhatWasRead(t *testing.T) {
	out, err := size(t, truncated(t, generated(20_000, 100, 10)))
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, out, "THE LOG BREAKS OFF", "unexpected EOF", "malformed: 0", "suggested for admission.Options")
	if _, err := size(t, written(t, "\x1f\x8b\x08")); err == nil {
		t.Error("a gzip of nothing is no error")
	}
}

// Case SZ-01: tried on the product
func TestTheFormatAndTheUnitAreNamed(t *testing.T) {
	line := `192.0.2.7 - - [02/Mar/2026:10:00:05 +0000] "GET /x HTTP/1.1" 200 12 "-" "ua" 54 64.495 [ns-svc-80] [] 10.0.0.1:80 12 64.490 200 8a1f` + "\n"
	out, err := size(t, written(t, line+line+untimed))
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, out, "read as: ingress-nginx, request_time in seconds (2 lines)", "read as: common, without a latency (2 lines)", "Is the unit right?")
}

// Case SZ-02: tried on the product
func TestAnUnknownUnitIsAskedForAndNoSlotsAreSuggested(t *testing.T) {
	log := written(t, strings.Repeat(`192.0.2.7 - - [02/Mar/2026:10:00:05 +0000] "GET / HTTP/1.1" 200 12 "-" "ua" 4200`+"\n", 20))
	out, err := size(t, log)
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, out, "? in which unit is", "-latency 10:us", "4.2ms, Apache's %D", "-latency 10:s", "Limit:    none from these figures")
	out, err = size(t, "-latency", "10:us", log)
	if err != nil || strings.Contains(out, "in which unit") {
		t.Fatalf("%v\n%s", err, out)
	}
	wantLines(t, out, "read as: combined, field 10 in microseconds", "Limit:    shed.Throughput")
	for _, wrong := range []string{"10:h", "10:"} {
		if _, err := size(t, "-latency", wrong, log); err == nil {
			t.Errorf("-latency %s is no error", wrong)
		}
	}
}

// Case SZ-02: tried on the product
func TestWhatCannotBeIsSaidBeforeAnyAdvice(t *testing.T) {
	line := func(at int, took string) string {
		return fmt.Sprintf(`{"time":"2026-03-02T10:%02d:%02d.5Z","method":"GET","path":"/","ip":"192.0.2.%d","duration":%s}`+"\n", at/60, at%60, at%3, took)
	}
	for want, c := range map[string]struct {
		took string
		unit string
		back bool
		kept bool // slots are suggested all the same
	}{
		"every latency is zero":         {took: "0", unit: "s"},
		"no request took longer than":   {took: "12", unit: "ns"},
		"the unit must be wrong":        {took: "7200", unit: "s"},
		"2 latencies are negative":      {took: "-5", unit: "ms"},
		"longer than a day":             {took: "100000", unit: "s"},
		"the clock goes back 1 times":   {took: "5", unit: "ms", back: true, kept: true},
		"half of the requests took 20s": {took: "20", unit: "s", kept: true},
	} {
		text := line(0, c.took) + line(1, c.took)
		if c.back {
			text = line(600, c.took) + line(1, c.took)
		}
		out, err := size(t, "-latency", "duration:"+c.unit, written(t, text))
		if err != nil {
			t.Fatal(err)
		}
		wantLines(t, out, want)
		if before := strings.Index(out, want) < strings.Index(out, "suggested for"); !before {
			t.Errorf("%q comes after the advice", want)
		}
		if kept := strings.Contains(out, "shed.Throughput{"); kept != c.kept {
			t.Errorf("%s: slots suggested: %v\n%s", want, kept, out)
		}
	}
}

func TestRowsBoundEveryTable(t *testing.T) {
	var b strings.Builder
	for i := range 400 {
		fmt.Fprintf(&b, `192.0.2.%d - - [02/Mar/2026:10:00:05 +0000] "GET /%c HTTP/1.1" 200 12 "-" "ua" 0.100`+"\n", i%5, 'a'+i%8)
	}
	out, err := size(t, "-rows", "3", "-rate", "1", "-burst", "1", written(t, b.String()))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out, "of the route"); n != 3 {
		t.Errorf("%d routes of those refused, want 3:\n%s", n, out)
	}
	if n := strings.Count(out, "GET /"); n != 6 {
		t.Errorf("routes named %d times, want 3 in each table:\n%s", n, out)
	}
}

func TestSharesAreWrittenAsPeopleDo(t *testing.T) {
	for want, c := range map[string][2]int{
		"100 %": {7, 7}, "99.9 %": {9999, 10000}, "50 %": {1, 2}, "1.2 %": {12, 1000}, "0.1 %": {1, 1000},
		"less than 0.01 %": {1, 1_000_000}, "0 %": {0, 5},
	} {
		if got := percent(c[0], c[1]); got != want {
			t.Errorf("%d of %d: %q, want %q", c[0], c[1], got, want)
		}
	}
}
