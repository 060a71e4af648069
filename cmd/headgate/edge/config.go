package edge

import (
	"cmp"
	_ "embed" // for the defaults
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/cmd/headgate/edge/internal/proxy"
	"github.com/headgate-go/headgate/cmd/headgate/edge/internal/upstream"
	"github.com/headgate-go/headgate/policy"
)

// Config is the file: where the edge stands, and the policy it enforces.
type Config struct {
	Listen      string          `yaml:"listen"`
	Admin       string          `yaml:"admin"`
	Hosts       []string        `yaml:"admin_hosts"`
	Token       string          `yaml:"admin_token_file"`
	Upstream    Upstream        `yaml:"upstream"`
	TLS         TLS             `yaml:"tls"`
	HTTP2       HTTP2           `yaml:"http2"`
	Header      policy.Duration `yaml:"header_timeout"`
	Idle        policy.Duration `yaml:"idle_timeout"`
	Stall       policy.Duration `yaml:"stall_timeout"`
	MaxBody     policy.Bytes    `yaml:"max_body"`
	BodyRate    policy.Bytes    `yaml:"body_rate"`
	Upgrades    []string        `yaml:"upgrades" pattern:"^[!#$%&'*+.^_|~0-9A-Za-z-]+(/[!#$%&'*+.^_|~0-9A-Za-z-]+)?$"`
	Underscores bool            `yaml:"underscores"`
	Drain       Drain           `yaml:"drain"`
	Watch       policy.Duration `yaml:"watch"`

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
	Retry         string          `yaml:"retry" words:"none,unsent,safe"`

	parsed *url.URL
}

func (u Upstream) connections() upstream.Connections {
	return upstream.Connections{
		DialTimeout: time.Duration(u.DialTimeout), HeaderTimeout: time.Duration(u.HeaderTimeout),
		Idle: int(u.IdleConns), H2C: u.H2C,
	}
}

// Signals are the answers of the upstream that slow everybody down.
type Signals struct {
	Overload bool   `yaml:"overload"`
	Throttle string `yaml:"throttle" words:"none,host,route,caller"`
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
	return "# yaml-language-server: $schema=" + SchemaURL + "\n" + edgeDefaults + "\n" + strings.NewReplacer(
		"max_wait: 60s", fmt.Sprintf("max_wait: %-3v", outboundWait),
		"any_case: false", "any_case: true ",
		"max_pause: 1h ", fmt.Sprintf("max_pause: %v", outboundPause),
	).Replace(policy.Example)
}

func (s *settings) stall() time.Duration { return time.Duration(s.Stall) }

// upgrades are none where the upstream is spoken to in HTTP/2, which has none.
func (s *settings) upgrades() []string {
	if s.Upstream.H2C {
		return nil
	}
	return s.Upgrades
}

// underscores pass to servers of gRPC: its metadata may have them, and no gateway
// interface stands before the service.
func (s *settings) underscores() bool { return s.Underscores || s.Upstream.H2C }

// bodyRate is none before servers of gRPC: a stream of messages may be slow.
func (s *settings) bodyRate() int64 {
	if s.Upstream.H2C {
		return 0
	}
	return int64(s.BodyRate)
}

// tellsMethodsApart reports whether a rule is about one method.
func (s *settings) tellsMethodsApart() bool {
	for pattern := range s.Gate.Routes {
		if strings.ContainsAny(pattern, " \t") {
			return true
		}
	}
	return false
}

// credentials are the fields that a preflight is not charged for.
func (s *settings) credentials() []string {
	if s.Gate.Preflights == "as-others" {
		return nil
	}
	return append(s.Gate.CallerHeaders(), "Authorization", "Cookie")
}

func (s *settings) clientIP() caller.ClientIP {
	ip := s.Gate.ClientIP
	return caller.ClientIP{Trusted: ip.Trusted, Hops: int(ip.Hops), Header: string(ip.Header), IPv6Bits: int(ip.IPv6Bits)}
}

// source is where the configuration comes from: a file, and what the command line
// says over it.
type source struct {
	path, upstream, listen, admin string

	noAdmin bool // the command line says that there is none
}

// settings are a configuration as it was read. Errors found later are passed
// through at, which knows the lines.
type settings struct {
	Config
	doc      *policy.Document
	patterns *http.ServeMux // of gate.routes
	derived  proxy.InForce
}

// derive works out once what each request asks for, of settings that are known to be right.
func (s *settings) derive() {
	s.patterns = upstream.Patterns(s.Gate.Routes)
	addresses, _ := caller.NewAddresses(s.clientIP())
	s.derived = proxy.InForce{
		Addresses: addresses, AddressField: http.CanonicalHeaderKey(cmp.Or(string(s.Gate.ClientIP.Header), "X-Forwarded-For")),
		Methods: s.tellsMethodsApart(), Credentials: s.credentials(),
	}
}

// load reads the defaults, the file over them, the command line over both. With a change
// that was made at run time, that is what the file says.
func (s source) load(changed *policy.Document) (*settings, error) {
	base, err := policy.ParseDocument("defaults", []byte(edgeDefaults))
	if err != nil {
		return nil, err
	}
	c := &settings{doc: changed}
	c.Gate.AnyCase = true // the server behind may take /Export for /export, and it is not here to ask
	c.Outbound.MaxWait, c.Outbound.MaxPause = policy.Duration(outboundWait), policy.Duration(outboundPause)
	if err := base.Decode(&c.Config); err != nil {
		return nil, err
	}
	if c.doc == nil {
		if c.doc, err = s.read(); err != nil {
			return nil, err
		}
	}
	if err := c.doc.Decode(&c.Config); err != nil {
		return nil, err
	}
	c.Outbound.MaxWait = cmp.Or(c.Outbound.MaxWait, policy.Duration(outboundWait))
	c.Listen = cmp.Or(s.listen, c.Listen)
	if c.Admin = cmp.Or(s.admin, c.Admin); s.noAdmin {
		c.Admin = ""
	}
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
