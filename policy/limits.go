package policy

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/ratelimit/window"
)

// limitSet are the rate limits of [admission.Options] and its CallerCap.
type limitSet struct {
	Rate      *limit `yaml:"rate"`
	Anonymous *limit `yaml:"anonymous"`
	Address   *limit `yaml:"address"`
	Quota     *limit `yaml:"quota"`
	Preflight *limit `yaml:"preflight"`
	CallerCap Int    `yaml:"caller_cap"`
}

// each returns the limits with their fields, those that are not set as nil.
func (l *limitSet) each() []fieldLimit {
	return []fieldLimit{{"rate", l.Rate}, {"anonymous", l.Anonymous}, {"address", l.Address}, {"quota", l.Quota}, {"preflight", l.Preflight}}
}

type fieldLimit struct {
	field string
	limit *limit
}

func (l *limitSet) fill(at place, ls limits, opts *admission.Options) {
	for i, into := range []*ratelimit.Limiter{&opts.Rate, &opts.Anonymous, &opts.Address, &opts.Quota, &opts.HTTP.PreflightRate} {
		one := l.each()[i]
		*into = one.limit.limiter(at.in(one.field), ls)
	}
	if l.CallerCap < 0 {
		at.in("caller_cap").wrongf("must not be negative")
	}
	opts.CallerCap = int(l.CallerCap)
}

// limit is one rate limit. With Rate and Burst it is a token bucket for each key;
// with Count and Per it counts in windows of that length, and with Count and Each in days
// or months of the calendar in Zone (see package window). It counts
// requests, or the unit that Counts names. And are limits that hold as well: a request
// takes from all of them or from none.
type limit struct {
	Rate   perSecond       `yaml:"rate"`
	Burst  Int             `yaml:"burst"`
	Count  Int             `yaml:"count"`
	Per    Duration        `yaml:"per"`
	Each   string          `yaml:"each" words:"day,month"`
	Zone   string          `yaml:"zone"`
	Name   string          `yaml:"name"`
	Global bool            `yaml:"global"`
	Keys   Int             `yaml:"keys"`
	Plans  map[string]plan `yaml:"plans"`
	Shadow bool            `yaml:"shadow"`
	Local  bool            `yaml:"local"`
	Counts string          `yaml:"counts"`
	And    []limit         `yaml:"and"`
}

// plan is a row of numbers for the callers that have been sold it. Without a rate,
// or a count, it has those of the limit.
type plan struct {
	Rate   perSecond `yaml:"rate"`
	Burst  Int       `yaml:"burst"`
	Count  Int       `yaml:"count"`
	Allow  string    `yaml:"allow" words:"metered,everything,nothing"`
	Cost   Int       `yaml:"cost"`
	Level  string    `yaml:"level"`
	Share  number    `yaml:"share"`
	Weight Int       `yaml:"weight"`
}

// limits are what all limits of a file have in common.
type limits struct {
	redis  string
	shared func(SharedLimit) (ratelimit.Limiter, error)
	named  map[string]SharedLimit // those shared so far
}

// limiter builds the limit with those that hold as well; nil for none, and for one that
// makes no sense.
func (l *limit) limiter(at place, ls limits) ratelimit.Limiter {
	if l == nil {
		return nil
	}
	first := l.alone(at, ls)
	if len(l.And) == 0 {
		return first
	}
	parts := []ratelimit.Limiter{first}
	for i := range l.And {
		parts = append(parts, l.And[i].limiter(at.in("and", strconv.Itoa(i)), ls))
	}
	if slices.Contains(parts, nil) {
		return nil // what is wrong with it has been noted
	}
	return checked(at, ratelimit.All(parts...), nil)
}

// alone builds the limit without the others.
func (l *limit) alone(at place, ls limits) ratelimit.Limiter {
	built, err := l.build(at, ls)
	if l.Counts != "" && built != nil {
		built = ratelimit.Counting(l.Counts, built)
	}
	if built = checked(at, built, err); built != nil && l.Shadow {
		return ratelimit.Shadow(built)
	}
	return built
}

// checked returns a limiter that makes sense, or notes why it does not and returns nil.
func checked(at place, built ratelimit.Limiter, err error) ratelimit.Limiter {
	if err == nil && built != nil {
		err = built.Validate()
	}
	if err != nil {
		at.wrong(err)
		return nil
	}
	return built
}

// called is the name of the limit where it has none of its own: that of its field, and
// what it counts where the field has several.
func (l *limit) called(at place) string {
	steps := at.path
	name := steps[len(steps)-1]
	for n := len(steps); n > 2 && steps[n-2] == "and"; n -= 2 {
		name = steps[n-3] + "-" + cmp.Or(l.Counts, name)
	}
	return cmp.Or(l.Name, name)
}

