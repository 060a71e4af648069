package size

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headgate-go/headgate/internal/size/traffic"
	"github.com/headgate-go/headgate/shed"
)

// paged sizes a log and returns its page.
func paged(t *testing.T, args ...string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "report.html")
	if out, err := size(t, append([]string{"-html", name}, args...)...); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestThePageShowsTheLogOverTime(t *testing.T) {
	page := paged(t, "-fixed", "2", "-wait", "50ms", "-rate", "2", "-burst", "4", written(t, generated(3000, 100, 10)))
	wantLines(t, page, "Arrivals λ", "Latency W", "In flight λ·W", "Would have been refused", "GET /users/{}", "shed.Fixed(2)", "suggested for admission.Options")
	if n := strings.Count(page, "<polyline"); n != 6 {
		t.Errorf("%d lines, want 6", n)
	}
	// The page asks for nothing from elsewhere, and is well formed.
	for _, banned := range []string{"<script", "<link", "src=", "href=", "url(", "@import", "http://", "https://"} {
		if strings.Contains(page, banned) {
			t.Errorf("the page holds %q", banned)
		}
	}
	wellFormed(t, page)
}

func wellFormed(t *testing.T, page string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, []string{"meta"}, xml.HTMLEntity
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestAStrangersTextIsEscapedInThePage(t *testing.T) {
	hostile := `<script>alert(1)</script>`
	line := func(path string) string {
		return fmt.Sprintf(`{"time":"2026-03-02T10:00:05Z","method":"GET","path":%q,"ip":"\u003cimg onerror=x>","duration_ms":5}`+"\n", path)
	}
	page := paged(t, "-rate", "1", "-burst", "1", written(t, hostile+"\n"+strings.Repeat(line("/<b>x"), 9)))
	for _, banned := range []string{"<script", "<b>", "<img"} {
		if strings.Contains(page, banned) {
			t.Errorf("the page holds %q", banned)
		}
	}
	wantLines(t, page, "GET /&lt;b&gt;x", "&lt;script&gt;")
}

func TestThePageSaysDoubtsAndPromisesNoReplayThen(t *testing.T) {
	page := paged(t, "-latency", "duration:s", written(t, strings.Repeat(`{"time":"2026-03-02T10:00:05Z","method":"GET","path":"/","duration":0}`+"\n", 3)))
	wantLines(t, page, "Before you use these numbers", "every latency is zero")
	if strings.Contains(page, "Would have been refused") || strings.Contains(page, "Replayed through") {
		t.Error("a replay is shown that was not made")
	}
}

// TestSeriesAreBounded: however long the log, and each arrival and refusal counts once.
func TestSeriesAreBounded(t *testing.T) {
	for _, span := range []time.Duration{0, time.Second, 200*time.Second - 1, 200 * time.Second, 90 * time.Minute, 20 * 365 * 24 * time.Hour} {
		s := newSeries(time.Hour, time.Hour+span)
		if len(s.bins) < 1 || len(s.bins) > mostBins {
			t.Errorf("%v: %d bins", span, len(s.bins))
		}
		first, last := traffic.Record{Arrived: time.Hour}, traffic.Record{Arrived: time.Hour + span, Took: time.Second, Timed: true}
		s.arrive(first)
		s.arrive(last)
		s.refused(&last, shed.QueueFull)
		s.refused(&first, shed.RateLimited)
		n := 0
		for i := range s.bins {
			n += s.bins[i].count
		}
		if end := s.bins[len(s.bins)-1]; n != 2 || end.full != 1 || end.took.Count() != 1 || s.bins[0].limited != 1 {
			t.Errorf("%v: %d arrivals, last bin %d refused", span, n, end.full)
		}
	}
}
