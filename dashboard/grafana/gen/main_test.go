package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

func committed(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("../headgate.json")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestTheCommittedDashboardIsTheGeneratedOne(t *testing.T) {
	text, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text, committed(t)) {
		t.Error("headgate.json is not what this program writes: run it")
	}
}

func TestTheDashboardLoadsThroughStrictTypes(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	if errs := strictly(committed(t)); len(errs) > 0 {
		t.Error(errs)
	}
	unknown := bytes.Replace(committed(t), []byte(`"drawStyle"`), []byte(`"drawstyle"`), 1)
	misnamed := bytes.Replace(committed(t), []byte(`"legendFormat"`), []byte(`"legend"`), 1)
	for _, text := range [][]byte{unknown, misnamed} {
		if !bytes.Equal(text, committed(t)) && len(strictly(text)) == 0 {
			t.Error("a misspelt field passes for strict")
		}
	}
}

// strictly loads a dashboard. The SDK returns an empty list of errors, not nil, when
// there are none.
func strictly(text []byte) (errs cog.BuildErrors) {
	var board dashboard.Dashboard
	for _, err := range []error{board.UnmarshalJSONStrict(text), board.Validate()} {
		var some cog.BuildErrors
		if errors.As(err, &some) {
			errs = append(errs, some...)
		} else if err != nil {
			errs = append(errs, &cog.BuildError{Path: "dashboard", Message: err.Error()})
		}
	}
	return errs
}

// panel is what the tests look at.
type panel struct {
	ID          int
	Type        string
	Title       string
	Description string
	GridPos     struct{ H, W, X, Y int }
	Datasource  struct{ UID string }
	FieldConfig struct{ Defaults struct{ Unit string } }
	Targets     []struct {
		Expr, LegendFormat, RefID string
		Datasource                struct{ UID string }
	}
}

func panels(t *testing.T) (all []panel) {
	t.Helper()
	var board struct{ Panels []panel }
	if err := json.Unmarshal(committed(t), &board); err != nil {
		t.Fatal(err)
	}
	if len(board.Panels) < 40 {
		t.Fatalf("only %d panels", len(board.Panels))
	}
	return board.Panels
}

func TestEveryPanelHasAUnitAndSaysWhatToDo(t *testing.T) {
	seen := map[int]string{}
	for _, p := range panels(t) {
		if other, taken := seen[p.ID]; taken {
			t.Errorf("%q and %q have the same id", p.Title, other)
		}
		seen[p.ID] = p.Title
		if p.Type == "row" {
			continue
		}
		if p.FieldConfig.Defaults.Unit == "" {
			t.Errorf("%q has no unit", p.Title)
		}
		if !strings.HasSuffix(p.Description, ".") || len(p.Description) < 40 {
			t.Errorf("%q does not say what to do: %q", p.Title, p.Description)
		}
		if p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("%q sticks out of the grid", p.Title)
		}
		for _, q := range p.Targets {
			if q.Expr == "" || q.LegendFormat == "" || q.RefID == "" {
				t.Errorf("%q has an incomplete query %+v", p.Title, q)
			}
		}
	}
}

func TestNoPanelHasAFixedDataSource(t *testing.T) {
	for _, p := range panels(t) {
		if p.Type == "row" {
			continue
		}
		if p.Datasource.UID != "${datasource}" {
			t.Errorf("%q reads from %q", p.Title, p.Datasource.UID)
		}
		for _, q := range p.Targets {
			if q.Datasource.UID != "${datasource}" {
				t.Errorf("%q reads from %q", p.Title, q.Datasource.UID)
			}
		}
	}
}
