package main

import (
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// Refusals that callers bring upon themselves, and those of a shutdown, are not for
// want of capacity.
const notShed = `unidentified|rate-limited|not-admissible|caller-cap|client-gone|draining`

// prom fills in what expressions have in common: GATE selects by job and gate, JOB
// by job alone, SHED what was refused for want of capacity.
func prom(expr string) string {
	return strings.NewReplacer(
		"GATE", `job=~"$job",gate=~"$gate"`,
		"JOB", `job=~"$job"`,
		"SHED", `outcome="refused",reason!~"`+notShed+`"`,
		"RATE", `$__rate_interval`,
	).Replace(expr)
}

func q(expr, legend string) query { return query{prom(expr), legend} }

func hurt(b *dashboard.DashboardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Who is hurt?")).
		WithPanel(number("Critical work refused", "Above zero: users are turned away. Find what got slow under Where, and take load off it.", units.RequestsPerSecond, 4, 0.001, 0.1,
			q(`sum(rate(headgate_requests_total{GATE,SHED,level="critical"}[RATE])) or vector(0)`, "critical"))).
		WithPanel(number("Share refused for want of capacity", "High for long: demand is above capacity. Add capacity, or tell the biggest callers of batch work to slow down.", units.PercentUnit, 4, 0.01, 0.1,
			q(`sum(rate(headgate_requests_total{GATE,SHED}[RATE])) / sum(rate(headgate_requests_total{GATE,outcome!="exempt"}[RATE]))`, "refused"))).
		WithPanel(number("Share failed", "Failures of admitted work are the service's own: look at its errors before you look at the gate.", units.PercentUnit, 4, 0.01, 0.05,
			q(`sum(rate(headgate_requests_total{GATE,outcome=~"failed|timed-out"}[RATE])) / sum(rate(headgate_requests_total{GATE,outcome!~"refused|exempt"}[RATE]))`, "failed"))).
		WithPanel(figure("Served", "A sudden fall with nothing refused: traffic does not arrive. Look in front of the service.", units.RequestsPerSecond, 4,
			q(`sum(rate(headgate_requests_total{GATE,outcome="served"}[RATE]))`, "served"))).
		WithPanel(number("Service time, 99 of 100", "Above what you promise: the handlers are slow, and the limit will come down to match.", units.Seconds, 4, 1, 5,
			q(`histogram_quantile(0.99, sum by (le) (rate(headgate_service_seconds_bucket{GATE}[RATE])))`, "p99"))).
		WithPanel(number("Shutting down", "A gate that stays here hangs in its drain: look for requests that never end.", units.Short, 4, 1, 1000,
			q(`sum(headgate_draining{GATE})`, "gates"))).
		WithPanel(byLevel(stacked("Admitted, by level", "If a level that matters shrinks while one below it does not, its routes carry the wrong level.", units.RequestsPerSecond, 12,
			q(`sum by (level) (rate(headgate_requests_total{GATE,outcome!~"refused|exempt"}[RATE]))`, "{{level}}")))).
		WithPanel(byLevel(stacked("Refused for want of capacity, by level", "Batch first is as it should be. Anything above it means that capacity is far below demand.", units.RequestsPerSecond, 12,
			q(`sum by (level) (rate(headgate_requests_total{GATE,SHED}[RATE]))`, "{{level}}"))))
}

func routes(b *dashboard.DashboardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("On which route?")).
		WithPanel(stacked("Refused, by route", "One route alone: look at what it calls, and give it a pool of its own. All of them: the service as a whole is short.", units.RequestsPerSecond, 8,
			q(`topk(10, sum by (route) (rate(headgate_route_requests_total{GATE,outcome="refused"}[RATE])) > 0)`, "{{route}}"))).
		WithPanel(stacked("Served, by route", "A route that grew while others shrank takes their slots: bound it with Cap, or give it a pool of its own.", units.RequestsPerSecond, 8,
			q(`topk(10, sum by (route) (rate(headgate_route_requests_total{GATE,outcome="served"}[RATE])) > 0)`, "{{route}}"))).
		WithPanel(stacked("Slots held, by route", "Slot time per second is slots held: the route with most of them is where capacity goes.", units.Short, 8,
			q(`topk(10, sum by (route) (rate(headgate_route_slot_seconds_total{GATE}[RATE])) > 0)`, "{{route}}"))).
		WithPanel(lines("Share failed, by route", "Failures of one route are its own: look at its errors before you look at the gate.", units.PercentUnit, 12,
			q(`topk(10, sum by (route) (rate(headgate_route_requests_total{GATE,outcome=~"failed|timed-out"}[RATE])) / sum by (route) (rate(headgate_route_requests_total{GATE,outcome!~"refused|exempt"}[RATE])) > 0)`, "{{route}}"))).
		WithPanel(lines("Slot time per request, by route", "A route whose line climbs got slower: ask what it calls.", units.Seconds, 12,
			q(`topk(10, sum by (route) (rate(headgate_route_slot_seconds_total{GATE}[RATE])) / sum by (route) (rate(headgate_route_requests_total{GATE,outcome!~"refused|exempt"}[RATE])))`, "{{route}}")))
}

