package main

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// shell understands just as much of sh and curl as README.md uses.
type shell struct {
	t *testing.T
	http.Handler
}

// replay returns text with what its commands print in place of what it says they
// do. An … in what it says stands for the rest of the line.
func (sh *shell) replay(text string) (replayed string, commands int) {
	var out strings.Builder
	lines := slices.Collect(strings.Lines(text))
	console := false
	for i, line := range lines {
		command, isCommand := strings.CutPrefix(line, "$ ")
		switch {
		case strings.HasPrefix(line, "```"):
			console = strings.HasPrefix(line, "```console")
			out.WriteString(line)
		case console && isCommand:
			commands++
			out.WriteString(line + abridged(sh.run(strings.TrimSpace(command)), lines[i+1:]))
		case !console:
			out.WriteString(line)
		}
	}
	return out.String(), commands
}

// abridged is what was printed, with the … of what it is said to be.
func abridged(printed string, said []string) string {
	lines := slices.Collect(strings.Lines(printed))
	for i := range min(len(lines), len(said)) {
		if prefix, _, open := strings.Cut(said[i], "…"); open && strings.HasPrefix(lines[i], prefix) {
			lines[i] = said[i]
		}
	}
	return strings.Join(lines, "")
}

var (
	loop     = regexp.MustCompile(`^for i in \$\(seq (\d+)\); do (curl .*); done$`)
	parallel = regexp.MustCompile(`^\(for i in \$\(seq (\d+)\); do (curl .*) & done; wait\) \| sort$`)
	pause    = regexp.MustCompile(`^sleep (\d+)$`)
)

func (sh *shell) run(command string) string {
	switch {
	case loop.MatchString(command):
		n, body := counted(loop.FindStringSubmatch(command))
		all := ""
		for i := range n {
			all += sh.curl(strings.ReplaceAll(body, "$i", strconv.Itoa(i+1)))
		}
		return strings.TrimRight(all, " ") + "\n"
	case parallel.MatchString(command):
		n, body := counted(parallel.FindStringSubmatch(command))
		all := make([]string, n)
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() { all[i] = sh.curl(strings.ReplaceAll(body, "$i", strconv.Itoa(i+1))) })
		}
		wg.Wait()
		slices.Sort(all)
		return strings.Join(all, "")
	case pause.MatchString(command):
		n, _ := strconv.Atoi(pause.FindStringSubmatch(command)[1])
		time.Sleep(time.Duration(n) * time.Second) // fake
		return ""
	}
	return sh.curl(command)
}

func counted(match []string) (int, string) {
	n, _ := strconv.Atoi(match[1])
	return n, match[2]
}

var word = regexp.MustCompile(`'([^']*)'|"([^"]*)"|(\S+)`)

// curl sends one request and prints what -i, -o and -w ask for.
func (sh *shell) curl(command string) string {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = "127.0.0.1:50000"
	include, discard, format := false, false, ""
	words := word.FindAllStringSubmatch(strings.TrimPrefix(command, "curl "), -1)
	for i := 0; i < len(words); i++ {
		value := func() string {
			i++
			return words[i][1] + words[i][2] + words[i][3]
		}
		switch arg := words[i][1] + words[i][2] + words[i][3]; arg {
		case "-s":
		case "-i":
			include = true
		case "-o":
			discard = value() == "/dev/null"
		case "-w":
			format = value()
		case "-X":
			r.Method = value()
		case "-H":
			name, content, _ := strings.Cut(value(), ": ")
			r.Header.Set(name, content)
		default:
			target, err := r.URL.Parse("http://" + arg)
			if err != nil {
				sh.t.Fatalf("%s: %v", command, err)
			}
			r.URL, r.Host = target, target.Host
		}
	}
	w := httptest.NewRecorder()
	sh.ServeHTTP(w, r)
	return printed(w.Result(), w.Body.String(), include, discard) +
		strings.NewReplacer("%{http_code}", strconv.Itoa(w.Code), `\n`, "\n").Replace(format)
}

// left out: what README.md says it leaves out.
var leftOut = []string{"Cache-Control", "Content-Length", "Content-Type", "Date", "X-Content-Type-Options"}

func printed(res *http.Response, body string, include, discard bool) string {
	var b strings.Builder
	if include {
		fmt.Fprintf(&b, "HTTP/1.1 %d %s\n", res.StatusCode, http.StatusText(res.StatusCode))
		for _, name := range slices.Sorted(maps.Keys(res.Header)) {
			if !slices.Contains(leftOut, name) {
				fmt.Fprintf(&b, "%s: %s\n", name, res.Header.Get(name))
			}
		}
		b.WriteByte('\n')
	}
	if !discard {
		b.WriteString(body)
	}
	return b.String()
}
