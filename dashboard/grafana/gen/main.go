// Gen writes the Grafana dashboard. It is a module of its own, so that users of the
// kit do not inherit the SDK:
//
//	cd dashboard/grafana/gen && go run . -o ../headgate.json
package main

import (
	"encoding/json"
	"flag"
	"log"
	"os"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

func main() {
	out := flag.String("o", "../headgate.json", "where to write it")
	flag.Parse()
	text, err := generate()
	if err == nil {
		err = os.WriteFile(*out, text, 0o644)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// generate returns the dashboard as JSON.
func generate() ([]byte, error) {
	board, err := build().Build()
	if err != nil {
		return nil, err
	}
	identify(board.Panels)
	text, err := json.MarshalIndent(board, "", "  ")
	return append(text, '\n'), err
}

// identify gives every panel an id of its own, from 1: links to a panel go by it.
func identify(panels []dashboard.PanelOrRowPanel) {
	for i := range panels {
		id := uint32(i + 1)
		if row := panels[i].RowPanel; row != nil {
			row.Id = id
		} else {
			panels[i].Panel.Id = &id
		}
	}
}

// build puts the rows together: the questions of the person who was woken, in their order.
func build() *dashboard.DashboardBuilder {
	b := dashboard.NewDashboardBuilder("Headgate").
		Uid("headgate").
		Description("Who is hurt, on which route, why, where does it get stuck, who is to blame, and what is the capacity?").
		Tags([]string{"headgate", "admission-control"}).
		Tooltip(dashboard.DashboardCursorSyncCrosshair).
		Timezone("browser").
		Time("now-1h", "now").
		Refresh("10s").
		WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Data source").Type("prometheus")).
		WithVariable(choice("job", "Job", `label_values(headgate_limit, job)`)).
		WithVariable(choice("gate", "Gate", `label_values(headgate_limit{job=~"$job"}, gate)`))
	for _, row := range []func(*dashboard.DashboardBuilder){hurt, routes, callers, why, where, blame, capacity} {
		row(b)
	}
	return b
}

// choice is a variable with the values that a query finds, all of them by default.
func choice(name, label, query string) *dashboard.QueryVariableBuilder {
	return dashboard.NewQueryVariableBuilder(name).
		Label(label).
		Datasource(source).
		Query(dashboard.StringOrMap{String: &query}).
		Definition(query).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).
		Sort(dashboard.VariableSortAlphabeticalAsc).
		Multi(true).
		IncludeAll(true).
		AllValue(".+").
		Current(dashboard.VariableOption{
			Text:  dashboard.StringOrArrayOfString{ArrayOfString: []string{"All"}},
			Value: dashboard.StringOrArrayOfString{ArrayOfString: []string{"$__all"}},
		})
}
