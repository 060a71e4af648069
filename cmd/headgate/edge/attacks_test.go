package edge

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// An upstream that notes what it is asked, as it comes over the wire.
func noting(t *testing.T) (url string, asked func() []string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	heads := make(chan string, 1000)
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			go note(c, heads)
		}
	}()
	return "http://" + l.Addr().String(), func() (all []string) {
		for {
			select {
			case head := <-heads:
				all = append(all, head)
			default:
				return all
			}
		}
	}
}

func note(c net.Conn, heads chan<- string) {
	defer c.Close()
	in := bufio.NewReader(c)
	for {
		head, length := "", 0
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			if line == "\r\n" {
				break
			}
			fmt.Sscanf(line, "Content-Length: %d", &length)
			head += line
		}
		io.CopyN(io.Discard, in, int64(length))
		heads <- head
		fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	}
}

// once is a policy under which a second export is refused, however it is asked for.
const once = `
gate:
  routes:
    /export: {rate: {rate: 1/h, burst: 1}}
`

func TestNoTargetGetsPastARule(t *testing.T) {
	url, asked := noting(t)
	for _, target := range []string{
		"/EXPORT", "/Export/", "/%45xport", "//h/export", "/\\h/export", "/x\\..\\export", "/x%5C..%5cexport", "/%2565xport",
		"/export%3Fa", "/export%23", "/;a/export;b?c", "http://other/export", "HTTP://OTHER//EXPORT", "/export?a#b",
	} {
		e := startedAt(t, url, once)
		if resp, _ := raw(t, e, "GET /export HTTP/1.1", "Host: h"); resp.StatusCode != 200 {
			t.Fatal(resp.StatusCode)
		}
		asked()
		if resp, _ := raw(t, e, "GET "+target+" HTTP/1.1", "Host: h"); resp.StatusCode != 429 {
			t.Errorf("%s: %d, and the upstream was asked %q", target, resp.StatusCode, asked())
		}
	}
}

// What has no path meets no rule, and a path that ends in the middle for some servers
// meets another: both stay here.
func TestATargetWithoutAPathIsABadRequest(t *testing.T) {
	url, asked := noting(t)
	e := startedAt(t, url, once)
	for _, target := range []string{
		"x:http://h/export", "http:export", "x:export", "x:%2fexport", "mailto:a@b", "*", "/export%00", "/export%0a", "/%0D%0Aexport", "/export%7f", "/%09export",
	} {
		if resp, _ := raw(t, e, "GET "+target+" HTTP/1.1", "Host: h"); resp.StatusCode != 400 {
			t.Errorf("%s: %d", target, resp.StatusCode)
		}
	}
	if got := asked(); got != nil {
		t.Errorf("the upstream was asked %q", got)
	}
	if resp, _ := raw(t, e, "OPTIONS * HTTP/1.1", "Host: h"); resp.StatusCode != 200 {
		t.Errorf("OPTIONS *: %d", resp.StatusCode)
	}
}

func TestServersThatTellCaseApartCanSaySo(t *testing.T) {
	url, _ := noting(t)
	e := startedAt(t, url, "gate:\n  any_case: false\n  routes:\n    /export: {rate: {rate: 1/h, burst: 1}}\n    /Export: {rate: {rate: 1/h, burst: 1}}\n")
	if one, two, three := get(e, "/export").Code, get(e, "/Export").Code, get(e, "/export").Code; one != 200 || two != 200 || three != 429 {
		t.Errorf("%d %d %d", one, two, three)
	}
}

// Servers behind CGI, WSGI and the like know no difference between "-" and "_" in the name
// of a field: a client could name another caller, address or host than the gate has seen.
func TestFieldsThatReadLikeOthersAreRemoved(t *testing.T) {
	url, asked := noting(t)
	lines := []string{
		"GET / HTTP/1.1", "Host: h", "X_Forwarded_For: 6.6.6.6", "X_API_Key: mine", "X_Forwarded-Host: evil", "Content_Length: 5", "Transfer_Encoding: chunked",
		"X-Forwarded-Server: evil", "X-Forwarded: for=6.6.6.6", "Forwarded-For: 6.6.6.6", "X-HTTP-Host-Override: evil", "X-Kept: kept",
		"Connection: X-Forwarded-For, X-Forwarded-Host, Forwarded, Host", "Trailer: X-Forwarded-For",
	}
	raw(t, startedAt(t, url, ""), lines...)
	head := strings.Join(asked(), "")
	for _, gone := range []string{"_", "6.6.6.6", "evil", "mine", "Trailer"} {
		if strings.Contains(head, gone) {
			t.Errorf("%q came through:\n%s", gone, head)
		}
	}
	for _, there := range []string{"X-Kept: kept\r\n", "X-Forwarded-For: 127.0.0.1\r\n", "X-Forwarded-Host: h\r\n", "Host: h\r\n"} {
		if !strings.Contains(head, there) {
			t.Errorf("%q is missing:\n%s", there, head)
		}
	}
	raw(t, startedAt(t, url, "underscores: true"), lines...)
	if head := strings.Join(asked(), ""); !strings.Contains(head, "mine") {
		t.Errorf("nothing with an underscore came through: %s", head)
	}
}

