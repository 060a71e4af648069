package dashboard_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/dashboard"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

// everyReason is a gate that refused for each reason once.
type everyReason struct{}

func (everyReason) Stats() (s admission.Stats) {
	s.Name = "every"
	for _, r := range refusals() {
		s.Visits[priority.High.Index()][r] = uint64(r)
	}
	return s
}

// high is so much of high work, and none of other levels.
func high(n int) (by [4]int) {
	by[priority.High.Index()] = n
	return by
}

func refusals() (all []shed.Reason) {
	for r := range shed.ReasonCount {
		if shed.Reason(r).Refused() {
			all = append(all, shed.Reason(r))
		}
	}
	return all
}

func TestEveryReasonIsOnThePage(t *testing.T) {
	g := frame(t, dashboard.Handler(dashboard.Gate(everyReason{}))).Gates[0]
	var sum int
	for _, r := range refusals() {
		if n := g.Reasons[r.String()]; n != high(int(r)) {
			t.Errorf("%v: %v, want %d of high work", r, n, r)
		}
		sum += int(r)
	}
	if len(g.Reasons) != len(refusals()) || g.Refused != high(sum) {
		t.Errorf("%d reasons and %v refused, want %d and %d", len(g.Reasons), g.Refused, len(refusals()), sum)
	}
}

// The page has a sentence for each reason and for each cause, and for no other.
func TestThePageHasWordsForEveryReasonAndCause(t *testing.T) {
	script := get(dashboard.Handler(), "/words.js").Body.String()
	var reasons, causes []string
	for _, r := range refusals() {
		reasons = append(reasons, r.String())
	}
	for c := range shed.CauseCount {
		causes = append(causes, shed.Cause(c).String())
	}
	for name, want := range map[string][]string{"REASONS": reasons, "CAUSES": causes} {
		table := regexp.MustCompile(`(?s)export const ` + name + ` = \{\n(.*?)\n\};`).FindStringSubmatch(script)
		if table == nil {
			t.Fatalf("words.js has no %s", name)
		}
		var got []string
		for _, m := range regexp.MustCompile(`(?m)^  "([a-z-]+)": "[A-Z].+\.",$`).FindAllStringSubmatch(table[1], -1) {
			got = append(got, m[1])
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s has %v, want %v", name, got, want)
		}
	}
}

// What the page advises is one thing for a reason or a cause, and leads to a section that
// the runbook has.
func TestAdviceLeadsToTheRunbook(t *testing.T) {
	script := get(dashboard.Handler(), "/words.js").Body.String()
	runbook, err := os.ReadFile("../docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{"caller": true, "limits": true, "store": true, "calls": true, "table": true, "shadow": true} // matters of other kinds
	for _, r := range refusals() {
		known[r.String()] = true
	}
	for c := range shed.CauseCount {
		known[shed.Cause(c).String()] = true
	}
	advice := regexp.MustCompile(`(?m)^  "([a-z-]+)": \{ text: "[A-Z][^"]+\.", section: "(#[a-z-]+)" \},$`).FindAllStringSubmatch(script, -1)
	if len(advice) < 10 {
		t.Fatalf("only %d pieces of advice", len(advice))
	}
	for _, m := range advice {
		if !known[m[1]] {
			t.Errorf("advice for %s, which is neither a reason nor a cause", m[1])
		}
		if heading := strings.ReplaceAll(m[2][1:], "-", " "); !strings.Contains(strings.ToLower(string(runbook)), "\n## "+heading+"\n") {
			t.Errorf("the advice for %s leads to %s, which the runbook has not", m[1], m[2])
		}
	}
	if base := frame(t, dashboard.Handler(dashboard.Runbook("https://wiki.example/runbook"))).Runbook; base != "https://wiki.example/runbook" {
		t.Errorf("the runbook is at %q", base)
	}
}
