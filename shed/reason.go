package shed

// Reason says how a request's visit at the gate ended. The list is closed: every
// request ends in exactly one of them, they are counted under these names, and
// clients read them in the Headgate-Reason header.
//
// A Reason other than Admitted and Exempt is an error, so that a refusal costs no
// allocation and reads errors.Is(err, shed.QueueFull).
type Reason uint8

// The ways a visit ends. Which of them is a 429 and which a 503 is the HTTP
// layer's business.
const (
	Admitted           Reason = iota // got a slot
	Exempt                           // declared outside the gate: no token, no slot
	Unidentified                     // the identify step refused the caller
	RateLimited                      // the caller sends more than it may; it may come back
	NotAdmissible                    // no waiting makes this request admissible (cost above burst, rate zero)
	LimiterUnavailable               // the shared limit's store is away and its policy is closed
	RouteCap                         // the route's own cap on in-flight work
	CallerCap                        // the caller's share of in-flight work
	StreamCap                        // the route's cap on open streams
	Capacity                         // all slots taken and this request does not wait
	QueueFull                        // the queue is at its bound for this level
	QueueBytes                       // the queue is at its bound of announced body bytes
	PredictedWait                    // the wait that was predicted is longer than the longest stay
	WaitedTooLong                    // the longest stay in the queue ended
	DeadlineUnmeetable               // the deadline could not be met
	Evicted                          // gave up its place in a full queue for work ranked higher
	Pressure                         // a secondary signal (memory, scheduler, pool) sheds this level
	ClientGone                       // the client left before an answer
	Draining                         // the process is shutting down
)

// ReasonCount is the number of reasons, for arrays indexed by Reason.
const ReasonCount = int(Draining) + 1

var reasonNames = [ReasonCount]string{
	"admitted", "exempt", "unidentified", "rate-limited", "not-admissible", "limiter-unavailable",
	"route-cap", "caller-cap", "stream-cap", "capacity", "queue-full", "queue-bytes",
	"predicted-wait", "waited-too-long", "deadline-unmeetable", "evicted", "pressure", "client-gone", "draining",
}

// String returns the reason's name in metrics, logs and the Headgate-Reason header.
func (r Reason) String() string {
	if int(r) >= ReasonCount {
		return "unknown"
	}
	return reasonNames[r]
}

// Error makes a refusal an error value.
func (r Reason) Error() string { return "headgate: " + r.String() }

// Refused reports whether the visit ended without the handler being run.
func (r Reason) Refused() bool { return r != Admitted && r != Exempt }

// Err returns nil for Admitted and Exempt, and r itself for a refusal.
func (r Reason) Err() error {
	if r.Refused() {
		return r
	}
	return nil
}