// Where a rule is about a method, a field cannot make another of it.
func TestAFieldNamesNoOtherMethodThanTheRulesHaveSeen(t *testing.T) {
	url, asked := noting(t)
	lines := []string{"POST /users/1 HTTP/1.1", "Host: h", "Content-Length: 0", "X-HTTP-Method-Override: DELETE", "X-Method-Override: DELETE", "X-HTTP-Method: DELETE"}
	e := startedAt(t, url, "gate: {routes: {/users/: {cost: 2}}}")
	raw(t, e, lines...)
	if head := strings.Join(asked(), ""); strings.Count(head, "DELETE") != 3 {
		t.Errorf("no rule is about methods, and the upstream was told %s", head)
	}
	write(t, e.source.path, "gate: {routes: {DELETE /users/: {cost: 2}}}")
	e.reload("test")
	raw(t, e, lines...)
	if head := strings.Join(asked(), ""); strings.Contains(head, "DELETE") {
		t.Errorf("the upstream was told %s", head)
	}
}

// Requests that share a connection, or a packet, are each decided.
func TestPipelinedRequestsAreEachDecided(t *testing.T) {
	url, asked := noting(t)
	server := httptest.NewServer(startedAt(t, url, once).handler)
	t.Cleanup(server.Close)
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const one = "POST /export HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc"
	fmt.Fprint(conn, strings.Repeat(one, 5)+"GET /x HTTP/1.1\r\nHost: h\r\n\r\n"+one)
	in, codes := bufio.NewReader(conn), ""
	for range 7 {
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			break
		}
		io.Copy(io.Discard, resp.Body)
		codes += fmt.Sprint(resp.StatusCode, " ")
	}
	if got := asked(); strings.Count(strings.Join(got, ""), "/export") != 1 || codes != "200 429 429 429 429 200 429 " {
		t.Errorf("%s: the upstream was asked %q", codes, got)
	}
}

// A preflight costs no caller anything: neither what names one nor a body comes through
// with it.
func TestAPreflightCarriesNoCredentials(t *testing.T) {
	url, asked := noting(t)
	const file = "gate:\n  callers: [{api_key: {header: X-Key, keys: [{key: k}]}}, {join: [{header: X-Org}, {address: true}]}]\n  limits: {rate: {rate: 1/h, burst: 1}}\n"
	lines := []string{
		"OPTIONS /export HTTP/1.1", "Host: h", "Origin: http://a", "Access-Control-Request-Method: GET",
		"X-Key: k", "X-Org: o", "Authorization: Basic eA==", "Cookie: a=b", "X-Kept: kept",
	}
	e := startedAt(t, url, file)
	for range 2 {
		if resp, _ := raw(t, e, lines...); resp.StatusCode != 200 {
			t.Errorf("a preflight: %d", resp.StatusCode)
		}
	}
	head := strings.Join(asked(), "")
	for _, gone := range []string{"X-Key", "X-Org", "Authorization", "Cookie"} {
		if strings.Contains(head, gone) {
			t.Errorf("%s came through: %s", gone, head)
		}
	}
	if !strings.Contains(head, "X-Kept: kept") {
		t.Errorf("the upstream was asked %s", head)
	}
	raw(t, e, append(lines[:len(lines):len(lines)], "Transfer-Encoding: chunked", "", "1\r\nx\r\n0\r\n")...)
	if head := strings.Join(asked(), ""); strings.Contains(head, "chunked") || !strings.HasPrefix(head, "OPTIONS") {
		t.Errorf("with a body, the upstream was asked %s", head)
	}
	charged := startedAt(t, url, file+"  preflights: as-others\n")
	asked()
	raw(t, charged, lines...)
	if head := strings.Join(asked(), ""); !strings.Contains(head, "X-Key: k") {
		t.Errorf("counted as others, and the upstream was asked %s", head)
	}
}

// Whose word is taken changes with the policy, for the limits and for what the upstream is
// told alike.
func TestAProxyThatIsTrustedNoMoreIsNotBelieved(t *testing.T) {
	url, asked := noting(t)
	const trusting = "gate: {client_ip: {trusted: [127.0.0.1]}}"
	e := startedAt(t, url, trusting)
	lines := []string{"GET / HTTP/1.1", "Host: h", "X-Forwarded-For: 6.6.6.6", "X-Forwarded-Host: shop.example"}
	for _, c := range []struct {
		file, want string
	}{
		{trusting, "X-Forwarded-For: 6.6.6.6, 127.0.0.1\r\nX-Forwarded-Host: shop.example\r\n"},
		{"gate: {client_ip: {trusted: [10.0.0.0/8]}}", "X-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Host: h\r\n"},
		{trusting, "X-Forwarded-For: 6.6.6.6, 127.0.0.1\r\nX-Forwarded-Host: shop.example\r\n"},
	} {
		write(t, e.source.path, c.file)
		e.reload("test")
		raw(t, e, lines...)
		if head := strings.Join(asked(), ""); !strings.Contains(head, c.want) {
			t.Errorf("%s: the upstream was told %s", c.file, head)
		}
	}
}
