package edge

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headgate-go/headgate/cmd/headgate/edge/internal/store"
	"github.com/headgate-go/headgate/policy"
)

// The policy in force can be read on the admin port, and its section gate changed:
//
//	GET   /policy              every value in force and where it comes from
//	PATCH /policy              changes the fields that the body names, in the file's syntax
//	PUT   /policy              puts the body's section gate in place of the one in force
//	PATCH /policy?dry_run=true says what would change, and changes nothing
//
// A change needs the token of admin_token_file, is checked as a file is, comes into force
// whole or not at all, and is told in the log. It lasts until the file is read again.

// showPolicy writes the policy in force as YAML.
func (e *edge) showPolicy(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	w.Header().Set("Cache-Control", "no-store")
	io.WriteString(w, e.policyText())
}

// policyText is every value in force and where it comes from, without secrets.
func (e *edge) policyText() string {
	doc, err := e.whole(e.inForce.Load())
	if err != nil { // what is in force has been read before
		return "# " + err.Error() + "\n"
	}
	return doc.Text(func(v policy.Value) string {
		from := v.From
		if name, _, _ := strings.Cut(from, ":"); name == defaultsName || name == commandName {
			from = name
		}
		return shown(v) + "  # " + from
	})
}

const (
	defaultsName = "default"
	commandName  = "command line"
)

// whole is what c was made of, with the defaults below and the command line above.
func (e *edge) whole(c *settings) (*policy.Document, error) {
	base, err := policy.ParseDocument(defaultsName, []byte(defaults()))
	if err != nil {
		return nil, err
	}
	doc, s := base.With(c.doc), e.source
	for _, one := range []struct {
		field, value string
		empty        bool // says something, too
	}{
		{"listen: ", s.listen, false}, {"admin: ", s.admin, s.noAdmin}, {"upstream:\n  url: ", s.upstream, false},
	} {
		if one.value == "" && !one.empty {
			continue
		}
		said, err := policy.ParseDocument(commandName, fmt.Appendf(nil, "%s%q\n", one.field, one.value))
		if err != nil {
			return nil, err
		}
		doc = doc.With(said)
	}
	return doc, nil
}

// shown is a value without what is secret: the text of a key, a password in an address.
func shown(v policy.Value) string {
	switch {
	case v.Field == "redis":
		return store.Redacted(v.Text)
	case v.Field == "upstream.url":
		return redacted(v.Text)
	case strings.HasPrefix(v.Field, "gate.callers.") && strings.HasSuffix(v.Field, ".key"):
		return `"…"`
	}
	return v.Text
}

// redacted is the text of a URL, in YAML, without its password.
func redacted(text string) string {
	u, err := url.Parse(strings.Trim(text, `"'`))
	if err != nil {
		return `"…"`
	}
	if _, has := u.User.Password(); !has {
		return text
	}
	return strconv.Quote(u.Redacted())
}

// changePolicy is PATCH and PUT.
func (e *edge) changePolicy(w http.ResponseWriter, r *http.Request) {
	if status, err := e.mayChange(r); err != nil {
		if status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", `Bearer realm="policy"`)
		}
		e.often.Warn(time.Now(), "policy", "change of the policy refused", "method", r.Method, "from", r.RemoteAddr, "error", err)
		http.Error(w, err.Error(), status)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, policy.MaxSize))
	if err != nil {
		http.Error(w, "the body cannot be read, or is larger than a policy", http.StatusBadRequest)
		return
	}
	lines, err := e.change(r, body)
	if err != nil {
		e.reloads.WithLabelValues("refused").Inc()
		e.log.Warn("change of the policy refused", "method", r.Method, "from", r.RemoteAddr, "error", err)
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	io.WriteString(w, strings.Join(lines, "\n")+"\n")
}