func callers(b *dashboard.DashboardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Which callers? (empty until ShowCallers)")).
		WithPanel(lines("Served, by caller", "What callers had in the last half to one minute. One far above the others: its plan or its weight is what to look at.", units.Short, 6,
			q(`topk(10, sum by (caller) (headgate_callers{GATE,what="served"}))`, "{{caller}}"))).
		WithPanel(lines("Slot seconds, by caller", "Who holds the slots. One with most of them and few requests sends long work: give it a cap, or a pool.", units.Seconds, 6,
			q(`topk(10, sum by (caller) (headgate_callers{GATE,what="slot_seconds"}))`, "{{caller}}"))).
		WithPanel(lines("Refused for want of capacity, by caller", "Who is hurt. A single one sends more than its part of what there is.", units.Short, 6,
			q(`topk(10, sum by (caller) (headgate_callers{GATE,what="refused"}))`, "{{caller}}"))).
		WithPanel(lines("Over their own limits, by caller", "Who sends more than was sold: talk to them, or sell them more.", units.Short, 6,
			q(`topk(10, sum by (caller) (headgate_callers{GATE,what="limited"}))`, "{{caller}}")))
}

func why(b *dashboard.DashboardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Why?")).
		WithPanel(stacked("Refused, by reason", "rate-limited and caller-cap are for the caller to change; queue-full, predicted-wait, deadline-unmeetable and waited-too-long mean too little capacity.", units.RequestsPerSecond, 12,
			q(`sum by (reason) (rate(headgate_requests_total{GATE,outcome="refused"}[RATE])) > 0`, "{{reason}}"))).
		WithPanel(lines("Retry-After handed out", "Long waits on 503 mean a long way back: tell the callers, who should be honouring it.", units.Seconds, 6,
			q(`histogram_quantile(0.5, sum by (le, status) (rate(headgate_retry_after_seconds_bucket{GATE}[RATE])))`, "{{status}} median"),
			q(`histogram_quantile(0.9, sum by (le, status) (rate(headgate_retry_after_seconds_bucket{GATE}[RATE])))`, "{{status}} 9 of 10"))).
		WithPanel(stacked("Would have been refused, in shadow", "What a layer in shadow mode would do: compare with the reasons before you switch it on.", units.RequestsPerSecond, 6,
			q(`sum by (reason) (rate(headgate_shadowed_total{GATE}[RATE]))`, "{{reason}}"))).
		WithPanel(stacked("What the rate step decided from", "overflow: too many callers for the table. share, open or closed: the shared limit's store is away.", units.RequestsPerSecond, 12,
			q(`sum by (source) (rate(headgate_rate_decisions_total{GATE}[RATE])) > 0`, "{{source}}"))).
		WithPanel(lines("Callers tracked", "At the bound, newcomers share one bucket: raise MaxKeys, or find who sends made-up keys.", units.Short, 6,
			q(`sum by (limit) (headgate_rate_keys{GATE})`, "{{limit}}"),
			q(`max by (limit) (headgate_rate_keys_most{GATE})`, "{{limit}} bound"))).
		WithPanel(lines("Decisions beyond the table", "Above zero, newcomers are being limited together: raise MaxKeys, or find who sends made-up keys.", units.OpsPerSecond, 6,
			q(`sum by (limit) (rate(headgate_rate_overflow_total{GATE}[RATE]))`, "{{limit}}")))
}

