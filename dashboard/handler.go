package dashboard

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/headgate-go/headgate/ratelimit"
)

// board is the page and what it shows. What it is made of is fixed at set-up.
type board struct {
	title      string
	runbook    string
	guard      func(*http.Request) bool // nil: everybody may look
	inForce    func() string            // nil: not shown
	gates      []gated
	transports []namedTransport
	queues     []namedQueue
	stores     []ratelimit.Stored

	latest  latest
	past    past
	streams streams
}

// Handler returns the live page. Mount it wherever it should be, with everything
// below; it works under any path that ends in a slash:
//
//	r.Mount("/headgate", dashboard.Handler(dashboard.Gate(gate)))     // chi
//	mux.Handle("/headgate/", dashboard.Handler(dashboard.Gate(gate))) // net/http
//
// Mount it outside of the gate, so that it answers when nothing else does. It takes
// no slot and no token. Nothing is protected unless [Guard] or a middleware does.
//
// The handler is safe for concurrent use. Figures are read when somebody looks, at most
// four times a second however many do, and every two to ten seconds when nobody does: the
// page begins with the last five minutes, for which some 400 KB are kept. That ends when
// the handler is garbage.
func Handler(parts ...Part) http.Handler {
	b := &board{title: "Headgate", runbook: publicRunbook}
	for _, p := range parts {
		p(b)
	}
	b.latest.began = time.Now()
	remember(b)
	return b
}

// ServeHTTP answers for the page, its files and its data.
func (b *board) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	switch {
	case b.guard != nil && !b.guard(r):
		http.Error(w, "not allowed to look", http.StatusForbidden)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "this page is only to be read", http.StatusMethodNotAllowed)
	default:
		b.route(w, r)
	}
}

// secure lets the page load nothing but its own files and talk to nobody but the
// server it came from, and be framed by nobody.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; "+
		"img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// route goes by the last part of the path alone, so that the page need not know
// where it is mounted.
func (b *board) route(w http.ResponseWriter, r *http.Request) {
	_, name := path.Split(r.URL.Path)
	switch name {
	case "":
		serve(w, r, "index.html")
	case "data.json":
		b.data(w, r)
	case "events":
		b.stream(w, r)
	case "history.json":
		b.history(w, r)
	case "in-force.txt":
		b.numbers(w, r)
	default:
		if serve(w, r, name) {
			return
		}
		if likeAFile(name) {
			http.NotFound(w, r)
			return
		}
		// The mount point without its slash. Links in the page are relative to it.
		w.Header().Set("Location", "./"+url.PathEscape(name)+"/")
		w.WriteHeader(http.StatusFound)
	}
}

const mostNumbers = 256 << 10 // bytes

// numbers answers with the numbers in force.
func (b *board) numbers(w http.ResponseWriter, r *http.Request) {
	if b.inForce == nil {
		http.NotFound(w, r)
		return
	}
	said := b.inForce()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(strings.ToValidUTF8(said[:min(len(said), mostNumbers)], "\uFFFD")))
}

// likeAFile reports whether a name ends like the page's files do. Any other name is
// that of the mount point, which may have a dot in it: /v1.2, /orders.example.
func likeAFile(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".html", ".js", ".css", ".svg", ".json", ".map", ".ico", ".txt":
		return true
	}
	return false
}

//go:embed page
var page embed.FS

// serve answers with one of the page's files, or reports that there is none.
func serve(w http.ResponseWriter, r *http.Request, name string) bool {
	content, err := page.ReadFile("page/" + name)
	if err != nil {
		return false
	}
	sum := sha256.Sum256(content)
	w.Header().Set("ETag", `"`+base64.RawURLEncoding.EncodeToString(sum[:12])+`"`)
	w.Header().Set("Cache-Control", "no-cache") // kept, and asked for again
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(content))
	return true
}