// mayChange reports who may not. The file of the token is read each time, so that it can
// be changed without a restart.
func (e *edge) mayChange(r *http.Request) (int, error) {
	if e.settings.Token == "" {
		return http.StatusForbidden, errors.New("no change without a token: set admin_token_file")
	}
	text, err := os.ReadFile(e.settings.Token)
	token := strings.TrimSpace(string(text))
	if err != nil || token == "" {
		return http.StatusForbidden, errors.New("the file of the token cannot be read, or is empty")
	}
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	is, want := sha256.Sum256([]byte(strings.TrimSpace(given))), sha256.Sum256([]byte(token))
	if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(is[:], want[:]) != 1 {
		return http.StatusUnauthorized, errors.New("the token is not the one of admin_token_file: send Authorization: Bearer …")
	}
	return 0, nil
}

// change puts what body says in force, unless it is a dry run, and returns what changes,
// line by line.
func (e *edge) change(r *http.Request, body []byte) ([]string, error) {
	over, err := policy.ParseDocument(r.Method+" at "+time.Now().UTC().Format("2006-01-02T15.04.05Z"), body)
	if err != nil {
		return nil, err
	}
	if sections := over.Sections(); !slices.Equal(sections, []string{"gate"}) {
		return nil, fmt.Errorf("section gate can be changed at run time, and nothing else; the body has %v", sections)
	}
	e.adopting.Lock()
	defer e.adopting.Unlock()
	old := e.inForce.Load()
	doc := old.doc
	if r.Method == http.MethodPut {
		doc = doc.Without("gate")
	}
	c, err := e.source.load(doc.With(over))
	if err != nil {
		return nil, err
	}
	lines, err := e.differ(old, c)
	if err != nil {
		return nil, err
	}
	if r.URL.Query().Get("dry_run") != "" {
		return append(lines, "a dry run: nothing has changed"), e.tried(c)
	}
	if err := e.enforce(c); err != nil {
		return nil, err
	}
	e.changed = true
	e.reloads.WithLabelValues("adopted").Inc()
	e.log.Info("policy changed", "method", r.Method, "from", r.RemoteAddr, "changes", told(lines))
	return append(lines, e.lasts()), nil
}

// told is what the log says of the lines of a change: of a large one, its beginning.
func told(lines []string) string {
	const most = 4 << 10
	text := strings.Join(lines, "; ")
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s… (%d in all)", strings.ToValidUTF8(text[:most], ""), len(lines))
}

// tried checks c as enforce would. It cannot tell whether a pool that goes will have work
// in it.
func (e *edge) tried(c *settings) error {
	e.store.Begin()
	defer e.store.Refuse()
	opts, err := e.options(c)
	if is := e.gate.Stats().Name; err == nil && cmp.Or(opts.Name, is) != is {
		err = c.doc.At(policy.Wrong(fmt.Errorf("cannot change from %q", is), "gate", "name"))
	}
	return err
}

// lasts says what undoes a change.
func (e *edge) lasts() string {
	if e.source.path == "" {
		return "in force until the next start: there is no file"
	}
	return fmt.Sprintf("in force until %s is read again: when it changes, on SIGHUP, at the next start", e.source.path)
}

// differ returns the values that differ between two configurations.
func (e *edge) differ(old, now *settings) (lines []string, err error) {
	before, err := e.values(old)
	if err != nil {
		return nil, err
	}
	after, err := e.values(now)
	if err != nil {
		return nil, err
	}
	for field, v := range after {
		if was, ok := before[field]; !ok {
			lines = append(lines, fmt.Sprintf("%s: %s (was not set)", field, shown(v)))
		} else if was.Text != v.Text {
			lines = append(lines, fmt.Sprintf("%s: %s (was %s, %s)", field, shown(v), shown(was), was.From))
		}
	}
	for field, was := range before {
		if _, ok := after[field]; !ok {
			lines = append(lines, fmt.Sprintf("%s: gone (was %s, %s)", field, shown(was), was.From))
		}
	}
	slices.Sort(lines)
	return lines, nil
}

func (e *edge) values(c *settings) (map[string]policy.Value, error) {
	doc, err := e.whole(c)
	if err != nil {
		return nil, err
	}
	all := map[string]policy.Value{}
	for _, v := range doc.Values() {
		all[v.Field] = v
	}
	return all, nil
}
