package ratelimit

import (
	"context"
	"strconv"
	"testing"
	"time"
)

func takeN(l Limiter, now time.Time, id string, cost int) Decision {
	return l.Take(context.Background(), now, Key{ID: id}, cost, 0)
}

// A charge after the fact is the debt of its key alone: keys that come later start
// from a full bucket, whether the table has room or not.
//
// Case LI-01: tried on the product
func TestADebtIsItsOwners(t *testing.T) {
	for _, known := range []int{2, 50} {
		for name, maxKeys := range map[string]int{"room": 1000, "full": known} {
			l := PerKey(10, 10, MaxKeys(maxKeys))
			for i := range known {
				takeN(l, epoch, "known-"+strconv.Itoa(i), 10)
			}
			d := takeN(l, epoch, "debtor", 1)
			d.Adjust(epoch, 100_000)
			served := 0
			for i := range 9 {
				if takeN(l, epoch, "new-"+strconv.Itoa(i), 1).OK {
					served++
				}
			}
			if served != 9 {
				t.Errorf("%d known, %s: %d of 9 newcomers served", known, name, served)
			}
			if d := takeN(l, epoch, "debtor", 1); d.OK || d.Wait < 9999*time.Second {
				t.Errorf("%d known, %s: the debtor got %+v, want its debt waited off", known, name, d)
			}
			later := epoch.Add(9 * time.Second)
			for i := range known {
				if d := takeN(l, later, "known-"+strconv.Itoa(i), 10); !d.OK {
					t.Errorf("%d known, %s: a known key got %+v", known, name, d)
				}
			}
			if s := l.Stats(); s.Keys > s.MaxKeys || s.Peak > s.MaxKeys || s.Uncharged != 0 {
				t.Errorf("%d known, %s: %+v", known, name, s)
			}
		}
	}
}

// The same where the key had a bucket once, and it is full again and forgotten.
func TestADebtAfterItsBucketIsForgottenIsItsOwners(t *testing.T) {
	l := PerKey(10, 10, MaxKeys(2))
	d := takeN(l, epoch, "debtor", 1)
	now := epoch
	for l.Stats().Keys > 1 || now.Equal(epoch) { // until only "other" is there
		now = now.Add(time.Minute)
		takeN(l, now, "other", 10)
	}
	takeN(l, now, "another", 10)
	d.Adjust(now, 100_000)
	if d := takeN(l, now, "newcomer", 10); !d.OK {
		t.Errorf("a newcomer got %+v", d)
	}
	if d := takeN(l, now, "debtor", 1); d.OK {
		t.Errorf("the debtor got %+v", d)
	}
}

// Buckets for debts are bounded as well: what is beyond the bound is lost, counted,
// and is no debt of another key either.
func TestDebtsAreBounded(t *testing.T) {
	l := PerKey(1000, 1000, MaxKeys(1))
	takeN(l, epoch, "known", 1)
	for i := range 500 {
		takeN(l, epoch, strconv.Itoa(i), 1).Adjust(epoch, 1_000_000)
	}
	s := l.Stats()
	if s.Keys != 1 || s.Extra != 64 || s.Uncharged != 500-64 {
		t.Errorf("%+v, want 64 extra buckets and the other charges counted", s)
	}
	if d := takeN(l, epoch, "newcomer", 1); !d.OK || d.Remaining != 499 {
		t.Errorf("a newcomer got %+v, want what the others took to be missing, no more", d)
	}
	for now := epoch; l.Stats().Extra > 0; now = now.Add(time.Hour) {
		takeN(l, now, "light", 1)
	}
}

// A charge for work under an old plan takes tokens, and leaves the key on its plan.
func TestAChargeDoesNotChangeThePlan(t *testing.T) {
	l := Tiers(Plan{Rate: 1, Burst: 5}, map[string]Plan{"pro": {Rate: 1, Burst: 50}})
	pro := Key{ID: "a", Plan: "pro"}
	l.Take(context.Background(), epoch, pro, 10, 0)
	d := takeN(l, epoch, "a", 1)
	l.Take(context.Background(), epoch, pro, 1, 0)
	now := epoch.Add(time.Minute)
	l.Take(context.Background(), now, pro, 1, 0)
	d.Adjust(now, 10)
	if d := l.Take(context.Background(), now, pro, 1, 0); d.Remaining != 38 {
		t.Errorf("got %+v, want 50 less 12 left", d)
	}
}

// An undone grant of a spare bucket goes back to that one only: with a function for
// plans the same key may ask for other numbers by then.
func TestARefundOfASharedBucketIsItsOwn(t *testing.T) {
	burst := 5
	l := TiersFunc(Plan{Rate: 1, Burst: 1}, func(Key) Plan { return Plan{Rate: 1, Burst: burst} }, MaxKeys(1))
	takeN(l, epoch, "known", 1)
	d := takeN(l, epoch, "a", 5)
	burst = 6
	takeN(l, epoch, "b", 6)
	d.Undo(epoch)
	if d := takeN(l, epoch, "c", 1); d.OK {
		t.Errorf("tokens of one bucket came back to another: %+v", d)
	}
	burst = 5
	if d := takeN(l, epoch, "c", 1); d.OK {
		t.Errorf("got %+v, want that refund lost", d)
	}
}
