package admission_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/admissiontest"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

const hourly = rate.Limit(1.0 / 3600)

// mustLeave checks how many requests of caller a still pass.
func mustLeave(t *testing.T, h http.Handler, want int) {
	t.Helper()
	for i := range want + 1 {
		status := http.StatusOK
		if i == want {
			status = http.StatusTooManyRequests
		}
		if w := do(h, request("GET", "/", "X-Tenant", "a")); w.Code != status {
			t.Errorf("request %d of the %d that are left: %d", i+1, want, w.Code)
		}
	}
}

func TestTheLongQuotaComesBackWhenCapacityRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.MustNew(admission.Options{
			Identify: caller.Header("X-Tenant"), Quota: ratelimit.PerKey(hourly, 3), Pool: admission.Pool{Limit: shed.Fixed(1), MaxWait: admission.NoWait},
		})
		h := g.Handler(okHandler())
		held, _ := g.Admit(t.Context(), admission.Ticket{Caller: caller.Caller{Key: "b", Verified: true}})
		for range 10 {
			mustRefuse(t, do(h, request("GET", "/", "X-Tenant", "a")), http.StatusServiceUnavailable, shed.Capacity)
		}
		held.Release(shed.Served)
		mustLeave(t, h, 3)
	})
}

func TestTheLongQuotaStaysSpentForAClientThatLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.MustNew(admission.Options{
			Identify: caller.Header("X-Tenant"), Quota: ratelimit.PerKey(hourly, 3), Pool: admission.Pool{Limit: shed.Fixed(1), MaxWait: time.Minute},
		})
		h := g.Handler(okHandler())
		held, _ := g.Admit(t.Context(), admission.Ticket{Caller: caller.Caller{Key: "b", Verified: true}})
		ctx, leave := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, leave)
		if w := do(h, request("GET", "/", "X-Tenant", "a").WithContext(ctx)); w.Header().Get("Headgate-Reason") != shed.ClientGone.String() && w.Code != 503 {
			t.Errorf("answer %d %v", w.Code, w.Header())
		}
		held.Release(shed.Served)
		mustLeave(t, h, 2)
	})
}

// booked is a limit that counts what is asked of its grants.
type booked struct{ taken, undone, adjusted int }

func (b *booked) Take(_ context.Context, now time.Time, key ratelimit.Key, cost int, _ time.Duration) ratelimit.Decision {
	b.taken++
	return ratelimit.Decision{OK: true, Grant: ratelimit.Grant{From: b, Key: key, Cost: cost, At: now}}
}
func (*booked) Policy(ratelimit.Key) ratelimit.Policy    { return ratelimit.Policy{Name: "booked"} }
func (*booked) Validate() error                          { return nil }
func (b *booked) Undo(time.Time, ratelimit.Grant)        { b.undone++ }
func (b *booked) Adjust(time.Time, ratelimit.Grant, int) { b.adjusted++ }

// What shadow mode gave back is not the request's any more: neither a charge nor the
// end of the request touches it again.
func TestAGrantThatShadowGaveBackIsNotTouchedAgain(t *testing.T) {
	book := &booked{}
	g := admission.MustNew(admission.Options{Rate: book, Quota: ratelimit.PerKey(hourly, 1), Shadow: admission.ShadowRate})
	h := g.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { admission.Charge(r.Context(), 7) }))
	get(h) // uses up the quota
	if *book != (booked{taken: 1, adjusted: 1}) {
		t.Errorf("after the first request %+v", *book)
	}
	get(h)
	if *book != (booked{taken: 2, undone: 1, adjusted: 1}) {
		t.Errorf("after one that shadow let through: %+v, want its grant undone and left alone", *book)
	}
}

// Every reason on the wire says when to return, but those that waiting cannot help.
func TestEveryReasonSaysWhenToReturn(t *testing.T) {
	for i := range shed.ReasonCount {
		reason := shed.Reason(i)
		if !reason.Refused() {
			continue
		}
		got := get(admissiontest.Refuse(reason).Handler(okHandler())).Header().Get("Retry-After")
		want := "1"
		if reason == shed.NotAdmissible || reason == shed.Unidentified {
			want = ""
		}
		if got != want {
			t.Errorf("%v: Retry-After = %q, want %q", reason, got, want)
		}
	}
}

func TestStatsShowNoKeyOfACallerWithoutAnAlias(t *testing.T) {
	g := admission.MustNew(admission.Options{Identify: caller.Header("X-Tenant"), Rate: ratelimit.PerKey(hourly, 1)})
	h := g.Handler(okHandler())
	const key = "sk_live_secret"
	for range 3 {
		do(h, request("GET", "/", "X-Tenant", key))
	}
	top := g.Stats().Limited
	if len(top) != 1 || strings.Contains(top[0].Alias, "secret") || top[0].Alias != g.Alias(caller.Caller{Key: key, Space: "header:X-Tenant"}) {
		t.Errorf("shown: %+v", top)
	}
}

// A reload keeps each limit's balances, of callers that are known and of those that are not.
func TestUpdateKeepsTheBalancesOfEveryLimit(t *testing.T) {
	for name, set := range map[string]func(*admission.Options, ratelimit.Limiter){
		"Rate":      func(o *admission.Options, l ratelimit.Limiter) { o.Rate, o.Identify = l, caller.Header("X-Tenant") },
		"Quota":     func(o *admission.Options, l ratelimit.Limiter) { o.Quota, o.Identify = l, caller.Header("X-Tenant") },
		"Anonymous": func(o *admission.Options, l ratelimit.Limiter) { o.Anonymous = l },
		"Address":   func(o *admission.Options, l ratelimit.Limiter) { o.Address = l },
		"a rule's rate": func(o *admission.Options, l ratelimit.Limiter) {
			o.Routes = map[string]admission.Rule{"/": admission.AtLevel(priority.Normal, admission.Rate(l))}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				options := func(burst int) (o admission.Options) {
					set(&o, ratelimit.PerKey(hourly, burst))
					return o
				}
				g := admission.MustNew(options(5))
				h := g.Handler(okHandler())
				for range 4 {
					do(h, request("GET", "/", "X-Tenant", "a"))
				}
				mustUpdate(t, g, options(6))
				mustLeave(t, h, 1)
			})
		})
	}
}

// flushing is a writer with FlushError alone; hiding shows nothing but Unwrap.
type flushing struct{ http.ResponseWriter }

func (flushing) FlushError() error { return nil }

type hiding struct{ http.ResponseWriter }

func (h hiding) Unwrap() http.ResponseWriter { return h.ResponseWriter }

func TestAFlushThroughTheControllerLeavesTheSlot(t *testing.T) {
	for name, w := range map[string]http.ResponseWriter{
		"flusher":     httptest.NewRecorder(),
		"FlushError":  flushing{httptest.NewRecorder()},
		"Unwrap only": hiding{httptest.NewRecorder()},
	} {
		g := capped(1)
		g.At(priority.Normal, admission.Stream(1))(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if err := http.NewResponseController(w).Flush(); err != nil && name != "FlushError" {
				t.Errorf("%s: %v", name, err)
			}
			if s := g.Stats(); s.InFlight() != 0 || s.Streams != 1 {
				t.Errorf("%s: %d in flight, %d streams after the flush", name, s.InFlight(), s.Streams)
			}
		})).ServeHTTP(w, request("GET", "/"))
		atRest(t, g)
	}
}
