package top

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate-go/headgate/admission/caller"
)

var start = time.Unix(1_700_000_000, 0)

func TestTheMostLimitedComeFirstAndAreForgotten(t *testing.T) {
	l := New()
	at := start
	for range 3 {
		l.Note(at, caller.Caller{Key: "globex", Alias: "Globex"}, 1)
	}
	for range 5 {
		l.Note(at, caller.Caller{Key: "acme", Alias: "Acme"}, 1)
	}
	want := []Entry{{"Acme", 5}, {"Globex", 3}}
	for _, later := range []time.Duration{0, window} {
		if got := l.Top(at.Add(later)); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("after %v: %v, want %v", later, got, want)
		}
	}
	if got := l.Top(at.Add(2 * window)); len(got) != 0 {
		t.Errorf("a minute later %v are still shown", got)
	}
}

func TestAFloodOfCallersStaysBoundedAndOverstatesNone(t *testing.T) {
	l := New()
	heavy := caller.Caller{Key: "heavy", Alias: "heavy"}
	for i := range 100_000 {
		l.Note(start, caller.Caller{Space: "addr", Key: fmt.Sprint(i)}, 1)
		if i%50 == 0 {
			l.Note(start, heavy, 1)
		}
	}
	top := l.Top(start)
	if len(top) == 0 || len(top) > shown {
		t.Fatalf("%d callers shown", len(top))
	}
	if top[0].Alias != "heavy" || top[0].Count < 1500 || top[0].Count > 2000 {
		t.Errorf("first is %+v, want heavy with nearly 2000", top[0])
	}
	for _, c := range top[1:] {
		if c.Count > 1 {
			t.Errorf("%+v was refused once", c)
		}
	}
}
