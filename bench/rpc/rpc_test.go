package rpc

import (
	"strings"
	"testing"
)

func TestEverySubjectStandsInTheTables(t *testing.T) {
	var out strings.Builder
	if err := Main(&out, []string{"-for", "1ms"}); err != nil {
		t.Fatal(err)
	}
	for _, s := range subjects() {
		want := 2
		if s.tap != nil {
			want = 1 // it needs a connection
		}
		if n := strings.Count(out.String(), "| "+s.name+" | "); n != want {
			t.Errorf("%s stands in %d tables, want %d:\n%s", s.name, n, want, out.String())
		}
	}
}
