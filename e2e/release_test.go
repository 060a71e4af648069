package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const project = "github.com/headgate-go/headgate"

// TestAReleaseCanBeFetched makes a release beside main and plays it to programs that
// know nothing of this tree: each library module is fetched by its version into a
// module of its own and built, and each command is installed.
func TestAReleaseCanBeFetched(t *testing.T) {
	need(t)
	const version = "v0.1.0"
	r := makeRelease(t, version)
	for _, module := range r.modules {
		t.Run(strings.ReplaceAll(module, "/", "_"), func(t *testing.T) {
			user := filepath.Join(t.TempDir(), "user")
			r.write(user, "go.mod", "module example.com/user\n\ngo 1.26.0\n")
			r.goIn(user, "get", module+"@"+version)
			libraries, commands := r.packages(user, module)
			if len(libraries)+len(commands) == 0 {
				t.Fatal("a module without packages")
			}
			r.write(user, "main.go", "package main\n\nimport (\n\t_ \""+strings.Join(libraries, "\"\n\t_ \"")+"\"\n)\n\nfunc main() {}\n")
			if len(libraries) > 0 {
				r.goIn(user, "build", "-mod=mod", "-o", os.DevNull, ".")
			}
			for _, command := range commands {
				r.goIn(user, "install", command+"@"+version)
			}
		})
	}
	// The sums that the release states are those of what is fetched.
	for _, dir := range r.dirs {
		r.goIn(filepath.Join(r.clone, dir), "list", "-mod=readonly", "-deps", "./...")
	}
}

// release is a clone that holds a release, and a file-system proxy that serves it.
type release struct {
	t       *testing.T
	clone   string
	modules []string // paths of those with tags
	dirs    []string // their directories in the clone
	env     []string // of the go command of people who fetch it
}

func makeRelease(t *testing.T, version string) *release {
	t.Helper()
	r := &release{t: t, clone: filepath.Join(t.TempDir(), "clone")}
	r.run("..", nil, "bash", ".ci/release", "-into", r.clone, version)
	for _, tag := range strings.Fields(r.run(r.clone, nil, "git", "tag")) {
		dir := strings.Trim(strings.TrimSuffix(tag, version), "/")
		r.dirs = append(r.dirs, dir)
		r.modules = append(r.modules, strings.TrimSuffix(project+"/"+dir, "/"))
	}
	if !slices.Contains(r.modules, project) || !slices.Contains(r.modules, project+"/ratelimit/redisrate") {
		t.Fatalf("released: %v", r.modules)
	}
	r.env = append(os.Environ(), "GOWORK=off", "GOPRIVATE=", "GOSUMDB="+goEnv(t, "GOSUMDB"), "GONOSUMDB="+project,
		"GOFLAGS=-modcacherw -trimpath", "GOMODCACHE="+t.TempDir(), "GOBIN="+t.TempDir(),
		"GOPROXY=file://"+r.proxy(version)+",file://"+goEnv(t, "GOMODCACHE")+"/cache/download,"+goEnv(t, "GOPROXY"))
	return r
}

// proxy returns a directory in the layout of a module proxy with what the tags hold:
// the download cache of a go command that fetched them from the clone, by git.
func (r *release) proxy(version string) string {
	r.t.Helper()
	cache := r.t.TempDir()
	env := append(os.Environ(), "GOWORK=off", "GOPROXY=direct", "GONOSUMDB="+project, "GOMODCACHE="+cache, "GOFLAGS=-modcacherw",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url.file://"+r.clone+".insteadOf", "GIT_CONFIG_VALUE_0=https://"+project)
	args := []string{"mod", "download"}
	for _, module := range r.modules {
		args = append(args, module+"@"+version)
	}
	r.run(r.t.TempDir(), env, "go", args...)
	return filepath.Join(cache, "cache", "download")
}

// packages returns the packages of a module that others can import, and its commands:
// of the examples, which are for reading, the first only.
func (r *release) packages(user, module string) (libraries, commands []string) {
	r.t.Helper()
	for _, line := range strings.Split(strings.TrimSpace(r.goIn(user, "list", "-mod=mod", "-f", "{{.Name}} {{.ImportPath}}", module+"/...")), "\n") {
		name, path, _ := strings.Cut(line, " ")
		switch {
		case strings.Contains(path+"/", "/internal/"), strings.Contains(path, "/examples/") && !strings.HasSuffix(path, "/quickstart"):
		case name == "main":
			commands = append(commands, path)
		default:
			libraries = append(libraries, path)
		}
	}
	return libraries, commands
}

func (r *release) goIn(dir string, args ...string) string {
	r.t.Helper()
	return r.run(dir, r.env, "go", args...)
}

func (r *release) write(dir, name, text string) {
	r.t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r *release) run(dir string, env []string, name string, args ...string) string {
	r.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, env
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		r.t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, errs.String())
	}
	return string(out)
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
