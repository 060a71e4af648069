// Package metrics shows the kit to Prometheus. One [New] serves everything:
//
//	m := metrics.New(prometheus.DefaultRegisterer)
//	gate := admission.MustNew(admission.Options{Observer: m})
//	client := outbound.MustNew(outbound.Options{Name: "billing", Observer: m.Outbound()})
//	m.Queue("mail", mailQueue)
//
// Serve them with promhttp.Handler, outside of the gate, so that they can be read
// when nothing else is.
//
// # Cost
//
// An admitted request pays for one observation of a histogram and two increments,
// on series that were looked up beforehand: no allocation, some 50 ns. Only those
// that waited pay for the histogram of waits. Everything that says what is in force
// is read from snapshots when Prometheus asks.
//
// # Labels
//
// Labels hold names that the service gave (gate, pool, transport, queue, store) and
// words from closed lists. Nothing a client sends becomes a label; the aliases of callers
// do where [Metrics.ShowCallers] was called, twenty of a gate and "other". One gate with
// one pool is some 340 samples, however many callers there are; each further pool some
// 260, each route up to seven.
//
// Histograms are native with classic buckets beside them: a Prometheus that scrapes
// native histograms gets a resolution of a tenth, every other the buckets.
//
// # The metrics
//
// All names begin with headgate_.
//
// Who is hurt, and why?
//
//	requests_total                gate pool level outcome reason   every request that ended
//	service_seconds               gate pool level                  time in the handler
//	wait_seconds                  gate pool level                  time in the queue, of those that waited and went
//	retry_after_seconds           gate status                      what 429s and 503s told clients to wait
//	shadowed_total                gate level reason                admitted, though a layer in shadow would refuse
//	route_requests_total          gate route outcome               every request that ended, by the pattern of its route
//	route_slot_seconds_total      gate route                       how long work of the route held slots
//
//	callers                       gate caller what               callers that had most, in the last half to one minute; off until ShowCallers
//
// outcome is served, failed (5xx, panic), timed-out (deadline, 503 and 504 of the
// handler's own), ignored (4xx, client gone, streams), refused or exempt. reason is
// admitted, exempt, or one of package shed's reasons for the refusal; those that
// gave up their place in a full queue for work that ranks higher are evicted. route is
// the pattern that the router matched or Options.Routes names: empty where there is
// none, "other" for the routes beyond the first hundred.
//
// Where does it get stuck?
//
//	limit                         gate pool         slots in force
//	limit_least                   gate pool         the lowest the limit may go
//	limit_most                    gate pool         the highest
//	limit_moves_total             gate pool cause   how often it moved
//	limit_cause                   gate pool cause   1 for why it last moved
//	in_flight                     gate pool         slots taken
//	queue_depth                   gate pool level   who waits
//	queue_bytes                   gate pool level   what they announced, where bytes are bounded
//	queue_bound                   gate pool         how many may wait
//	queue_oldest_seconds          gate pool         how long the oldest has waited
//	slot_seconds_total            gate pool level   slots × the time they were held, of work that has ended
//	estimated_slot_seconds_total  gate pool         of work that had waited and was charged by an estimate first
//	estimate_error_slot_seconds_total  gate pool    by how much those estimates were off, either way
//	drain_rate                    gate pool         slots that come free per second while all are taken
//	service_median_seconds        gate pool         median time a slot is held, as the queue predicts with it
//	streams                       gate              open streams
//	draining                      gate              1 during shutdown
//
// Who is limited, and by what?
//
//	rate_decisions_total          gate source       what the rate step decided from
//	rate_per_second               gate limit        tokens of a caller without a plan
//	rate_burst                    gate limit        most at once
//	rate_keys                     gate limit        callers tracked
//	rate_keys_most                gate limit        the bound on them
//	rate_overflow_total           gate limit        decisions of the bucket shared beyond the bound
//	store_degraded                store             1 while the store is away
//	store_peers                   store             processes that share the ceiling
//	store_rate_per_second         store scope       the ceiling (shared), and this process' part of it (share)
//	store_keys                    store state       keys decided with the store (shared) and without (away)
//	store_calls_total             store result      calls to the store
//	store_call_seconds_total      store             time spent in them
//	store_wasted_slots_total      store             leased slots that perished
//	store_state_changes_total     store             times it went away or came back
//
// The calls it makes:
//
//	outbound_attempts_total       transport kind    attempts sent, by what they came to
//	outbound_attempt_seconds      transport         from asking for a turn to the answer's header
//	outbound_not_sent_total       transport reason  refused on this side
//	outbound_slowdowns_total      transport         the other side asked for less
//	outbound_retries_total        transport         attempts followed by another
//	outbound_gave_up_total        transport reason  failed calls not tried again
//	outbound_in_flight            transport         attempts under way
//	outbound_waiting              transport         calls that wait for their turn
//	outbound_multiplier           transport         share of the rate in force, of the worst operation
//	outbound_pause_seconds        transport         longest pause left
//	outbound_retry_budget         transport         retries left, of the worst operation
//
// The work behind it:
//
//	work_depth                    queue level       work that waits
//	work_oldest_seconds           queue             how long the oldest has waited
//	work_dropped_total            queue             accepted, and not delivered
package metrics
