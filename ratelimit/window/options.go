package window

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/go-chi/httprate"

	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/ratelimit/internal/table"
)

// Options configure a limiter. They are configuration only: the same Options may make
// two limiters. Negative numbers are errors that name the field.
type Options struct {
	Quota int // what each key may take in a window; at least 1

	// A window is a length of whole seconds, from one to a year, or a "day" or a "month"
	// of the calendar in Zone, from midnight to midnight: a day has 23 to 25 hours where
	// the clock is changed. What was used in the calendar's window before does not count.
	Length time.Duration
	Each   string         // "day" or "month", instead of Length
	Zone   *time.Location // of Each; needed with it, so that no machine's own zone counts by accident

	Name     string                // in headers, metrics and logs; empty: "quota"
	Plans    map[string]int        // quotas by plan: zero admits nothing, [Unlimited] everything; other plans have Quota
	MaxKeys  int                   // counted in a window; further keys share one count; 0: a million
	Counter  httprate.LimitCounter // counts instead of this process' memory: any made for httprate, told quota and length at set-up
	Timeout  time.Duration         // of a decision by Counter; 0: 100 ms
	OnOutage ratelimit.Fail        // what happens while Counter is slow or away; 0: this process counts alone
}

func (o Options) withDefaults() Options {
	o.Name = cmp.Or(o.Name, "quota")
	o.MaxKeys = cmp.Or(o.MaxKeys, table.DefaultMaxKeys)
	o.Timeout = cmp.Or(o.Timeout, 100*time.Millisecond)
	o.Plans = maps.Clone(o.Plans)
	return o
}

func (o *Options) check() error {
	switch {
	case o.Quota < 1:
		return fmt.Errorf("Quota is %d, must be at least 1", o.Quota)
	case o.MaxKeys < 0:
		return fmt.Errorf("MaxKeys is %d, must not be negative", o.MaxKeys)
	case o.Timeout < 0:
		return fmt.Errorf("Timeout is %v, must not be negative", o.Timeout)
	case o.OnOutage > ratelimit.FailClosed:
		return fmt.Errorf("OnOutage is %d, must be FailShare, FailOpen or FailClosed", uint8(o.OnOutage))
	}
	for plan, quota := range o.Plans {
		if quota < 0 {
			return fmt.Errorf("Plans: %q has a quota of %d, must not be negative", plan, quota)
		}
	}
	return o.checkWindow()
}

func (o *Options) checkWindow() error {
	switch {
	case o.Each != "" && o.Length != 0:
		return errors.New("either Length or Each")
	case o.Each != "" && o.Each != "day" && o.Each != "month":
		return fmt.Errorf("Each is %q, must be day or month", o.Each)
	case o.Each != "" && o.Zone == nil:
		return errors.New("Zone is nil, must be the zone of the calendar")
	case o.Each == "" && o.Zone != nil:
		return errors.New("Zone is for Each: a window of a length is the same everywhere")
	case o.Each == "" && (o.Length < time.Second || o.Length > 366*day || o.Length%time.Second != 0):
		return fmt.Errorf("Length is %v, must be whole seconds, from one to a year", o.Length)
	}
	return nil
}
