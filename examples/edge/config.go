package main

import (
	"cmp"
	_ "embed" // for the defaults
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headgate-go/headgate/policy"
)

// Config is the file: where the edge stands, and the policy it enforces.
type Config struct {
	Listen   string          `yaml:"listen"`
	Admin    string          `yaml:"admin"`
	Upstream Upstream        `yaml:"upstream"`
	TLS      TLS             `yaml:"tls"`
	HTTP2    HTTP2           `yaml:"http2"`
	Header   policy.Duration `yaml:"header_timeout"`
	Idle     policy.Duration `yaml:"idle_timeout"`
	Stall    policy.Duration `yaml:"stall_timeout"`
	MaxBody  policy.Bytes    `yaml:"max_body"`
	Upgrades []string        `yaml:"upgrades"`
	Drain    Drain           `yaml:"drain"`
	Watch    policy.Duration `yaml:"watch"`

	policy.Policy `yaml:",inline"`
}

// Upstream is the server behind.
type Upstream struct {
	URL           string          `yaml:"url"`
	PreserveHost  bool            `yaml:"preserve_host"`
	DialTimeout   policy.Duration `yaml:"dial_timeout"`
	HeaderTimeout policy.Duration `yaml:"header_timeout"`
	IdleConns     policy.Int      `yaml:"idle_conns"`
	H2C           bool            `yaml:"h2c"`
	Signals       Signals         `yaml:"signals"`
	Retry         string          `yaml:"retry"`

	parsed *url.URL
}

// Signals are the answers of the upstream that slow everybody down.
type Signals struct {
	Overload bool   `yaml:"overload"`
	Throttle string `yaml:"throttle"`
}

// TLS is the certificate to serve with; empty: none.
type TLS struct {
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
}

// HTTP2 says how the edge speaks it to clients.
type HTTP2 struct {
	Cleartext  bool       `yaml:"cleartext"`
	MaxStreams policy.Int `yaml:"max_streams"`
}

// Drain is how the edge leaves.
type Drain struct {
	Notice policy.Duration `yaml:"notice"`
	Grace  policy.Duration `yaml:"grace"`
}

//go:embed defaults.yaml
var edgeDefaults string

const (
	// A call that waits for its turn holds a slot of the gate meanwhile, so here it
	// does not wait for the minute that a job of its own would.
	outboundWait = time.Second
	// What an upstream says of itself is believed for so long; then it is asked again.
	outboundPause = 10 * time.Second
)

// defaults is a file with every option.
func defaults() string {
	return edgeDefaults + "\n" + strings.NewReplacer(
		"max_wait: 60s", fmt.Sprintf("max_wait: %-3v", outboundWait),
		"max_pause: 1h ", fmt.Sprintf("max_pause: %v", outboundPause),
	).Replace(policy.Example)
}

// source is where the configuration comes from: a file, and what the command line
// says over it.
type source struct{ path, upstream, listen, admin string }

// settings are a configuration as it was read. Errors found later are passed
// through at, which knows the lines.
type settings struct {
	Config
	doc *policy.Document
}

// load reads the defaults, the file over them, the command line over both.
func (s source) load() (*settings, error) {
	base, err := policy.ParseDocument("defaults", []byte(edgeDefaults))
	if err != nil {
		return nil, err
	}
	c := &settings{}
	c.Outbound.MaxWait, c.Outbound.MaxPause = policy.Duration(outboundWait), policy.Duration(outboundPause)
	if err := base.Decode(&c.Config); err != nil {
		return nil, err
	}
	if c.doc, err = s.read(); err != nil {
		return nil, err
	}
	if err := c.doc.Decode(&c.Config); err != nil {
		return nil, err
	}
	c.Outbound.MaxWait = cmp.Or(c.Outbound.MaxWait, policy.Duration(outboundWait))
	c.Listen = cmp.Or(s.listen, c.Listen)
	c.Admin = cmp.Or(s.admin, c.Admin)
	c.Upstream.URL = cmp.Or(s.upstream, c.Upstream.URL)
	return c, c.doc.At(c.validate())
}

// read returns the file, or one that says nothing.
func (s source) read() (*policy.Document, error) {
	if s.path == "" {
		return policy.ParseDocument("command line", nil)
	}
	return policy.ReadDocument(s.path)
}

// validate checks what is the edge's own.
func (c *Config) validate() error {
	var errs []error
	complain := func(err error, field ...string) { errs = append(errs, policy.Wrong(err, field...)) }
	parsed, err := parseUpstream(c.Upstream.URL)
	if err != nil {
		complain(err, "upstream", "url")
	}
	c.Upstream.parsed = parsed
	if (c.TLS.Cert == "") != (c.TLS.Key == "") {
		complain(errors.New("cert and key go together"), "tls")
	}
	for _, w := range []struct {
		value string
		known []string
		field []string
	}{
		{c.Upstream.Signals.Throttle, []string{throttleNone, throttleHost, throttleRoute, throttleCaller}, []string{"upstream", "signals", "throttle"}},
		{c.Upstream.Retry, []string{retryNone, retryUnsent, retrySafe}, []string{"upstream", "retry"}},
	} {
		if !slices.Contains(w.known, w.value) {
			complain(fmt.Errorf("unknown %q; there are: %s", w.value, strings.Join(w.known, ", ")), w.field...)
		}
	}
	for i, name := range c.Upgrades {
		if !protocol(name) {
			complain(fmt.Errorf("%q is no name of a protocol", name), "upgrades", strconv.Itoa(i))
		}
	}
	for _, d := range []struct {
		value policy.Duration
		field []string
	}{
		{c.Header, []string{"header_timeout"}},
		{c.Idle, []string{"idle_timeout"}},
		{c.Stall, []string{"stall_timeout"}},
		{c.Upstream.DialTimeout, []string{"upstream", "dial_timeout"}},
		{c.Drain.Grace, []string{"drain", "grace"}},
	} {
		if d.value <= 0 {
			complain(errors.New("must be positive"), d.field...)
		}
	}
	for _, n := range []struct {
		value int64
		field []string
	}{
		{int64(c.Upstream.HeaderTimeout), []string{"upstream", "header_timeout"}},
		{int64(c.Upstream.IdleConns), []string{"upstream", "idle_conns"}},
		{int64(c.HTTP2.MaxStreams), []string{"http2", "max_streams"}},
		{int64(c.MaxBody), []string{"max_body"}},
		{int64(c.Drain.Notice), []string{"drain", "notice"}},
		{int64(c.Watch), []string{"watch"}},
	} {
		if n.value < 0 {
			complain(errors.New("must not be negative"), n.field...)
		}
	}
	return errors.Join(errs...)
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
