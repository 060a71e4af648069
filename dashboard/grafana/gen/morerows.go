package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

func blame(b *dashboard.DashboardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Who is to blame?")).
		WithPanel(stacked("Calls to others, by what they came to", "throttled or overloaded: they ask for less, and get it. transient: they fail. Call their owners.", units.RequestsPerSecond, 12,
			q(`sum by (transport, kind) (rate(headgate_outbound_attempts_total{JOB}[RATE])) > 0`, "{{transport}} {{kind}}"))).
		WithPanel(lines("Time of a call, 99 of 100", "If it rises with Service time above, the other side is what got slow.", units.Seconds, 6,
			q(`histogram_quantile(0.99, sum by (le, transport) (rate(headgate_outbound_attempt_seconds_bucket{JOB}[RATE])))`, "{{transport}}"))).
		WithPanel(lines("Share of the rate in force", "Below one, the other side throttled: lower what you send, or buy a larger quota.", units.PercentUnit, 6,
			q(`min by (transport) (headgate_outbound_multiplier{JOB})`, "{{transport}}")).Max(1)).
		WithPanel(stacked("Calls not sent", "wait-too-long and paused follow from the other side's limits; no-slot means InFlight is too low or they are slow.", units.RequestsPerSecond, 8,
			q(`sum by (transport, reason) (rate(headgate_outbound_not_sent_total{JOB}[RATE])) > 0`, "{{transport}} {{reason}}"))).
		WithPanel(lines("Retries", "Near 20 % of the calls the retry budget ends: the other side is failing, and retries do not help it.", units.RequestsPerSecond, 8,
			q(`sum by (transport) (rate(headgate_outbound_retries_total{JOB}[RATE]))`, "{{transport}}"),
			q(`sum by (transport, reason) (rate(headgate_outbound_gave_up_total{JOB}[RATE])) > 0`, "{{transport}} gave up: {{reason}}"))).
		WithPanel(lines("Retry budget left", "Empty: too much fails to be worth retrying. Treat it as an outage of the other side.", units.Short, 8,
			q(`min by (transport) (headgate_outbound_retry_budget{JOB})`, "{{transport}}"))).
		WithPanel(lines("Calls waiting, in flight, and pauses", "A pause that keeps coming back: the quota is spent. Slow the jobs that use it.", units.Short, 12,
			q(`sum by (transport) (headgate_outbound_waiting{JOB})`, "{{transport}} waiting"),
			q(`sum by (transport) (headgate_outbound_in_flight{JOB})`, "{{transport}} in flight"),
			q(`max by (transport) (headgate_outbound_pause_seconds{JOB})`, "{{transport}} paused, s"),
			q(`sum by (transport) (increase(headgate_outbound_slowdowns_total{JOB}[RATE]))`, "{{transport}} slowed down"))).
		WithPanel(number("Shared limits without their store", "Each process admits its share meanwhile. Mend the store; do not restart the service.", units.Short, 4, 1, 1,
			q(`sum(headgate_store_degraded{JOB}) or vector(0)`, "degraded"))).
		WithPanel(figure("Processes that share", "Fewer than are running: some do not reach the store.", units.Short, 4,
			q(`max by (store) (headgate_store_peers{JOB})`, "{{store}}"))).
		WithPanel(figure("Keys decided alone", "Above zero while the store answers: the part of a cluster that holds them does not.", units.Short, 4,
			q(`sum by (store) (headgate_store_keys{JOB,state="away"})`, "{{store}}"))).
		WithPanel(stacked("Calls to the store, by result", "Anything but ok for long: the store is away, slow, full or misconfigured; the result says which.", units.OpsPerSecond, 8,
			q(`sum by (store, result) (rate(headgate_store_calls_total{JOB}[RATE])) > 0`, "{{store}} {{result}}"))).
		WithPanel(lines("Time of a store call", "Above a few milliseconds: the store or the network to it is loaded.", units.Seconds, 8,
			q(`sum by (store) (rate(headgate_store_call_seconds_total{JOB}[RATE])) / sum by (store) (rate(headgate_store_calls_total{JOB}[RATE]))`, "{{store}}"))).
		WithPanel(lines("Leased and not used", "Slots that perish are capacity nobody used: normal when traffic moves between processes, a waste when it stays.", units.OpsPerSecond, 8,
			q(`sum by (store) (rate(headgate_store_wasted_slots_total{JOB}[RATE]))`, "{{store}} wasted"),
			q(`sum by (store) (increase(headgate_store_state_changes_total{JOB}[RATE]))`, "{{store}} went away or came back"))).
		WithPanel(byLevel(stacked("Work queues", "A queue that only grows: the workers are slower than the handlers. Add workers, or refuse earlier.", units.Short, 8,
			q(`sum by (level) (headgate_work_depth{JOB})`, "{{level}}")))).
		WithPanel(lines("Oldest work", "Older than the work is worth: what is done next is done for nobody.", units.Seconds, 8,
			q(`max by (queue) (headgate_work_oldest_seconds{JOB})`, "{{queue}}"))).
		WithPanel(lines("Work dropped", "Accepted and not done: make the bound smaller, so that callers hear it, or the workers faster.", units.OpsPerSecond, 8,
			q(`sum by (queue) (rate(headgate_work_dropped_total{JOB}[RATE]))`, "{{queue}}")))
}

// capacity puts the three sides of Little's law next to each other: concurrency is
// throughput times latency.
func capacity(b *dashboard.DashboardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Capacity: concurrency = throughput × latency")).
		WithPanel(lines("Throughput", "Flat while concurrency grows: saturated. More slots would only add latency.", units.RequestsPerSecond, 8,
			q(`sum by (gate, pool) (rate(headgate_service_seconds_count{GATE}[RATE]))`, "{{gate}} {{pool}}"))).
		WithPanel(lines("Latency, mean", "Rising with throughput flat: work queues below the handlers. Look at what they call.", units.Seconds, 8,
			q(`sum by (gate, pool) (rate(headgate_service_seconds_sum{GATE}[RATE])) / sum by (gate, pool) (rate(headgate_service_seconds_count{GATE}[RATE]))`, "{{gate}} {{pool}}"))).
		WithPanel(lines("Concurrency", "Time in handlers per second is concurrency by Little's law; it should meet what is in flight.", units.Short, 8,
			q(`sum by (gate, pool) (rate(headgate_service_seconds_sum{GATE}[RATE]))`, "{{gate}} {{pool}} by Little's law"),
			q(`sum by (gate, pool) (avg_over_time(headgate_in_flight{GATE}[RATE]))`, "{{gate}} {{pool}} in flight"))).
		WithPanel(byLevel(lines("Service time by level, 99 of 100", "Levels that differ: their routes do different work. Give slow ones a pool of their own.", units.Seconds, 12,
			q(`histogram_quantile(0.99, sum by (le, level) (rate(headgate_service_seconds_bucket{GATE}[RATE])))`, "{{level}}")))).
		WithPanel(lines("Rate limits in force", "What a caller without a plan is allowed: compare with what you sold.", units.OpsPerSecond, 12,
			q(`max by (gate, limit) (headgate_rate_per_second{GATE})`, "{{gate}} {{limit}}"),
			q(`max by (store, scope) (headgate_store_rate_per_second{JOB})`, "{{store}} {{scope}}")))
}
