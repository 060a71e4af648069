package answer

import (
	"mime"
	"strconv"
	"strings"
	"testing"
)

func TestAcceptDecidesBetweenJSONAndText(t *testing.T) {
	for _, tc := range []struct {
		lines []string
		want  bool
	}{
		{nil, true},
		{[]string{""}, true},
		{[]string{" , "}, true},
		{[]string{"*/*"}, true},
		{[]string{"application/problem+json"}, true},
		{[]string{"Application/JSON"}, true},
		{[]string{"application/*;q=0.2"}, true},
		{[]string{"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}, true},
		{[]string{"text/html", "application/json;q=0.1"}, true},
		{[]string{"application/json ; charset=utf-8 ; Q=0.001"}, true},
		{[]string{"text/plain"}, false},
		{[]string{"*/*;q=0"}, false},
		{[]string{"application/problem+json;q=0, */*"}, false},
		{[]string{"*/*", "application/*;q=0.000"}, false},
		{[]string{"application/json;q=0.0, application/*"}, false},
		{[]string{"application/problem+json, */*;q=0"}, true},
		{[]string{"application/problem+jsonx"}, false},
		{[]string{"*"}, false},
		{[]string{strings.Repeat("a", 1<<20)}, false},
		{[]string{strings.Repeat("text/html,", 100) + "*/*"}, false}, // beyond what is read
	} {
		if got := acceptsProblem(tc.lines); got != tc.want {
			t.Errorf("Accept %.60q: %v; want %v", tc.lines, got, tc.want)
		}
	}
}

// acceptOracle reads one well-formed line with the standard library's parser. It
// reports false for read when the line is not well-formed.
func acceptOracle(line string) (allowed, read bool) {
	best := map[string]float64{}
	for item := range strings.SplitSeq(line, ",") {
		media, params, err := mime.ParseMediaType(item)
		if err != nil || !strings.Contains(media, "/") {
			return false, false
		}
		q := 1.0
		if text, ok := params["q"]; ok {
			if q, err = strconv.ParseFloat(text, 64); err != nil || !strings.HasPrefix(text, "0") && !strings.HasPrefix(text, "1") || strings.Trim(text, "0123456789.") != "" {
				return false, false
			}
		}
		if _, dup := best[media]; dup {
			return false, false
		}
		best[media] = q
	}
	for _, media := range []string{"application/problem+json", "application/json", "application/*", "*/*"} {
		if q, ok := best[media]; ok {
			return q > 0, true
		}
	}
	return false, true
}

func FuzzAccept(f *testing.F) {
	for _, s := range []string{"*/*", "text/html, application/json;q=0.5", "application/*;q=0,*/*", "application/problem+json;v=1;q=0.0", ",;q=,"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		got := acceptsProblem([]string{line})
		if strings.ContainsAny(line, `"\'`) || strings.Contains(strings.ToLower(line), "q*") {
			return // quoted and continued parameters, which q never needs
		}
		if len(line) > maxAcceptText || strings.Count(line, ",") >= maxAcceptRanges {
			return
		}
		if want, ok := acceptOracle(line); ok && got != want {
			t.Errorf("Accept %q: %v; the oracle says %v", line, got, want)
		}
	})
}
