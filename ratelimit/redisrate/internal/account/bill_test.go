package account_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/account"
	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/account/accounttest"
)

// Case ST-05: tried on the product
//
// Calls are lost on the way there or back, run late, out of order and twice. In the end
// the bucket was charged what was let through and what was adjusted, each token once.
func TestWhatIsToldIsChargedOnceWhateverBecomesOfCalls(t *testing.T) {
	const burst = 100_000
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		now := time.Hour
		store := accounttest.NewModel(func() int64 { return now.Microseconds() })
		c := account.Defaults()
		c.Limit = account.Limit{Rate: 1.0 / 3600, Burst: burst}
		view := account.View{Peers: 1, Trip: time.Millisecond}
		a := account.New(&c, view)
		run := func(r account.Request) account.Reply {
			r.Key, r.Payer = "a", "me"
			rep, _ := store.Lease(context.Background(), r)
			return rep
		}
		var out []account.Request
		spent := 0
		for range 200 {
			now += time.Duration(rnd.IntN(1000)) * time.Millisecond
			switch rnd.IntN(8) {
			case 0:
				a.GoAway(now, view)
			case 1, 2, 3:
				if a.Away() && a.Take(now, 1, 0).Ok {
					spent++
				}
			case 4:
				if !a.Away() {
					a.Adjust(now, 3, now, ratelimit.SourceDirect)
					spent += 3
				}
			case 5:
				if len(out) < 4 {
					out = append(out, a.Ask(now, 0, 0, 0))
				}
			default:
				if len(out) == 0 {
					continue
				}
				i := rnd.IntN(len(out))
				r := out[i]
				switch fate := rnd.IntN(4); fate {
				case 0: // lost on its way
					a.Fail(now, r, account.WhyTimeout, view)
				case 1: // its answer is lost
					run(r)
					a.Fail(now, r, account.WhyTimeout, view)
				default:
					rep := run(r)
					if fate == 2 {
						run(r)
					}
					a.Apply(now, now, r, rep, view)
				}
				out = append(out[:i], out[i+1:]...)
			}
		}
		for tries := 0; len(out) > 0 || a.Owes() && tries < 10; tries++ {
			if len(out) == 0 {
				out = append(out, a.Ask(now, 0, 0, 0))
			}
			a.Apply(now, now, out[0], run(out[0]), view)
			out = out[1:]
		}
		run(a.Ask(now, 0, 0, 0)) // what was adjusted last
		left := run(account.Request{Limit: c.Limit, Seen: -1}).Before
		if charged := burst - int(left/account.Micro); charged != spent {
			t.Fatalf("seed %d: %d charged, %d spent", seed, charged, spent)
		}
	}
}
