package measure

import (
	"strconv"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

const outcomes = int(shed.Unmeasured) + 1

// visits holds the series of one gate's pool, found once, so that counting a
// request hashes no label.
type visits struct {
	gate, pool string

	ended   [priority.Count][outcomes]Incrementer         // admitted visits
	others  [priority.Count][shed.ReasonCount]Incrementer // the rest; nil for Admitted
	service [priority.Count]Recorder
	waits   [priority.Count]Recorder
	retry   [shed.ReasonCount]Recorder // nil: no Retry-After with this reason
	sources [ratelimit.SourceCount]Incrementer
}

func newVisits(to Instruments, gate, pool string) *visits {
	v := &visits{gate: gate, pool: pool}
	for l := range priority.Count {
		level := priority.All()[l].String()
		for o := range outcomes {
			v.ended[l][o] = to.Counter(Requests, gate, pool, level, shed.Outcome(o).String(), shed.Admitted.String())
		}
		v.others[l][shed.Exempt] = to.Counter(Requests, gate, pool, level, "exempt", shed.Exempt.String())
		for r := shed.Exempt + 1; int(r) < shed.ReasonCount; r++ {
			v.others[l][r] = to.Counter(Requests, gate, pool, level, "refused", r.String())
		}
		v.service[l] = to.Histogram(ServiceSeconds, gate, pool, level)
		v.waits[l] = to.Histogram(WaitSeconds, gate, pool, level)
	}
	for r := shed.Exempt + 1; int(r) < shed.ReasonCount; r++ {
		if told(r) {
			status := (&admission.Rejection{Reason: r}).Status()
			v.retry[r] = to.Histogram(RetryAfterSeconds, gate, strconv.Itoa(status))
		}
	}
	for s := range v.sources {
		v.sources[s] = to.Counter(RateDecisions, gate, ratelimit.Source(s).String())
	}
	return v
}

// told reports whether somebody is there to hear of a Retry-After.
func told(r shed.Reason) bool {
	return r != shed.Unidentified && r != shed.NotAdmissible && r != shed.ClientGone
}

func (v *visits) count(e *admission.Event) {
	l := e.Level.Index()
	if e.Reason == shed.Admitted {
		v.admitted(e, l)
		return
	}
	r := int(e.Reason) % shed.ReasonCount
	v.others[l][r].Inc()
	if w := v.retry[r]; w != nil {
		w.Record(max(e.RetryAfter, time.Second))
	}
	if asked(e.Reason) {
		v.decided(e.Source)
	}
}

func (v *visits) admitted(e *admission.Event, l int) {
	v.ended[l][min(int(e.Outcome), outcomes-1)].Inc()
	v.decided(e.Source)
	if !e.Streamed {
		v.service[l].Record(e.Served)
	}
	if e.Waited > 0 {
		v.waits[l].Record(e.Waited)
	}
}

func (v *visits) decided(s ratelimit.Source) { v.sources[int(s)%ratelimit.SourceCount].Inc() }

// asked reports whether a visit that ended so had come to the rate step.
func asked(r shed.Reason) bool {
	return r != shed.Exempt && r != shed.Unidentified && r != shed.Draining
}
