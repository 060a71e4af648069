package answer

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate-go/headgate/shed"
)

// untouchable is a body that must not be read.
type untouchable struct{ t *testing.T }

func (b untouchable) Read([]byte) (int, error) {
	b.t.Error("the body was read")
	return 0, io.EOF
}
func (b untouchable) Close() error { return nil }

func refuse(e Refusal, r *http.Request) *http.Response {
	w := httptest.NewRecorder()
	e.Write(w, r)
	return w.Result()
}

func bodyOf(t *testing.T, res *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func refusedReasons() (all []shed.Reason) {
	for i := range shed.ReasonCount {
		if r := shed.Reason(i); r.Refused() {
			all = append(all, r)
		}
	}
	return all
}

func TestEveryReasonHasItsStatus(t *testing.T) {
	special := map[shed.Reason]int{
		shed.Unidentified: 403, shed.RateLimited: 429, shed.NotAdmissible: 429, shed.CallerCap: 429,
	}
	for _, reason := range refusedReasons() {
		want := special[reason]
		if want == 0 {
			want = 503
		}
		e := Refusal{Reason: reason}
		if got := e.Status(); got != want {
			t.Errorf("%v: Status = %d; want %d", reason, got, want)
		}
		res := refuse(e, from("192.0.2.1:1"))
		if res.StatusCode != want || res.Header.Get("Headgate-Reason") != reason.String() {
			t.Errorf("%v: wrote %d, Headgate-Reason %q", reason, res.StatusCode, res.Header.Get("Headgate-Reason"))
		}
		if got := res.Header.Get("Cache-Control"); got != "no-store" {
			t.Errorf("%v: Cache-Control = %q", reason, got)
		}
	}
}

func TestReasonsThatAreNoneAreAnsweredAsOverload(t *testing.T) {
	for _, reason := range []shed.Reason{shed.Admitted, shed.Exempt, 200} {
		if res := refuse(Refusal{Reason: reason}, from("192.0.2.1:1")); res.StatusCode != 503 {
			t.Errorf("%v: %d", reason, res.StatusCode)
		}
	}
}

func TestRetryAfterIsWholeSecondsRoundedUp(t *testing.T) {
	for wait, want := range map[time.Duration]string{
		-time.Second: "1", 0: "1", 1: "1", time.Second: "1", time.Second + 1: "2", 1500 * time.Millisecond: "2",
		8 * time.Hour: "28800", math.MaxInt64: "9223372037",
	} {
		res := refuse(Refusal{Reason: shed.RateLimited, RetryAfter: wait}, from("192.0.2.1:1"))
		if got := res.Header.Values("Retry-After"); len(got) != 1 || got[0] != want {
			t.Errorf("%v: Retry-After = %q; want %q", wait, got, want)
		}
	}
}

func TestRetryAfterIsAbsentWhereWaitingCannotHelp(t *testing.T) {
	for _, reason := range []shed.Reason{shed.NotAdmissible, shed.Unidentified} {
		w := httptest.NewRecorder()
		w.Header().Set("Retry-After", "7") // left by somebody else
		(Refusal{Reason: reason, RetryAfter: time.Minute}).Write(w, from("192.0.2.1:1"))
		if got, ok := w.Header()["Retry-After"]; ok {
			t.Errorf("%v: Retry-After = %q", reason, got)
		}
	}
}

func TestProblemDocumentsAreValidAndAgreeWithTheAnswer(t *testing.T) {
	for _, reason := range refusedReasons() {
		for _, policy := range []string{"", "tenant", "a\"b\\c", "täglich\x00\u2028", "\xff</script>"} {
			res := refuse(Refusal{Reason: reason, Policy: policy}, from("192.0.2.1:1"))
			var doc struct {
				Type, Title, Detail, Reason string
				Status                      int
				Violated                    []string `json:"violated-policies"`
			}
			text := bodyOf(t, res)
			if err := json.Unmarshal([]byte(text), &doc); err != nil {
				t.Fatalf("%v, policy %q: %v in %s", reason, policy, err, text)
			}
			if doc.Status != res.StatusCode || doc.Reason != reason.String() || doc.Type == "" || doc.Title == "" || doc.Detail == "" {
				t.Errorf("%v: %+v", reason, doc)
			}
			if want := strings.ToValidUTF8(policy, "\ufffd"); policy == "" && doc.Violated != nil || policy != "" && (len(doc.Violated) != 1 || doc.Violated[0] != want) {
				t.Errorf("%v, policy %q: violated-policies = %q", reason, policy, doc.Violated)
			}
			if got := res.Header.Get("Content-Type"); got != "application/problem+json" {
				t.Errorf("%v: Content-Type = %q", reason, got)
			}
		}
	}
}

func TestClientsThatDoNotTakeJSONGetOneLine(t *testing.T) {
	res := refuse(Refusal{Reason: shed.QueueFull, Policy: "x"}, from("192.0.2.1:1", "Accept", "text/html"))
	text := bodyOf(t, res)
	if strings.Count(text, "\n") != 1 || !strings.HasSuffix(text, "\n") || strings.Contains(text, "{") {
		t.Errorf("body = %q", text)
	}
	if got := res.Header.Get("Content-Type"); got != "text/plain; charset=utf-8" {
		t.Errorf("Content-Type = %q", got)
	}
}

func TestHeadGetsHeadersOnly(t *testing.T) {
	r := from("192.0.2.1:1")
	r.Method = http.MethodHead
	res := refuse(Refusal{Reason: shed.QueueFull}, r)
	if text := bodyOf(t, res); text != "" || res.Header.Get("Retry-After") != "1" || res.Header.Get("Content-Type") == "" {
		t.Errorf("body %q, headers %v", text, res.Header)
	}
}

// What outer handlers said of another body, or to a cache, does not survive on a refusal,
// however it is spelled; everything else does.
//
// Case GA-09: tried on the product
func TestOuterHeadersStayExceptThoseThatCannotBeTrue(t *testing.T) {
	kept := map[string]string{
		"Access-Control-Allow-Origin": "https://example.com", "Vary": "Origin", "Set-Cookie": "a=b", "X-Request-Id": "7",
		"Content-Security-Policy": "default-src 'none'", "Strict-Transport-Security": "max-age=1", "Link": "</x>; rel=help",
	}
	gone := []string{
		"CDN-Cache-Control", "Surrogate-Control", "Content-Encoding", "Content-Language", "Content-Range", "Content-Location",
		"Content-Disposition", "Content-MD5", "Content-Digest", "Repr-Digest", "Digest", "Trailer", "Accept-Ranges", "ETag", "Last-Modified", "Expires", "Age",
		"Pragma", "Cloudflare-CDN-Cache-Control", "Akamai-Cache-Control", "Edge-Control", "X-Accel-Expires", "X-Accel-Redirect", "X-Sendfile",
	}
	for _, reason := range refusedReasons() {
		w := httptest.NewRecorder()
		for name, value := range kept {
			w.Header().Set(name, value)
		}
		for _, name := range gone {
			w.Header().Set(name, "x")
			w.Header()[strings.ToLower(name)] = []string{"x"}
		}
		for _, name := range []string{"Cache-Control", "Content-Length", "Content-Type", "Headgate-Reason"} {
			w.Header().Set(name, "x")
			w.Header()[strings.ToUpper(name)] = []string{"x"}
		}
		(Refusal{Reason: reason}).Write(w, from("192.0.2.1:1"))
		for name, want := range kept {
			if got := strings.Join(w.Header().Values(name), "|"); got != want {
				t.Errorf("%v: %s = %q; want %q", reason, name, got, want)
			}
		}
		ours := map[string]string{
			"Cache-Control": "no-store", "Content-Length": strconv.Itoa(w.Body.Len()), "Content-Type": problemType, "X-Content-Type-Options": "nosniff",
			"Headgate-Reason": reason.String(), "Connection": "", "Retry-After": "",
		}
		for name, values := range w.Header() {
			if _, known := kept[name]; known {
				continue
			}
			want, known := ours[name]
			if !known || len(values) != 1 || want != "" && values[0] != want {
				t.Errorf("%v: %s = %q; want %q", reason, name, values, want)
			}
		}
	}
}

// HEAD has the headers of GET, Content-Length included, for each kind of body.
//
// Case GA-09: tried on the product
func TestHeadHasTheHeadersOfGet(t *testing.T) {
	for _, accept := range []string{"", "text/html"} {
		for _, policy := range []string{"", "tenant"} {
			for _, reason := range refusedReasons() {
				e := Refusal{Reason: reason, RetryAfter: time.Second, Policy: policy}
				answers := map[string]*httptest.ResponseRecorder{}
				for _, method := range []string{"GET", "HEAD"} {
					r := from("192.0.2.1:1", "Accept", accept)
					r.Method = method
					answers[method] = httptest.NewRecorder()
					e.Write(answers[method], r)
				}
				get, head := answers["GET"], answers["HEAD"]
				if fmt.Sprint(get.Header()) != fmt.Sprint(head.Header()) || head.Body.Len() != 0 {
					t.Errorf("%v: GET %v, HEAD %v with %d bytes", reason, get.Header(), head.Header(), head.Body.Len())
				}
				if n := get.Header().Get("Content-Length"); n != strconv.Itoa(get.Body.Len()) {
					t.Errorf("%v: Content-Length %q of %d bytes", reason, n, get.Body.Len())
				}
			}
		}
	}
}

func TestAnswersShareNoHeaderSlices(t *testing.T) {
	first, second := httptest.NewRecorder(), httptest.NewRecorder()
	e := Refusal{Reason: shed.Draining, RetryAfter: time.Minute}
	e.Write(first, from("192.0.2.1:1"))
	for name, values := range first.Header() { // what a careless outer handler may do
		values[0] = "spoiled"
		first.Header()[name] = append(values, "more")
	}
	e.Write(second, from("192.0.2.1:1"))
	for name, values := range second.Header() {
		if len(values) != 1 || values[0] == "spoiled" {
			t.Errorf("%s = %q", name, values)
		}
	}
	for name, values := range first.Header() {
		if len(values) != 2 || values[0] != "spoiled" || values[1] != "more" {
			t.Errorf("one header's append reached another: %s = %q", name, values)
		}
	}
}

func TestConnectionIsClosedForLongBodiesAndDrain(t *testing.T) {
	for _, tc := range []struct {
		reason shed.Reason
		length int64
		major  int
		close  bool
	}{
		{shed.QueueFull, 0, 1, false},
		{shed.QueueFull, 256<<10 - 1, 1, false},
		{shed.QueueFull, 256 << 10, 1, true},
		{shed.QueueFull, 100 << 20, 1, true},
		{shed.QueueFull, -1, 1, true},
		{shed.QueueFull, 100 << 20, 2, false},
		{shed.QueueFull, -1, 2, false},
		{shed.Draining, 0, 1, true},
		{shed.Draining, 0, 2, false},
	} {
		r := from("192.0.2.1:1")
		r.Body, r.ContentLength, r.ProtoMajor = untouchable{t}, tc.length, tc.major
		res := refuse(Refusal{Reason: tc.reason}, r)
		if got := res.Header.Get("Connection") == "close"; got != tc.close {
			t.Errorf("%+v: Connection = %q", tc, res.Header.Get("Connection"))
		}
	}
}

// nowhere is a response writer that costs nothing itself.
type nowhere struct{ h http.Header }

func (w nowhere) Header() http.Header         { return w.h }
func (w nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (w nowhere) WriteHeader(int)             {}

func TestRefusalAllocatesLittle(t *testing.T) {
	w, r := nowhere{http.Header{}}, from("192.0.2.1:1", "Accept", "application/json")
	e := &Refusal{Reason: shed.RateLimited, RetryAfter: 1234 * time.Second, Policy: "tenant"}
	if n := testing.AllocsPerRun(100, func() { e.Write(w, r) }); n > 3 {
		t.Errorf("%v allocs; want the header values, the number and the document", n)
	}
}

// BenchmarkRefusal compares a refusal with the least an HTTP service would write.
func BenchmarkRefusal(b *testing.B) {
	w, r := nowhere{http.Header{}}, from("192.0.2.1:1", "Accept", "application/json")
	b.Run("http.Error", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			clear(w.h)
			w.h.Set("Retry-After", strconv.Itoa(100+i%100))
			http.Error(w, http.StatusText(http.StatusTooManyRequests), http.StatusTooManyRequests)
		}
	})
	for _, policy := range []string{"", "tenant"} {
		b.Run("problem/policy="+policy, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				clear(w.h)
				e := Refusal{Reason: shed.RateLimited, RetryAfter: time.Duration(100+i%100) * time.Second, Policy: policy}
				e.Write(w, r)
			}
		})
	}
}
