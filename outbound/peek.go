package outbound

import (
	"bytes"
	"io"
	"net/http"
)

// mostPeeked bounds the look into a body.
const mostPeeked = 16 << 10

// Look judges an answer by its header and the beginning of its body.
type Look func(resp *http.Response, body []byte) (Verdict, bool)

// Peek returns a Classifier that shows look the beginning of an error's body, at
// most 16 KiB of it, and puts it back, so that the caller reads it whole. It is
// asked about statuses from 400 on only. A body that is slow to come holds the call
// up, until the request's context ends.
func Peek(look Look) Classifier {
	return func(resp *http.Response, err error) (Verdict, bool) {
		return peek(http.StatusBadRequest, look, resp, err)
	}
}

// PeekAll is Peek for APIs that report errors with status 200: it looks into every
// answer with a body, except a switched connection's.
func PeekAll(look Look) Classifier {
	return func(resp *http.Response, err error) (Verdict, bool) {
		return peek(http.StatusOK, look, resp, err)
	}
}

func peek(from int, look Look, resp *http.Response, err error) (Verdict, bool) {
	if err != nil || resp == nil || resp.StatusCode < from || resp.Body == nil || resp.Body == http.NoBody {
		return Verdict{}, false
	}
	beginning, err := io.ReadAll(io.LimitReader(resp.Body, mostPeeked))
	resp.Body = restored(beginning, resp.Body, err)
	return look(resp, beginning)
}

// peekedBody is a body of which the beginning has been read.
type peekedBody struct {
	io.Reader
	io.Closer
}

func restored(beginning []byte, rest io.ReadCloser, err error) io.ReadCloser {
	var after io.Reader = rest
	if err != nil {
		after = failedReader{err}
	}
	return peekedBody{io.MultiReader(bytes.NewReader(beginning), after), rest}
}

// failedReader repeats the error that ended the look.
type failedReader struct{ err error }

func (r failedReader) Read([]byte) (int, error) { return 0, r.err }
