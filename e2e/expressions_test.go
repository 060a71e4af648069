package e2e

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
)

func TestTheRulesHold(t *testing.T) {
	need(t, "promtool")
	promtool(t, "", "check", "rules", "headgate.yml")
	promtool(t, "", "test", "rules", "headgate_test.yml")
}

// The example that people start from is scraped as it is, page and all.
func TestTheQuickstartIsScraped(t *testing.T) {
	need(t, "prometheus", "promtool")
	addr := freeAddr(t)
	example(t, "quickstart", addr, "-addr", addr)
	p := startPrometheus(t, map[string]string{"quickstart": addr}, "")
	if page := scrape(t, "http://"+addr+"/headgate/"); !strings.Contains(page, "<title>Headgate</title>") {
		t.Errorf("the page is %.80q", page)
	}
	for range 20 {
		scrape(t, "http://"+addr+"/search")
	}
	promtool(t, scrape(t, "http://"+addr+"/metrics"), "check", "metrics")
	p.wait(t, "twenty searches are counted", func() bool {
		all, err := p.query(`sum(headgate_requests_total{outcome="served"}) == 20`)
		return err == nil && len(all) == 1
	})
}

// Prometheus takes the native histograms that come with the classic ones.
func TestNativeHistogramsAreScraped(t *testing.T) {
	need(t, "prometheus")
	s := newShop(t, "", "Acme")
	stop := s.load(t, 200)
	defer stop()
	p := startPrometheus(t, map[string]string{"shop": s.Listener.Addr().String()}, "", "--enable-feature=native-histograms")
	p.wait(t, "a quantile of a native histogram is known", func() bool {
		all, err := p.query(`histogram_quantile(0.5, sum(rate(headgate_service_seconds[15s]))) > 0.003 < 0.02`)
		return err == nil && len(all) == 1
	})
}

// TestExpressionsGiveFigures runs every expression of the dashboard and the rules on a real
// Prometheus, under a load that makes all of them speak, and looks at how each is
// put together.
//
// Case DB-06: field report
func TestExpressionsGiveFigures(t *testing.T) {
	need(t, "prometheus", "promtool")
	s := newShop(t, "", "Acme", "Globex", "Initech", "Umbrella", "Hooli", "Stark", "Wayne", "Tyrell")
	s.slow.Store(int64(400 * time.Millisecond)) // so that critical alone is above capacity
	s.fleet.away.Store(true)
	s.broken.Store(true)
	stop := s.load(t, 900)
	defer stop()
	p := startPrometheus(t, map[string]string{"shop": s.Listener.Addr().String()}, "../dashboard/rules/headgate.yml")
	promtool(t, scrape(t, s.URL+"/metrics"), "check", "metrics")
	silent := expressions(t)
	for _, expr := range silent {
		p.lint(t, expr)
	}
	// Rates need two scrapes, and rules that build on rules two evaluations.
	for end := time.Now().Add(75 * time.Second); len(silent) > 0 && time.Now().Before(end); time.Sleep(2 * time.Second) {
		silent = slices.DeleteFunc(silent, func(expr string) bool {
			all, err := p.query(expr)
			if err != nil {
				t.Errorf("%s: %v", expr, err)
			}
			return err != nil || len(all) > 0
		})
	}
	for _, expr := range silent {
		t.Errorf("no series under load: %s", expr)
	}
	for variable, query := range map[string]string{"job": `headgate_limit`, "gate": `headgate_limit{job=~".+"}`} {
		if labels, err := p.labels(query); err != nil || !labels[variable] {
			t.Errorf("the variable %s finds nothing: %v", variable, err)
		}
	}
}

// expressions collects what the dashboard and the rules ask.
func expressions(t *testing.T) (all []string) {
	t.Helper()
	var board struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal(file(t, "../dashboard/grafana/headgate.json"), &board); err != nil {
		t.Fatal(err)
	}
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			all = append(all, strings.NewReplacer("$__rate_interval", "20s", "$job", ".+", "$gate", ".+").Replace(target.Expr))
		}
	}
	if len(all) < 50 {
		t.Fatalf("only %d expressions on the dashboard", len(all))
	}
	rules := string(file(t, "../dashboard/rules/headgate.yml"))
	found := regexp.MustCompile(`(?m)^        expr: (?:>\n((?:          .*\n)+)|(.*)\n)`).FindAllStringSubmatch(rules, -1)
	if len(found) != strings.Count(rules, "expr:") {
		t.Fatalf("%d expressions were found in the rules, of %d", len(found), strings.Count(rules, "expr:"))
	}
	for _, m := range found {
		all = append(all, strings.Join(strings.Fields(m[1]+m[2]), " "))
	}
	return all
}

func file(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

var grows = regexp.MustCompile(`_(total|bucket|sum|count)$`)

// lint checks that counters are rated and gauges are not, that quantiles keep the
// bucket label, and that every metric and label asked for is there.
func (p *prom) lint(t *testing.T, expr string) {
	t.Helper()
	tree, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		t.Errorf("%s: %v", expr, err)
		return
	}
	parser.Inspect(tree, func(node parser.Node, path []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			p.lintSelector(t, expr, n, rated(path))
		case *parser.Call:
			if inner, ok := n.Args[len(n.Args)-1].(*parser.AggregateExpr); n.Func.Name == "histogram_quantile" {
				if !ok || !slices.Contains(inner.Grouping, "le") || inner.Without {
					t.Errorf("%s: the quantile loses the bucket label", expr)
				}
			}
		}
		return nil
	})
}

// rated reports whether the innermost function around a selector makes a rate of it.
func rated(path []parser.Node) bool {
	for _, node := range slices.Backward(path) {
		if call, ok := node.(*parser.Call); ok {
			return slices.Contains([]string{"rate", "increase"}, call.Func.Name)
		}
	}
	return false
}

func (p *prom) lintSelector(t *testing.T, expr string, s *parser.VectorSelector, rated bool) {
	t.Helper()
	if strings.HasPrefix(s.Name, "headgate:") {
		return // recorded: no counter is
	}
	if counter := grows.MatchString(s.Name); counter != rated {
		t.Errorf("%s: counter %v, rated %v: %s", expr, counter, rated, s.Name)
	}
	var labels map[string]bool
	p.wait(t, s.Name+" is scraped", func() (found bool) {
		var err error
		labels, err = p.labels(s.Name)
		return err == nil && len(labels) > 0
	})
	for _, m := range s.LabelMatchers {
		if m.Name != "__name__" && !labels[m.Name] {
			t.Errorf("%s: %s has no label %s", expr, s.Name, m.Name)
		}
	}
}
