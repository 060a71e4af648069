package account

import (
	"math"
	"slices"
	"time"
)

// flights are a key's calls in flight. Usually there is one. A call that is late is
// not waited for any longer, and another may be made beside it.
type flights struct {
	serial  int64 // of the last call made
	heard   int64 // of the newest call that was answered
	current int64 // of the call that is waited for; 0 for none
	n       int
	out     []flight
	want    int           // tokens they ask for
	late    int           // calls that became late since the last answer
	since   time.Duration // when the first call after the last answer was made
	noted   time.Duration // when calls were first found late since then; 0 for not yet
}

// flight is one of them.
type flight struct {
	serial int64
	at     time.Duration
	want   int
	late   bool
}

// never is no moment: no call was made since the last answer.
const never = time.Duration(math.MaxInt64)

// maxFlights bounds a key's calls in flight.
const maxFlights = 4

func (f *flights) start(t time.Duration, r *Request) {
	if f.n == 0 || f.since == never {
		f.since = t
	}
	f.serial++
	r.Serial = f.serial
	f.current = f.serial
	f.n++
	f.out = append(f.out, flight{serial: f.serial, at: t, want: r.Want})
	f.want += r.Want
}

// land takes a call off the list. It says whether no call made later was answered.
func (f *flights) land(r Request, answered bool) (newest bool) {
	f.n--
	f.want -= r.Want
	f.out = slices.DeleteFunc(f.out, func(c flight) bool { return c.serial == r.Serial })
	if f.current == r.Serial {
		f.current = 0
	}
	if newest = r.Serial > f.heard; newest && answered {
		f.heard, f.late, f.since, f.noted = r.Serial, 0, never, 0
		for _, c := range f.out {
			if c.serial > r.Serial {
				f.since = min(f.since, c.at)
			}
		}
	}
	return newest
}

// overdue says that a call is late: requests that wait for it are decided without it.
func (f *flights) overdue(serial int64) {
	if f.current == serial {
		f.current = 0
	}
	for i := range f.out {
		f.out[i].late = f.out[i].late || f.out[i].serial == serial
	}
	if serial > f.heard {
		f.late++
	}
}

// owing is what late calls ask for: it pays for what was let through without them.
func (f *flights) owing() (want int) {
	for _, c := range f.out {
		if c.late {
			want += c.want
		}
	}
	return want
}
