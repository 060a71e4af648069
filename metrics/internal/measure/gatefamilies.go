package measure

// What a gate tells by events.
var (
	Requests = count("requests_total",
		"Requests that ended, by how: outcome is served, failed, timed-out, ignored, refused or exempt, reason says why a refusal.",
		"gate", "pool", "level", "outcome", "reason")
	ServiceSeconds = spread("service_seconds",
		"Time from admission to the end of the handler. Streams are left out.",
		[]float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60},
		"gate", "pool", "level")
	WaitSeconds = spread("wait_seconds",
		"Time in the queue of requests that waited and were then admitted.",
		[]float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60},
		"gate", "pool", "level")
	RetryAfterSeconds = spread("retry_after_seconds",
		"Retry-After handed out with refusals, by status: 429 is the caller's limit, 503 is overload.",
		[]float64{1, 2, 5, 10, 20, 30, 60, 120},
		"gate", "status")
	RateDecisions = count("rate_decisions_total",
		"Requests by what the rate step decided from: local buckets, the shared ceiling, or what stands in for it.",
		"gate", "source")
)

// What a gate's snapshot shows of its pools.
var (
	Limit = gauge("limit",
		"Slots in force.", "gate", "pool")
	LimitLeast = gauge("limit_least",
		"The lowest the limit may go.", "gate", "pool")
	LimitMost = gauge("limit_most",
		"The highest the limit may go.", "gate", "pool")
	LimitMoves = total("limit_moves_total",
		"Times the limit moved, by cause.", "gate", "pool", "cause")
	LimitCause = gauge("limit_cause",
		"1 for the cause of the limit's last move, else 0.", "gate", "pool", "cause")
	InFlight = gauge("in_flight",
		"Slots taken.", "gate", "pool")
	QueueDepth = gauge("queue_depth",
		"Requests that wait for a slot, by level.", "gate", "pool", "level")
	QueueBytes = gauge("queue_bytes",
		"Announced body bytes of requests that wait, by level, where they are bounded.", "gate", "pool", "level")
	QueueBound = gauge("queue_bound",
		"How many requests may wait.", "gate", "pool")
	QueueOldest = gauge("queue_oldest_seconds",
		"How long the oldest request has waited.", "gate", "pool")
	DrainRate = gauge("drain_rate",
		"Slots that come free per second while all are taken; 0: not known.", "gate", "pool")
	SlotSeconds = total("slot_seconds_total",
		"Slots times the time they were held, of work that has ended, by level.", "gate", "pool", "level")
	EstimatedSeconds = total("estimated_slot_seconds_total",
		"Slot seconds of work that had waited, and was charged to its caller by an estimate first.", "gate", "pool")
	EstimateError = total("estimate_error_slot_seconds_total",
		"By how many slot seconds those estimates were off, either way.", "gate", "pool")
	ServiceMedian = gauge("service_median_seconds",
		"Median time a slot is held, as the queue estimates it; 0: not known.", "gate", "pool")
)

// What a gate's snapshot shows of itself and its limits.
var (
	RouteRequests = total("route_requests_total",
		"Requests that ended, by the pattern of their route and by how. Patterns come from code: empty where the router names none, other beyond the first hundred.",
		"gate", "route", "outcome")
	RouteSlotSeconds = total("route_slot_seconds_total",
		"How long work of the route held slots, in all.", "gate", "route")
	Shadowed = total("shadowed_total",
		"Admitted requests that a layer in shadow mode would have refused.", "gate", "level", "reason")
	Streams = gauge("streams",
		"Open streams, which hold no slot.", "gate")
	Draining = gauge("draining",
		"1 while the gate is shutting down.", "gate")
	RateInForce = gauge("rate_per_second",
		"Tokens per second of a caller without a plan.", "gate", "limit")
	RateBurst = gauge("rate_burst",
		"Most tokens at once of a caller without a plan.", "gate", "limit")
	RateKeys = gauge("rate_keys",
		"Callers with a bucket in memory.", "gate", "limit")
	RateKeysMost = gauge("rate_keys_most",
		"Callers that may have a bucket in memory.", "gate", "limit")
	RateOverflow = total("rate_overflow_total",
		"Decisions made by the strict bucket that newcomers share when the table is full.", "gate", "limit")
)
