package dashboard_test

import (
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"

	"github.com/headgate-go/headgate/dashboard"
)

func get(h http.Handler, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", target, nil))
	return w
}

func TestAGuardIsAskedAboutEverything(t *testing.T) {
	h := dashboard.Handler(dashboard.Guard(func(r *http.Request) bool { return r.Header.Get("X-Operator") != "" }))
	for _, target := range []string{"/h/", "/h/app.js", "/h/data.json", "/h/history.json", "/h/in-force.txt", "/h/events", "/h", "/h/nothing.txt"} {
		if w := get(h, target); w.Code != http.StatusForbidden {
			t.Errorf("%s: %d", target, w.Code)
		}
	}
	r := httptest.NewRequest("GET", "/h/", nil)
	r.Header.Set("X-Operator", "me")
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, r); w.Code != http.StatusOK {
		t.Errorf("an operator: %d", w.Code)
	}
}

// The page is found below any mount point, with a dot in its name or without one, and
// with its slash or without.
//
// Case OP-01: tried on the product
func TestThePageWorksUnderAnyPath(t *testing.T) {
	h := dashboard.Handler()
	for target, want := range map[string]struct {
		code int
		kind string
	}{
		"/":                             {200, "text/html; charset=utf-8"},
		"/a/b/":                         {200, "text/html; charset=utf-8"},
		"/a/b/style.css":                {200, "text/css; charset=utf-8"},
		"/a/b/app.js":                   {200, "text/javascript; charset=utf-8"},
		"/a/icon.svg":                   {200, "image/svg+xml"},
		"/a/nothing.js":                 {404, "text/plain; charset=utf-8"},
		"/a/..%2f..%2fetc.txt":          {404, "text/plain; charset=utf-8"},
		"/a/nothing.ICO":                {404, "text/plain; charset=utf-8"},
		"/headgate":                     {302, ""},
		"/v1.2":                         {302, ""},
		"/v1.2/":                        {200, "text/html; charset=utf-8"},
		"/api/shop.example":             {302, ""},
		"/.status":                      {302, ""},
		"//evil.example/javascript%3ab": {302, ""},
	} {
		w := get(h, "http://x"+target)
		if w.Code != want.code || w.Header().Get("Content-Type") != want.kind {
			t.Errorf("%s: %d %q, want %+v", target, w.Code, w.Header().Get("Content-Type"), want)
		}
		if at := w.Header().Get("Location"); at != "" && !strings.HasPrefix(at, "./") {
			t.Errorf("%s leads to %q", target, at)
		}
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS"} {
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, httptest.NewRequest(method, "/", nil)); w.Code != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, w.Code)
		}
	}
}

func TestFilesAreKeptAndAskedForAgain(t *testing.T) {
	h := dashboard.Handler()
	etag := get(h, "/app.js").Header().Get("ETag")
	r := httptest.NewRequest("GET", "/app.js", nil)
	r.Header.Set("If-None-Match", etag)
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, r); w.Code != http.StatusNotModified || etag == "" {
		t.Errorf("a file that did not change: %d, ETag %q", w.Code, etag)
	}
}

// Whatever the page loads is a file of its own, and each file is loaded.
func TestThePageLoadsItsOwnFiles(t *testing.T) {
	h := dashboard.Handler()
	loaded := map[string]bool{}
	var load func(name string)
	load = func(name string) {
		if loaded[name] {
			return
		}
		loaded[name] = true
		w := get(h, "/"+name)
		if w.Code != http.StatusOK {
			t.Errorf("%s: %d", name, w.Code)
			return
		}
		for _, quoted := range strings.FieldsFunc(w.Body.String(), func(r rune) bool { return r == '"' }) {
			if strings.Contains(quoted, "http:") && !strings.HasPrefix(quoted, "http://www.w3.org/") || strings.Contains(quoted, "https:") {
				t.Errorf("%s mentions %q", name, quoted)
			}
			if e := path.Ext(quoted); (e == ".js" || e == ".css" || e == ".svg") && !strings.Contains(quoted, "\n") {
				load(path.Base(quoted))
			}
		}
	}
	load("")
	if len(loaded) < 10 {
		t.Errorf("only %v are loaded", loaded)
	}
}

func TestTheNumbersInForceAreReadWhenAskedFor(t *testing.T) {
	if w := get(dashboard.Handler(), "/h/in-force.txt"); w.Code != http.StatusNotFound {
		t.Errorf("without any: %d", w.Code)
	}
	asked := 0
	h := dashboard.Handler(dashboard.InForce(func() string { asked++; return strings.Repeat("é", 200<<10) }))
	if !frame(t, h).InForce || asked != 0 {
		t.Errorf("asked %d times before anybody looked", asked)
	}
	w := get(h, "/h/in-force.txt")
	if n := w.Body.Len(); asked != 1 || n < 256<<10 || n > 256<<10+3 || w.Header().Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("asked %d times, %d bytes, %v", asked, n, w.Header())
	}
}
