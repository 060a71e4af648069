package policy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"

	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/priority"
)

// identity is one way to tell who is asking; exactly one of its fields is set. Of
// several in a list the first that finds a verified caller wins.
type identity struct {
	APIKey  *apiKey    `yaml:"api_key"`
	Header  headerName `yaml:"header"`
	Address bool       `yaml:"address"`
	Join    []identity `yaml:"join"`
}

// apiKey tells callers by a credential in a header.
type apiKey struct {
	Header headerName `yaml:"header"`
	Keys   []key      `yaml:"keys"`
}

// key is one credential and what is known of its holder.
type key struct {
	Key     string `yaml:"key"`                                // the credential itself, or
	SHA256  string `yaml:"sha256" pattern:"^[0-9a-fA-F]{64}$"` // its hash in hexadecimal, so that the file is no secret
	Name    string `yaml:"name"`
	Plan    string `yaml:"plan"`
	Alias   string `yaml:"alias"`
	AtLeast *level `yaml:"at_least"`
	AtMost  *level `yaml:"at_most"`
}

// identify builds Options.Identify; nil: the client's address.
func identify(at place, list []identity, addresses *caller.Addresses) caller.Identify {
	ids := each(at, list, addresses)
	if len(ids) == 0 {
		return nil
	}
	return caller.FirstOf(ids...)
}

func each(at place, list []identity, addresses *caller.Addresses) (ids []caller.Identify) {
	for i, c := range list {
		if id := c.identify(at.in(strconv.Itoa(i)), addresses); id != nil {
			ids = append(ids, id)
		}
	}
	return ids
}

func (c identity) identify(at place, addresses *caller.Addresses) caller.Identify {
	var ids []caller.Identify
	if c.APIKey != nil {
		ids = append(ids, c.APIKey.identify(at.in("api_key")))
	}
	if c.Header != "" {
		ids = append(ids, caller.Header(string(c.Header)))
	}
	if c.Address && addresses != nil {
		ids = append(ids, addresses.Identify)
	}
	if len(c.Join) > 0 {
		if parts := each(at.in("join"), c.Join, addresses); len(parts) > 0 {
			ids = append(ids, caller.Join(parts...))
		}
	}
	if len(ids) == 1 {
		return ids[0]
	}
	at.wrongf("one of api_key, header, address and join")
	return nil
}

// CallerHeaders returns the names of the header fields that callers are told by, in
// canonical form.
func (g *gate) CallerHeaders() []string { return callerHeaders(g.Callers) }

func callerHeaders(list []identity) (names []string) {
	for _, c := range list {
		if c.APIKey != nil {
			names = append(names, http.CanonicalHeaderKey(string(c.APIKey.Header)))
		}
		if c.Header != "" {
			names = append(names, http.CanonicalHeaderKey(string(c.Header)))
		}
		names = append(names, callerHeaders(c.Join)...)
	}
	return names
}

type digest = [sha256.Size]byte

func (k apiKey) identify(at place) caller.Identify {
	if k.Header == "" {
		at.in("header").wrongf("which header holds the key?")
		return nil
	}
	known := make(map[digest]caller.Caller, len(k.Keys))
	for i, key := range k.Keys {
		here := at.in("keys", strconv.Itoa(i))
		sum, err := key.digest()
		here.wrong(err)
		if _, twice := known[sum]; twice && err == nil {
			here.wrongf("the same key twice")
		}
		known[sum] = key.caller(here, sum)
	}
	return caller.APIKey(string(k.Header), func(_ context.Context, key string) (caller.Caller, bool) {
		c, ok := known[sha256.Sum256([]byte(key))]
		return c, ok
	})
}

func (k key) digest() (sum digest, err error) {
	switch {
	case (k.Key == "") == (k.SHA256 == ""):
		return sum, errors.New("either key or sha256")
	case k.Key != "":
		return sha256.Sum256([]byte(k.Key)), nil
	}
	raw, err := hex.DecodeString(k.SHA256)
	if err != nil || len(raw) != sha256.Size {
		return sum, errors.New("sha256 must be 64 hexadecimal digits")
	}
	return digest(raw), nil
}

// caller names the holder. A key without a name is named by its hash: the
// credential itself stays out of whatever is kept by name.
func (k key) caller(at place, sum digest) caller.Caller {
	c := caller.Caller{Key: k.Name, Plan: k.Plan, Alias: k.Alias}
	if c.Key == "" {
		c.Key = hex.EncodeToString(sum[:])
	}
	switch {
	case k.AtLeast != nil && k.AtMost != nil:
		at.wrongf("at_least or at_most, not both")
	case k.AtLeast != nil:
		c.Level = caller.AtLeast(priority.Level(*k.AtLeast))
	case k.AtMost != nil:
		c.Level = caller.AtMost(priority.Level(*k.AtMost))
	}
	return c
}
