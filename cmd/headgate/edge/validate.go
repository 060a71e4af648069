package edge

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate-go/headgate/cmd/headgate/edge/internal/upstream"
	"github.com/headgate-go/headgate/policy"
)

// validate checks what is the edge's own.
func (c *Config) validate() error {
	k := check{}
	parsed, err := parseUpstream(c.Upstream.URL)
	k.wrong(err, "upstream", "url")
	c.Upstream.parsed = parsed
	if (c.TLS.Cert == "") != (c.TLS.Key == "") {
		k.wrong(errors.New("cert and key go together"), "tls")
	}
	k.word(c.Upstream.Signals.Throttle, upstream.Throttles, "upstream", "signals", "throttle")
	k.word(c.Upstream.Retry, upstream.Retries, "upstream", "retry")
	for i, name := range c.Upgrades {
		if !protocol(name) {
			k.wrong(fmt.Errorf("%q is no name of a protocol", name), "upgrades", strconv.Itoa(i))
		}
	}
	c.numbers(&k)
	return errors.Join(k...)
}

func (c *Config) numbers(k *check) {
	k.positive(c.Header, "header_timeout")
	k.positive(c.Idle, "idle_timeout")
	k.positive(c.Stall, "stall_timeout")
	k.positive(c.Upstream.DialTimeout, "upstream", "dial_timeout")
	k.positive(c.Drain.Grace, "drain", "grace")
	k.least(int64(c.Upstream.HeaderTimeout), "upstream", "header_timeout")
	k.least(int64(c.Upstream.IdleConns), "upstream", "idle_conns")
	k.least(int64(c.HTTP2.MaxStreams), "http2", "max_streams")
	k.least(int64(c.MaxBody), "max_body")
	k.least(int64(c.BodyRate), "body_rate")
	k.least(int64(c.Drain.Notice), "drain", "notice")
	k.least(int64(c.Watch), "watch")
}

// check collects what is wrong, field by field.
type check []error

// wrong notes an error of a field; nil is none.
func (k *check) wrong(err error, field ...string) {
	if err != nil {
		*k = append(*k, policy.Wrong(err, field...))
	}
}

func (k *check) positive(d policy.Duration, field ...string) {
	if d <= 0 {
		k.wrong(errors.New("must be positive"), field...)
	}
}

// least notes a negative number.
func (k *check) least(n int64, field ...string) {
	if n < 0 {
		k.wrong(errors.New("must not be negative"), field...)
	}
}

func (k *check) word(value string, known []string, field ...string) {
	if !slices.Contains(known, value) {
		k.wrong(fmt.Errorf("unknown %q; there are: %s", value, strings.Join(known, ", ")), field...)
	}
}

// protocol reports whether s is a name, or a name and a version.
func protocol(s string) bool {
	name, version, versioned := strings.Cut(s, "/")
	return token(name) && (!versioned || token(version))
}

// token reports whether s is a token of HTTP, as names are.
func token(s string) bool {
	return s != "" && strings.Trim(s, "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") == ""
}

func parseUpstream(text string) (*url.URL, error) {
	if text == "" {
		return nil, errors.New("where is the server to protect? say -upstream http://127.0.0.1:3000, or upstream: {url: …} in the file")
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("must be like http://127.0.0.1:3000, not %q", text)
	}
	return u, nil
}
