package store

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/headgate-go/headgate/ratelimit"
)

func FuzzKeysAreInjectiveAndBounded(f *testing.F) {
	for _, s := range []string{"", "a", "{a}", "a{b}c", "{}", "}{", ":", "a:b", "%7B", "~", strings.Repeat("é", 150), "\xff\xfe", "\x00\r\n"} {
		f.Add(s, "b", "x", "b:x")
		f.Add("n", s, "n"+s, "")
	}
	f.Fuzz(func(t *testing.T, space1, id1, space2, id2 string) {
		a := BucketKey("name", ratelimit.Key{Space: space1, ID: id1})
		b := BucketKey("name", ratelimit.Key{Space: space2, ID: id2})
		if (a == b) != (space1 == space2 && id1 == id2) {
			t.Fatalf("(%q, %q) and (%q, %q) give %q and %q", space1, id1, space2, id2, a, b)
		}
		open, shut := strings.IndexByte(a, '{'), strings.IndexByte(a, '}')
		if strings.Count(a, "{") != 1 || strings.Count(a, "}") != 1 || shut <= open+1 || len(a) > 200 || !utf8.ValidString(a) {
			t.Fatalf("%q is not a key with one hash tag", a)
		}
	})
}

func FuzzRepliesAreNotBelieved(f *testing.F) {
	f.Add("ok 1 1000000 50 100 1000000 0 0 0 1800000000000000")
	f.Add("ok -1 1 nan 0 0 0 0 0 0")
	f.Add("late 5")
	f.Add("ok 9999999999999999999 1 1 1 1 1 1 1 1")
	f.Fuzz(func(t *testing.T, text string) {
		rep, _, err := parseReply(text)
		if err == nil && (rep.Granted < 0 || !(rep.Limit.Rate > 0) || rep.Limit.Burst < 1 || !(rep.Multiplier > 0) || rep.Pause < 0) {
			t.Fatalf("%q gave %+v", text, rep)
		}
	})
}
