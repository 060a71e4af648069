package verdict

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strings"
	"time"
)

// errorBody is what the error bodies of several vendors have in common, read with
// one pass. Fields that vendors fill with different types are any.
type errorBody struct {
	Type             string `json:"__type"`
	Code             any    `json:"code"`
	Message          string `json:"message"`
	DocumentationURL string `json:"documentation_url"`
	RetryAfter       any    `json:"retry_after"`
	Global           bool   `json:"global"`
	Error            errorObject
}

type errorObject struct {
	Code    any    `json:"code"`
	Type    string `json:"type"`
	Errors  []struct{ Reason string }
	Details []struct{ Reason, RetryDelay string }
}

// UnmarshalJSON accepts the string that some vendors have in place of the object.
func (e *errorObject) UnmarshalJSON(text []byte) error {
	if len(text) == 0 || text[0] != '{' {
		return nil
	}
	type plain errorObject
	return json.Unmarshal(text, (*plain)(e))
}

// OfBody judges the beginning of an error's body: Google's reasons and retry delays,
// AWS codes in JSON and XML, GitHub's secondary limit, Stripe's lock timeout, the
// spent quotas of the LLM APIs, Discord's retry_after. It returns false when it does
// not recognise the body; status and header then decide. The header's keys are in
// canonical form; now is for hints in it that are dates.
func OfBody(now time.Time, status int, h map[string][]string, body []byte) (Verdict, bool) {
	if code := xmlCode(body); code != "" {
		return ofCode(code)
	}
	var b errorBody
	if !decode(body, &b) {
		return Verdict{}, false
	}
	for _, code := range [...]any{b.Type, b.Code, b.Error.Code, b.Error.Type} {
		if s, ok := code.(string); ok {
			if v, ok := ofBodyCode(afterHash(s)); ok {
				return v, true
			}
		}
	}
	if v, ok := ofGoogleBody(b.Error); ok {
		return v, true
	}
	return ofMessage(now, status, h, &b)
}

func ofBodyCode(code string) (Verdict, bool) {
	switch code {
	case "insufficient_quota", "billing_hard_limit_reached", "spend_limit_reached":
		return Verdict{Kind: QuotaExhausted, Final: true}, true
	case "lock_timeout":
		return Verdict{Kind: Conflict}, true
	case "rate_limit", "rate_limit_error", "rate_limit_exceeded":
		return Verdict{Kind: Throttled}, true
	case "overloaded_error", "overloaded":
		return Verdict{Kind: Overloaded}, true
	}
	return ofCode(code)
}

func ofGoogleBody(e errorObject) (v Verdict, found bool) {
	for _, one := range e.Errors {
		if w, ok := ofGoogle(one.Reason); ok {
			v, found = w, true
		}
	}
	for _, one := range e.Details {
		if w, ok := ofGoogle(one.Reason); ok {
			v, found = w, true
		}
	}
	for _, one := range e.Details {
		if d, ok := parseDuration(one.RetryDelay); ok && found {
			v.Hint, v.Hinted = d, true
		}
	}
	return v, found
}

// ofMessage reads what has no code: GitHub's secondary limit is only in the text and
// its link, Discord's wait only in a number.
func ofMessage(now time.Time, status int, h map[string][]string, b *errorBody) (Verdict, bool) {
	limited := status == statusForbidden || status == statusTooManyRequests
	if limited && (strings.Contains(b.Message, "secondary rate limit") || strings.Contains(b.DocumentationURL, "secondary-rate-limits")) {
		return ofGitHub(now, h), true
	}
	wait, ok := number(b.RetryAfter)
	if status != statusTooManyRequests || !ok || wait <= 0 {
		return Verdict{}, false
	}
	v := Verdict{Kind: Throttled, Hint: span(wait, time.Second), Hinted: true}
	if b.Global {
		v.ServiceWide = true
	}
	return v, true
}

// Plain returns the beginning of a body without its content coding, as far as the
// header names codings of the standard library: gzip and deflate. What cannot be
// decoded is returned as it is. A few bytes may stand for gigabytes, so each coding is
// read for at most the given number of bytes.
func Plain(h map[string][]string, body []byte, most int) []byte {
	codings := strings.Split(strings.ToLower(strings.Join(h["Content-Encoding"], ",")), ",")
	if len(codings) > mostCodings {
		return body
	}
	for i := len(codings) - 1; i >= 0; i-- {
		r, err := decoder(strings.TrimSpace(codings[i]), body)
		if err != nil {
			return body
		}
		if r != nil { // an error ends what is only the beginning of a stream
			body, _ = io.ReadAll(io.LimitReader(r, int64(most)))
		}
	}
	return body
}

const mostCodings = 2

// decoder returns a reader of what is coded in body; nil where nothing is to be done.
func decoder(coding string, body []byte) (io.Reader, error) {
	switch coding {
	case "gzip", "x-gzip":
		return gzip.NewReader(bytes.NewReader(body))
	case "deflate": // with a header of zlib, as the standard says, or without one
		if r, err := zlib.NewReader(bytes.NewReader(body)); err == nil {
			return r, nil
		}
		return flate.NewReader(bytes.NewReader(body)), nil
	case "", "identity":
		return nil, nil
	}
	return nil, errors.ErrUnsupported
}

// decode reads JSON into b. A field of another type than expected is left out, as one
// that is missing: an error's code is worth reading beside it.
func decode(body []byte, b any) bool {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var wrongType *json.UnmarshalTypeError
	err := d.Decode(b)
	return err == nil || errors.As(err, &wrongType)
}

// number reads a JSON number, or a text that holds one. A number beyond all floats is
// infinite.
func number(v any) (float64, bool) {
	switch v := v.(type) {
	case json.Number:
		f, err := v.Float64()
		return f, err == nil || math.IsInf(f, 1)
	case string:
		return parseDecimal(v)
	}
	return 0, false
}

// xmlCode returns the code of an S3 error: <Error><Code>SlowDown</Code>…
func xmlCode(body []byte) string {
	_, rest, ok := bytes.Cut(body, []byte("<Code>"))
	if !ok || !bytes.HasPrefix(bytes.TrimSpace(body), []byte("<")) {
		return ""
	}
	code, _, ok := bytes.Cut(rest, []byte("</Code>"))
	if !ok || len(code) > maxValue {
		return ""
	}
	return string(code)
}

// graphQLBody is a GraphQL answer's errors and the cost that Shopify adds.
type graphQLBody struct {
	Errors     []struct{ Extensions struct{ Code string } }
	Extensions struct {
		Cost struct {
			RequestedQueryCost float64
			ThrottleStatus     struct{ CurrentlyAvailable, RestoreRate float64 }
		}
	}
}

// OfGraphQL recognises a throttle that comes with status 200 and an error code of
// THROTTLED, and computes from the cost that Shopify reports with it when enough
// points will be there.
func OfGraphQL(body []byte) (Verdict, bool) {
	var b graphQLBody
	if !decode(body, &b) {
		return Verdict{}, false
	}
	for _, e := range b.Errors {
		if e.Extensions.Code != "THROTTLED" {
			continue
		}
		v := Verdict{Kind: Throttled}
		cost := b.Extensions.Cost
		wait := (cost.RequestedQueryCost - cost.ThrottleStatus.CurrentlyAvailable) / cost.ThrottleStatus.RestoreRate
		if wait > 0 && !math.IsInf(wait, 0) {
			v.Hint, v.Hinted = span(wait, time.Second), true
		}
		return v, true
	}
	return Verdict{}, false
}
