package outbound

import (
	"net/http"
	"time"
)

// Classifier judges the end of one attempt. Exactly one of resp and err is set,
// except for SDK calls, where resp is nil and err carries what is known. It returns
// false when it cannot tell, and the next one is asked. It must not block, must not
// consume or close resp.Body (see [Peek] for a look at it), and is called from many
// goroutines.
type Classifier func(resp *http.Response, err error) (Verdict, bool)

// Classify judges the end of one attempt with the built-in table: the answers of
// Headgate gates, AWS, Google Cloud, gRPC, Azure, Stripe, GitHub, Cloudflare,
// Discord and the LLM APIs as far as status and header tell, then the meaning of
// the status in HTTP. Errors are recognised by small interfaces that SDKs
// implement, and never by their text. It reads no body.
//
// A throttle is recognised only where the server said so: a bare 503 is
// [Overloaded], a bare 403 is [Permanent], a refused connection is [Transient].
func Classify(resp *http.Response, err error) Verdict {
	if err != nil {
		return classifyError(err)
	}
	if resp == nil {
		return Verdict{Kind: Transient}
	}
	if resp.StatusCode < 400 {
		return Verdict{}
	}
	return classifyResponse(resp)
}

// First returns a Classifier that asks each of list in turn. Nil entries are
// skipped.
func First(list ...Classifier) Classifier {
	return func(resp *http.Response, err error) (Verdict, bool) {
		for _, c := range list {
			if c == nil {
				continue
			}
			if v, ok := c(resp, err); ok {
				return v, true
			}
		}
		return Verdict{}, false
	}
}

// judge is one Classifier list with the built-in table behind it.
type judge []Classifier

func (j judge) verdict(resp *http.Response, err error) Verdict {
	for _, c := range j {
		if v, ok := c(resp, err); ok {
			return completed(resp, v)
		}
	}
	return Classify(resp, err)
}

// completed adds to a verdict what the header says beside it.
func completed(resp *http.Response, v Verdict) Verdict {
	if resp == nil {
		return v
	}
	if slowDown(v.Kind) && !v.Hinted {
		v.Hint, v.Hinted = Hint(resp.Header, time.Now())
	}
	v.Final = v.Final || relayed(resp.Header) || pushedBack(resp.Header)
	return v
}
