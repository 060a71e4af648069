package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/heatmap"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// source is whatever Prometheus the viewer chose.
var source = common.DataSourceRef{Type: cog.ToPtr("prometheus"), Uid: cog.ToPtr("${datasource}")}

// query is one expression and how its series are called.
type query struct{ expr, legend string }

func (q query) target(ref string) *prometheus.DataqueryBuilder {
	return prometheus.NewDataqueryBuilder().Datasource(source).RefId(ref).Expr(q.expr).LegendFormat(q.legend).Range()
}

func ref(i int) string { return string(rune('A' + i)) }

// Levels keep their colours in every panel; they are those of the live page.
var levelColors = map[string]string{
	"batch": "#e3a008", "normal": "#84a83a", "high": "#0e9bb3", "critical": "#4f46e5",
}

// lines is a panel over time. advice says what to do when it looks bad.
func lines(title, advice, unit string, width uint32, queries ...query) *timeseries.PanelBuilder {
	p := timeseries.NewPanelBuilder().
		Title(title).Description(advice).Datasource(source).
		Unit(unit).Min(0).Span(width).Height(8).
		LineWidth(1.5).FillOpacity(8).
		Legend(common.NewVizLegendOptionsBuilder().
			DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom).ShowLegend(true)).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending))
	for i, q := range queries {
		p = p.WithTarget(q.target(ref(i)))
	}
	return p
}

// stacked is lines on top of each other, for parts of a whole.
func stacked(title, advice, unit string, width uint32, queries ...query) *timeseries.PanelBuilder {
	return lines(title, advice, unit, width, queries...).
		FillOpacity(55).LineWidth(0).
		Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal).Group("A"))
}

// byLevel gives series their level's colour.
func byLevel(p *timeseries.PanelBuilder) *timeseries.PanelBuilder {
	for _, level := range []string{"critical", "high", "normal", "batch"} {
		p = p.OverrideByName(level, []dashboard.DynamicConfigValue{{
			Id: "color", Value: map[string]any{"mode": "fixed", "fixedColor": levelColors[level]},
		}})
	}
	return p
}

// number is one figure that turns orange and red at two thresholds.
func number(title, advice, unit string, width uint32, orange, red float64, q query) *stat.PanelBuilder {
	return figure(title, advice, unit, width, q).
		Thresholds(dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps([]dashboard.Threshold{
			{Value: nil, Color: "green"}, {Value: &orange, Color: "orange"}, {Value: &red, Color: "red"},
		})).
		ColorMode(common.BigValueColorModeValue)
}

// figure is one figure that is neither good nor bad.
func figure(title, advice, unit string, width uint32, q query) *stat.PanelBuilder {
	return stat.NewPanelBuilder().
		Title(title).Description(advice).Datasource(source).
		Unit(unit).Span(width).Height(4).
		GraphMode(common.BigValueGraphModeArea).
		ColorMode(common.BigValueColorModeNone).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"})).
		WithTarget(q.target("A"))
}

// spread is a histogram over time, as a heat map.
func spread(title, advice, unit string, width uint32, q query) *heatmap.PanelBuilder {
	return heatmap.NewPanelBuilder().
		Title(title).Description(advice).Datasource(source).
		Unit(unit).Span(width).Height(8).
		YAxis(heatmap.NewYAxisConfigBuilder().Unit(unit)).
		WithTarget(q.target("A").Format(prometheus.PromQueryFormatHeatmap))
}