func (l *limit) build(at place, ls limits) (ratelimit.Limiter, error) {
	name := l.called(at)
	if ls.redis != "" && !l.Local {
		return l.share(at, ls)
	}
	if l.windowed() {
		return l.window(at, name)
	}
	opts := []ratelimit.Option{ratelimit.Name(name)}
	if l.Keys != 0 {
		opts = append(opts, ratelimit.MaxKeys(int(l.Keys)))
	}
	switch {
	case l.Global && len(l.Plans) > 0:
		return nil, errors.New("global has one bucket: plans have no say in it")
	case l.Global:
		return ratelimit.Global(rate.Limit(l.Rate), int(l.Burst), opts...), nil
	case len(l.Plans) > 0:
		return ratelimit.Tiers(l.fallback(), l.plans(at.in("plans")), opts...), nil
	}
	return ratelimit.PerKey(rate.Limit(l.Rate), int(l.Burst), opts...), nil
}

func (l *limit) fallback() ratelimit.Plan {
	return ratelimit.Plan{Rate: rate.Limit(l.Rate), Burst: int(l.Burst)}
}

// share asks for the limit that all processes share.
func (l *limit) share(at place, ls limits) (ratelimit.Limiter, error) {
	if ls.shared == nil {
		return nil, errors.New("redis is set, but this program cannot share limits: say local: true")
	}
	if l.Global || l.windowed() {
		return nil, errors.New("global and count are kept by each process: say local: true")
	}
	name := l.Name
	if name == "" {
		name = strings.Join(at.path, ".")
	}
	limit := SharedLimit{Redis: ls.redis, Name: name, Plan: l.fallback(), Keys: int(l.Keys)}
	if len(l.Plans) > 0 {
		limit.Plans = l.plans(at.in("plans"))
	}
	if twin, ok := ls.named[name]; ok && !reflect.DeepEqual(twin, limit) {
		return nil, fmt.Errorf("another limit named %q has other numbers: in Redis both would be one", name)
	}
	ls.named[name] = limit
	return ls.shared(limit)
}

// window counts in windows.
func (l *limit) window(at place, name string) (ratelimit.Limiter, error) {
	if l.Rate != 0 || l.Burst != 0 || l.Global {
		return nil, errors.New("either rate and burst, or count and per, or count and each")
	}
	switch {
	case l.Per != 0 && l.Each != "":
		return nil, errors.New("either per or each")
	case l.Zone == "Local":
		return nil, errors.New("zone: Local is another one on each machine; name it, as Europe/Berlin")
	case l.Zone != "" && l.Each == "":
		return nil, errors.New("zone is for each: a window of a length is the same everywhere")
	case l.Each != "" && l.Each != "day" && l.Each != "month":
		return nil, fmt.Errorf("each: unknown %q; there are: day, month", l.Each)
	}
	o := window.Options{
		Quota: int(l.Count), Length: time.Duration(l.Per), Each: l.Each,
		Name: name, MaxKeys: int(l.Keys), Plans: l.quotas(at.in("plans")),
	}
	if l.Each != "" {
		zone, err := time.LoadLocation(l.Zone) // of the machine or of the program; "" is UTC
		if err != nil {
			return nil, fmt.Errorf("zone: %w", err)
		}
		o.Zone = zone
	}
	made, err := window.New(o)
	if err != nil {
		return nil, err
	}
	return made, nil
}

// windowed reports whether the limit counts in windows.
func (l *limit) windowed() bool { return l.Count != 0 || l.Per != 0 || l.Each != "" || l.Zone != "" }

func (l *limit) quotas(at place) map[string]int {
	quotas := make(map[string]int, len(l.Plans))
	for name, p := range l.Plans {
		here := at.in(name)
		switch allow := allowed(here, p.Allow); {
		case p != (plan{Count: p.Count, Allow: p.Allow}):
			here.wrongf("a plan of a count has a count, or allow")
		case allow == ratelimit.AllowEverything:
			quotas[name] = window.Unlimited
		case allow == ratelimit.AllowNothing:
			quotas[name] = 0
		case p.Count < 1:
			here.in("count").wrongf("must be at least 1; or say allow: nothing")
		default:
			quotas[name] = int(p.Count)
		}
	}
	return quotas
}

var allowances = map[string]ratelimit.Allow{
	"": ratelimit.AllowMetered, "metered": ratelimit.AllowMetered,
	"everything": ratelimit.AllowEverything, "nothing": ratelimit.AllowNothing,
}

func (l *limit) plans(at place) map[string]ratelimit.Plan {
	plans := make(map[string]ratelimit.Plan, len(l.Plans))
	for name, p := range l.Plans {
		if p.Count != 0 {
			at.in(name, "count").wrongf("a plan of a rate has a rate and a burst")
		}
		plans[name] = ratelimit.Plan{
			Rate: rate.Limit(p.Rate), Burst: int(p.Burst), Allow: allowed(at.in(name), p.Allow),
			Cost: int(p.Cost), Level: p.Level, Share: float64(p.Share), Weight: int(p.Weight),
		}
	}
	return plans
}

func allowed(at place, word string) ratelimit.Allow {
	allow, ok := allowances[word]
	if !ok {
		at.in("allow").wrongf("unknown %q; there are: metered, everything, nothing", word)
	}
	return allow
}
