package metrics_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/headgate-go/headgate/metrics/internal/measure"
)

func text(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestEveryAlertHasItsRunbook(t *testing.T) {
	runbook := text(t, "../docs/runbook.md")
	alerts := regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(text(t, "../dashboard/rules/headgate.yml"), -1)
	if len(alerts) < 7 {
		t.Fatalf("only %d alerts", len(alerts))
	}
	for _, a := range alerts {
		if !strings.Contains(runbook, "\n## "+a[1]+"\n") {
			t.Errorf("%s has no section in the runbook", a[1])
		}
		if !strings.Contains(text(t, "../dashboard/rules/headgate.yml"), "runbook.md#"+strings.ToLower(a[1])+"\n") {
			t.Errorf("%s does not link to its section", a[1])
		}
		if !strings.Contains(text(t, "../dashboard/rules/headgate_test.yml"), "alertname: "+a[1]) {
			t.Errorf("%s has no unit test", a[1])
		}
	}
}

// Dashboard, rules and runbook speak of metrics that exist, and the dashboard of all
// of them.
func TestMetricsOnDashboardsExist(t *testing.T) {
	known := map[string]bool{}
	for _, f := range measure.Families() {
		known[f.Name] = true
		if f.Kind == measure.Histogram {
			known[f.Name+"_bucket"], known[f.Name+"_sum"], known[f.Name+"_count"] = true, true, true
		}
	}
	name := regexp.MustCompile(`headgate_[a-z0-9_]+`)
	for _, path := range []string{"../dashboard/grafana/headgate.json", "../dashboard/rules/headgate.yml", "../docs/runbook.md"} {
		for _, n := range name.FindAllString(text(t, path), -1) {
			if !known[n] {
				t.Errorf("%s mentions %s, which does not exist", path, n)
			}
		}
	}
	board := text(t, "../dashboard/grafana/headgate.json")
	for _, f := range measure.Families() {
		if f == measure.LimitMost || f == measure.RateBurst || f == measure.ServiceMedian {
			continue // told by its neighbours on the same panel
		}
		if !strings.Contains(board, f.Name) {
			t.Errorf("the dashboard does not show %s", f.Name)
		}
	}
}
