package caller

import (
	"strings"
	"testing"
)

// Every byte is judged alike wherever it stands, and whatever stands beside it.
func TestPrintableJudgesEachByteByItself(t *testing.T) {
	for b := range 256 {
		want := b >= ' ' && b <= '~'
		for at := range 19 {
			for _, fill := range []string{" ", "~", "a"} {
				s := strings.Repeat(fill, at) + string([]byte{byte(b)}) + strings.Repeat(fill, 18-at)
				if printable(s) != want || printable(s[:at+1]) != want {
					t.Fatalf("byte %#x at %d among %q: not %v", b, at, fill, want)
				}
			}
		}
		if pair := string([]byte{byte(b), 0xff, 0x7f, 0, ' ', '~', 'a', 'b'}); printable(pair) {
			t.Fatalf("%q", pair)
		}
	}
}
