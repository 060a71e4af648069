package store

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Forms are the addresses of Redis that are understood, for messages and help.
const Forms = `redis://user:password@host:6379/0
rediss://host:6379/0?ca=/etc/redis/ca.pem              TLS; cert= and key= for a client's own
redis-cluster://host1:6379,host2:6379                  a Cluster, by any of its nodes
redis-sentinel://host1:26379,host2:26379/0?master=name found through Sentinel
unix://user:password@/run/redis.sock?db=0`

// address is one Redis, Cluster or Sentinel.
type address struct {
	kind   string // one of the kinds
	secure bool
	hosts  []string
	params url.Values // the edge's own
	common *redis.Options
}

// The kinds of a Redis.
const (
	single   = "single"
	cluster  = "cluster"
	sentinel = "sentinel"
)

var schemes = map[string]struct {
	kind   string
	secure bool
}{
	"redis": {single, false}, "rediss": {single, true}, "unix": {single, false},
	"redis-cluster": {cluster, false}, "rediss-cluster": {cluster, true},
	"redis-sentinel": {sentinel, false}, "rediss-sentinel": {sentinel, true},
}

// own are the parameters that are the edge's: the client library knows none of them.
var own = []string{"ca", "cert", "key", "master", "sentinel_username", "sentinel_password"}

// parse reads an address. An error never holds the password.
func parse(text string) (*address, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	form, known := schemes[scheme]
	if !ok || !known {
		return nil, errors.New("must be one of:\n" + Forms)
	}
	a := &address{kind: form.kind, secure: form.secure, params: url.Values{}}
	plain := scheme
	if a.kind != single {
		plain = "redis"
	}
	rest, err := a.split(scheme, rest)
	if err != nil {
		return nil, err
	}
	if a.common, err = redis.ParseURL(plain + "://" + rest); err != nil {
		return nil, errors.New(hidden(err, rest))
	}
	if len(a.hosts) > 1 && a.kind == single {
		a.kind = cluster
	}
	return a, a.check(scheme)
}

// split takes the hosts and the edge's own parameters out of what stands behind the
// scheme, and returns the rest, of one host.
func (a *address) split(scheme, rest string) (string, error) {
	rest, fragment, _ := strings.Cut(rest, "#") // redis-sentinel://…#master is in use as well
	rest, query, _ := strings.Cut(rest, "?")
	params, err := url.ParseQuery(query)
	if err != nil {
		return "", errors.New("what stands behind the question mark cannot be read")
	}
	if fragment != "" {
		params.Set("master", fragment)
	}
	for _, name := range own {
		if params.Has(name) {
			a.params.Set(name, params.Get(name))
			params.Del(name)
		}
	}
	if scheme != "unix" {
		rest = a.first(rest)
	}
	if len(params) > 0 {
		rest += "?" + params.Encode()
	}
	return rest, nil
}

// first notes the hosts of user:password@h1,h2/db and returns it with the first alone.
func (a *address) first(rest string) string {
	authority, path, found := strings.Cut(rest, "/")
	at := strings.LastIndexByte(authority, '@') + 1
	for _, host := range strings.Split(authority[at:], ",") {
		if host = strings.TrimSpace(host); host != "" {
			a.hosts = append(a.hosts, a.withPort(host))
		}
	}
	rest = authority[:at]
	if len(a.hosts) > 0 {
		rest += a.hosts[0]
	}
	if found {
		rest += "/" + path
	}
	return rest
}

func (a *address) withPort(host string) string {
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		return host
	}
	if a.kind == sentinel {
		return host + ":26379"
	}
	return host + ":6379"
}

func (a *address) check(scheme string) error {
	switch {
	case a.kind == sentinel && a.params.Get("master") == "":
		return errors.New("Sentinel is asked for a master by name: add ?master=name")
	case a.kind != sentinel && (a.params.Has("master") || a.params.Has("sentinel_username")):
		return errors.New("master is for Sentinel: say redis-sentinel://")
	case a.kind == cluster && a.common.DB != 0:
		return errors.New("a Cluster has one database, number 0")
	case !a.secure && (a.params.Has("ca") || a.params.Has("cert") || a.params.Has("key")):
		return fmt.Errorf("ca, cert and key are for TLS: say %s://", strings.Replace(scheme, "redis", "rediss", 1))
	case a.params.Has("cert") != a.params.Has("key"):
		return errors.New("cert and key go together")
	}
	return nil
}

// hidden is err without the credentials that it may quote.
func hidden(err error, rest string) string {
	text := err.Error()
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		text = strings.ReplaceAll(text, rest[:at], "…")
	}
	return text
}

// tls is the configuration for rediss, or nil. The name that a certificate must bear is
// that of each host, which the client fills in.
func (a *address) tls() (*tls.Config, error) {
	if !a.secure {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if file := a.params.Get("ca"); file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: no certificate in it", file)
		}
	}
	if file := a.params.Get("cert"); file != "" {
		pair, err := tls.LoadX509KeyPair(file, a.params.Get("key"))
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
