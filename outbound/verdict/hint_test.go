package verdict

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// Case OU-04: tried on the product
func TestHint(t *testing.T) {
	date := func(d time.Duration) string { return noon.Add(d).Format(http.TimeFormat) }
	type fields = [][2]string
	for name, c := range map[string]struct {
		in   fields
		want time.Duration // -1: no hint
	}{
		"none":                    {nil, -1},
		"seconds":                 {fields{{"Retry-After", "7"}}, 7 * time.Second},
		"zero":                    {fields{{"Retry-After", "0"}}, 0},
		"spaces":                  {fields{{"Retry-After", "  7 "}}, 7 * time.Second},
		"decimal":                 {fields{{"Retry-After", "1.5"}}, 1500 * time.Millisecond},
		"decimal, rounded up":     {fields{{"Retry-After", "0.0001"}}, time.Millisecond},
		"decimal 2.0":             {fields{{"Retry-After", "2.0"}}, 2 * time.Second},
		"empty":                   {fields{{"Retry-After", ""}}, -1},
		"negative":                {fields{{"Retry-After", "-1"}}, -1},
		"plus":                    {fields{{"Retry-After", "+1"}}, -1},
		"words":                   {fields{{"Retry-After", "soon"}}, -1},
		"exponent":                {fields{{"Retry-After", "1e3"}}, -1},
		"hexadecimal":             {fields{{"Retry-After", "0x10"}}, -1},
		"NaN":                     {fields{{"Retry-After", "NaN"}}, -1},
		"two points":              {fields{{"Retry-After", "1.5.2"}}, -1},
		"larger than an int64":    {fields{{"Retry-After", "9300000000000000000000"}}, farthest},
		"larger than a uint64":    {fields{{"Retry-After", "18446744073709551616"}}, farthest},
		"ten years and a second":  {fields{{"Retry-After", "315360001"}}, farthest},
		"overflow when scaled":    {fields{{"Retry-After", "999999999"}}, farthest},
		"endless digits":          {fields{{"Retry-After", strings.Repeat("9", 1<<16)}}, farthest},
		"endless zeros":           {fields{{"Retry-After", strings.Repeat("0", 1<<16) + "1"}}, -1},
		"beyond clocks, in ms":    {fields{{"Retry-After-Ms", "18446744073709551616"}}, farthest},
		"beyond clocks, one line": {fields{{"Retry-After", "2, 18446744073709551616"}}, farthest},
		"beyond clocks, two":      {fields{{"Retry-After", "2"}, {"Retry-After", "18446744073709551616"}}, farthest},
		"beyond clocks, draft":    {fields{{"RateLimit", `"a";r=0;t=18446744073709551616`}}, farthest},
		"beyond clocks, after":    {fields{{"X-RateLimit-Reset-After", "1000000000000.5"}}, farthest},
		"beyond clocks, reset":    {fields{{"X-RateLimit-Remaining", "0"}, {"X-RateLimit-Reset", "18446744073709551616"}}, farthest},
		"beyond clocks, Go span":  {fields{{"X-RateLimit-Remaining", "0"}, {"X-RateLimit-Reset", "99999999999h0m"}}, farthest},
		"beyond clocks, ISO 8601": {fields{{"X-RateLimit-Remaining", "0"}, {"X-RateLimit-Reset", "PT99999999999999S"}}, farthest},
		"beyond clocks, date":     {fields{{"Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT"}}, farthest},
		"several lines":           {fields{{"Retry-After", "2"}, {"Retry-After", "5"}, {"Retry-After", "x"}}, 5 * time.Second},
		"lines joined":            {fields{{"Retry-After", "2, 5"}}, 5 * time.Second},
		"epoch seconds":           {fields{{"Retry-After", "1780315230"}}, 30 * time.Second},
		"epoch milliseconds":      {fields{{"Retry-After", "1780315230000"}}, 30 * time.Second},
		"epoch past":              {fields{{"Retry-After", "1743000000"}}, 0},
		"epoch microseconds":      {fields{{"Retry-After", "1780315230000000"}}, farthest},
		"date":                    {fields{{"Retry-After", date(3 * time.Second)}}, 3 * time.Second},
		"date past":               {fields{{"Retry-After", date(-time.Hour)}}, 0},
		"date, RFC 850":           {fields{{"Retry-After", noon.Add(9 * time.Second).Format("Monday, 02-Jan-06 15:04:05 GMT")}}, 9 * time.Second},
		"date, asctime":           {fields{{"Retry-After", noon.Add(9 * time.Second).Format(time.ANSIC)}}, 9 * time.Second},
		"date by their clock":     {fields{{"Retry-After", date(time.Hour + 3*time.Second)}, {"Date", date(time.Hour)}}, 3 * time.Second},
		"their clock is days off": {fields{{"Retry-After", date(3 * time.Second)}, {"Date", date(-48 * time.Hour)}}, 3 * time.Second},
		"their clock is words":    {fields{{"Retry-After", date(3 * time.Second)}, {"Date", "yesterday"}}, 3 * time.Second},

		"milliseconds first":         {fields{{"Retry-After-Ms", "250"}, {"Retry-After", "9"}}, 250 * time.Millisecond},
		"milliseconds of Azure":      {fields{{"X-Ms-Retry-After-Ms", "40"}}, 40 * time.Millisecond},
		"milliseconds of AWS":        {fields{{"X-Amz-Retry-After", "1500"}}, 1500 * time.Millisecond},
		"milliseconds malformed":     {fields{{"Retry-After-Ms", "-5"}, {"Retry-After", "9"}}, 9 * time.Second},
		"Retry-After before draft":   {fields{{"Retry-After", "3"}, {"RateLimit", `"a";r=0;t=60`}}, 3 * time.Second},
		"draft":                      {fields{{"RateLimit", `"a";r=0;t=7`}}, 7 * time.Second},
		"draft, several":             {fields{{"RateLimit", `"a";r=0;t=7, "b";r=5;t=90, "c";r=0;t=8`}}, 8 * time.Second},
		"draft, something remains":   {fields{{"RateLimit", `"a";r=1;t=7`}}, -1},
		"draft, no time":             {fields{{"RateLimit", `"a";r=0`}}, -1},
		"draft, malformed":           {fields{{"RateLimit", `";;;===,,,"`}}, -1},
		"draft, older":               {fields{{"RateLimit", "limit=10, remaining=0, reset=7"}}, 7 * time.Second},
		"draft, three fields":        {fields{{"RateLimit-Limit", "10"}, {"RateLimit-Remaining", "0"}, {"RateLimit-Reset", "7"}}, 7 * time.Second},
		"reset after":                {fields{{"X-RateLimit-Reset-After", "0.35"}}, 350 * time.Millisecond},
		"reset after, once in ms":    {fields{{"X-RateLimit-Reset-After", "1.5"}, {"Retry-After", "1500"}}, 1500 * time.Millisecond},
		"reset after, both good":     {fields{{"X-RateLimit-Reset-After", "1.5"}, {"Retry-After", "2"}}, 2 * time.Second},
		"reset, epoch":               {fields{{"X-RateLimit-Remaining", "0"}, {"X-RateLimit-Reset", "1780315260"}}, time.Minute},
		"reset, delta":               {fields{{"X-RateLimit-Remaining", "0"}, {"X-RateLimit-Reset", "60"}}, time.Minute},
		"reset, something remains":   {fields{{"X-RateLimit-Remaining", "12"}, {"X-RateLimit-Reset", "60"}}, -1},
		"reset, no word of the rest": {fields{{"X-RateLimit-Reset", "60"}}, -1},
		"reset, Go span": {fields{{"X-RateLimit-Remaining-Requests", "0"}, {"X-RateLimit-Reset-Requests", "6m0s"},
			{"X-RateLimit-Remaining-Tokens", "5"}, {"X-RateLimit-Reset-Tokens", "9h"}}, 6 * time.Minute},
		"reset, milliseconds": {fields{{"X-RateLimit-Remaining-Tokens", "0"}, {"X-RateLimit-Reset-Tokens", "20ms"}}, 20 * time.Millisecond},
		"reset, ISO 8601":     {fields{{"X-RateLimit-Remaining", "0"}, {"X-RateLimit-Reset", "PT1M30S"}}, 90 * time.Second},
		"reset, RFC 3339":     {fields{{"X-RateLimit-Remaining", "0"}, {"X-RateLimit-Reset", "2026-06-01T12:00:05Z"}}, 5 * time.Second},
		"reset, negative":     {fields{{"X-RateLimit-Remaining", "0"}, {"X-RateLimit-Reset", "-5s"}}, -1},
	} {
		h := http.Header{}
		for _, f := range c.in {
			h.Add(f[0], f[1])
		}
		got, ok := hint(h, noon)
		if ok != (c.want >= 0) || ok && got != c.want {
			t.Errorf("%s: %v, %v; want %v", name, got, ok, c.want)
		}
	}
}

func FuzzHint(f *testing.F) {
	for _, s := range []string{"1.5", "1743000000", "-1", `"a";r=0;t=7`, "6m0s", "Mon, 01 Jun 2026 12:00:03 GMT", "PT9S", "9e9", "2, 5"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, value, date string) {
		h := http.Header{"X-Ratelimit-Remaining": {"0"}, "Date": {date}}
		for _, field := range []string{"Retry-After", "Retry-After-Ms", "Ratelimit", "X-Ratelimit-Reset-After", "X-Ratelimit-Reset"} {
			h[field] = []string{value, value}
			if d, ok := hint(h, noon); d < 0 || d > farthest || !ok && d != 0 {
				t.Fatalf("%s: %q gives %v, %v", field, value, d, ok)
			}
			delete(h, field)
		}
	})
}