func where(b *dashboard.DashboardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Where does it get stuck?")).
		WithPanel(lines("In flight, under the limit", "In flight at the limit, and the limit low: what the handlers call is slow. In flight at a limit that stays high: add capacity.", units.Short, 12,
			q(`sum by (gate, pool) (headgate_in_flight{GATE})`, "{{gate}} {{pool}} in flight"),
			q(`sum by (gate, pool) (headgate_limit{GATE})`, "{{gate}} {{pool}} limit"),
			q(`sum by (gate, pool) (headgate_limit_least{GATE})`, "{{gate}} {{pool}} floor"))).
		WithPanel(stacked("Why the limit moved", "latency and saturated name a slow dependency, stalled one that hangs, thrash a contended one, errors one that drops work.", units.Short, 8,
			q(`sum by (cause) (increase(headgate_limit_moves_total{GATE}[RATE])) > 0`, "{{cause}}"))).
		WithPanel(figure("Last move", "Why the limit is where it is, for each gate and pool.", units.Short, 4,
			q(`max by (gate, pool, cause) (headgate_limit_cause{GATE}) == 1`, "{{gate}} {{pool}} {{cause}}")).
			TextMode(common.BigValueTextModeName).GraphMode(common.BigValueGraphModeNone).Height(8)).
		WithPanel(byLevel(stacked("Waiting, by level", "A queue that never empties buys no throughput, only latency: capacity is below demand.", units.Short, 12,
			q(`sum by (level) (headgate_queue_depth{GATE})`, "{{level}}"),
			q(`sum(headgate_queue_bound{GATE})`, "bound")).
			OverrideByName("bound", []dashboard.DynamicConfigValue{
				{Id: "custom.stacking", Value: map[string]any{"mode": "none"}},
				{Id: "custom.fillOpacity", Value: 0}, {Id: "custom.lineWidth", Value: 1},
				{Id: "color", Value: map[string]any{"mode": "fixed", "fixedColor": "red"}},
			}))).
		WithPanel(lines("Time in the queue", "Near MaxWait: those who are served have waited as long as they may, and more are refused.", units.Seconds, 6,
			q(`histogram_quantile(0.5, sum by (le) (rate(headgate_wait_seconds_bucket{GATE}[RATE])))`, "median"),
			q(`histogram_quantile(0.99, sum by (le) (rate(headgate_wait_seconds_bucket{GATE}[RATE])))`, "99 of 100"),
			q(`max(headgate_queue_oldest_seconds{GATE})`, "oldest now"))).
		WithPanel(spread("How long they waited", "A band that climbs is a queue that fills: capacity is below demand.", units.Seconds, 6,
			q(`sum by (le) (increase(headgate_wait_seconds_bucket{GATE}[RATE]))`, "{{le}}"))).
		WithPanel(byLevel(stacked("Slot time, by level", "What the slots were used for. The lowest level that waits gets a twentieth.", units.Short, 12,
			q(`sum by (level) (rate(headgate_slot_seconds_total{GATE}[RATE]))`, "{{level}}")))).
		WithPanel(lines("Estimates of slot time", "How far off they were, as a part: callers share slot time by them until work ends.", units.PercentUnit, 12,
			q(`sum by (gate, pool) (rate(headgate_estimate_error_slot_seconds_total{GATE}[RATE])) / sum by (gate, pool) (rate(headgate_estimated_slot_seconds_total{GATE}[RATE]))`, "{{gate}} {{pool}}"))).
		WithPanel(lines("Drain rate", "What the pool really serves while it is full. Falling: its dependency got slower.", units.OpsPerSecond, 8,
			q(`sum by (gate, pool) (headgate_drain_rate{GATE})`, "{{gate}} {{pool}}"))).
		WithPanel(lines("Announced bodies that wait", "Near MaxWaitingBytes, large uploads are refused first: let clients send smaller ones.", units.BytesIEC, 8,
			q(`sum by (gate, pool) (headgate_queue_bytes{GATE})`, "{{gate}} {{pool}}"))).
		WithPanel(lines("Open streams", "At the routes' caps, new streams are refused: raise Stream(max), or look for clients that never leave.", units.Short, 8,
			q(`sum by (gate) (headgate_streams{GATE})`, "{{gate}}")))
}
