package priority_test

import (
	"context"
	"strings"
	"testing"

	"github.com/headgate-go/headgate/priority"
)

func TestZeroLevelIsNormal(t *testing.T) {
	var l priority.Level
	if l != priority.Normal {
		t.Fatalf("zero Level = %v, want normal", l)
	}
}

func TestIndexIsAPlaceInAll(t *testing.T) {
	for i, l := range priority.All() {
		if l.Index() != i || priority.All()[i] != l {
			t.Errorf("level %v: index %d, All()[%d] = %v", l, l.Index(), i, priority.All()[i])
		}
	}
}

func TestInvalidLevelsIndexAsTheNearest(t *testing.T) {
	if got := priority.Level(99).Index(); got != priority.Count-1 {
		t.Errorf("Level(99).Index() = %d", got)
	}
	if got := priority.Level(-99).Index(); got != 0 {
		t.Errorf("Level(-99).Index() = %d", got)
	}
}

func TestParseReadsNamesAndNothingElse(t *testing.T) {
	for in, want := range map[string]priority.Level{
		"batch": priority.Batch, " HIGH ": priority.High, "Critical": priority.Critical, "normal": priority.Normal,
	} {
		if got, ok := priority.Parse(in); !ok || got != want {
			t.Errorf("Parse(%q) = %v, %v", in, got, ok)
		}
	}
	for _, in := range []string{"", "banana", "-5", "3", "99999999999999999999", "critical,batch", "critical\x00", strings.Repeat("critical", 1<<17)} {
		if got, ok := priority.Parse(in); ok || got != priority.Normal {
			t.Errorf("Parse(%.20q) = %v, %v; want normal, false", in, got, ok)
		}
	}
}

func TestTextRoundTrip(t *testing.T) {
	for _, l := range priority.All() {
		text, err := l.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var back priority.Level
		if err := back.UnmarshalText(text); err != nil || back != l {
			t.Errorf("%q came back as %v, %v", text, back, err)
		}
	}
	if _, err := priority.Level(9).MarshalText(); err == nil {
		t.Error("an invalid level was written")
	}
	if err := new(priority.Level).UnmarshalText([]byte("vip")); err == nil {
		t.Error("an unknown name was read")
	}
}

func TestContextCarriesTheLevel(t *testing.T) {
	ctx := context.Background()
	if l, ok := priority.FromContext(ctx); ok || l != priority.Normal {
		t.Errorf("empty context: %v, %v", l, ok)
	}
	if l, ok := priority.FromContext(priority.NewContext(ctx, priority.Batch)); !ok || l != priority.Batch {
		t.Errorf("got %v, %v", l, ok)
	}
}
