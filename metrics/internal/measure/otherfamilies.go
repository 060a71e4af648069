package measure

// What the stores behind shared limits show.
var (
	StoreDegraded = gauge("store_degraded",
		"1 while the store is away, for all keys or for some.", "store")
	StorePeers = gauge("store_peers",
		"Processes that share the ceiling.", "store")
	StoreRate = gauge("store_rate_per_second",
		"Tokens per second of a key: shared is the ceiling, share what this process admits of it while the store is away.",
		"store", "scope")
	StoreKeys = gauge("store_keys",
		"Keys tracked here: away are those decided by the share.", "store", "state")
	StoreCalls = total("store_calls_total",
		"Calls to the store, by result.", "store", "result")
	StoreSeconds = total("store_call_seconds_total",
		"Time spent in calls to the store, all together.", "store")
	StoreWasted = total("store_wasted_slots_total",
		"Leased slots that perished unused.", "store")
	StoreChanges = total("store_state_changes_total",
		"Times the store went away or came back.", "store")
)

// What an outbound transport tells and shows.
var (
	Attempts = count("outbound_attempts_total",
		"Attempts that were sent, by what they came to.", "transport", "kind")
	AttemptSeconds = spread("outbound_attempt_seconds",
		"Time from asking for a turn to the header of the answer.",
		[]float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60},
		"transport")
	NotSent = count("outbound_not_sent_total",
		"Attempts that were refused on this side, by reason.", "transport", "reason")
	Slowdowns = count("outbound_slowdowns_total",
		"Times the rate was cut or a pause began because the other side asked for it.", "transport")
	Retries = count("outbound_retries_total",
		"Attempts that were followed by another.", "transport")
	GaveUp = count("outbound_gave_up_total",
		"Failed calls that were not tried again, by reason.", "transport", "reason")
	OutboundInFlight = gauge("outbound_in_flight",
		"Attempts whose answer is not done with.", "transport")
	OutboundWaiting = gauge("outbound_waiting",
		"Calls that wait for their turn.", "transport")
	OutboundMultiplier = gauge("outbound_multiplier",
		"Share of the configured rate in force, of the operation with the lowest; 1: all of it.", "transport")
	OutboundPause = gauge("outbound_pause_seconds",
		"How long everybody stays away yet, of the operation or service with the longest pause.", "transport")
	RetryBudget = gauge("outbound_retry_budget",
		"Retries the budget allows now, of the operation with the fewest.", "transport")
)

// What a work queue shows.
var (
	WorkDepth = gauge("work_depth",
		"Work that waits to be done, by level.", "queue", "level")
	WorkOldest = gauge("work_oldest_seconds",
		"How long the oldest work has waited.", "queue")
	WorkDropped = total("work_dropped_total",
		"Work that was accepted and will not be delivered.", "queue")
)
