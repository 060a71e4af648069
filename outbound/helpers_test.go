package outbound_test

import (
	"io"
	"net/http"
	"strings"
)

// tripper is a base made of a function.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// answer makes a response with a short body and the given header fields.
func answer(r *http.Request, status int, fields ...string) *http.Response {
	h := http.Header{}
	for i := 0; i+1 < len(fields); i += 2 {
		h.Add(fields[i], fields[i+1])
	}
	body := "answer"
	return &http.Response{
		StatusCode: status, Header: h, Request: r,
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}
