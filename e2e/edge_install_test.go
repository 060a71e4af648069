package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The image's steps, where there is no Docker: a static build, alone in a clean root, run
// as nobody.
func TestTheImageServesFromACleanRootAsNobody(t *testing.T) {
	need(t, "go")
	if os.Getuid() != 0 {
		t.Skip("a clean root needs to be root")
	}
	dir := t.TempDir()
	for path := dir; path != "/" && path != os.TempDir(); path = filepath.Dir(path) {
		os.Chmod(path, 0o755)
	}
	dockerfile, err := os.ReadFile("../cmd/headgate/install/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	const step = `GOWORK=off CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o /out/headgate .`
	if !strings.Contains(string(dockerfile), step) || !strings.Contains(string(dockerfile), "FROM scratch") || !strings.Contains(string(dockerfile), "USER 65534") {
		t.Fatalf("the Dockerfile has other steps than this test: %s", dockerfile)
	}
	cmd := exec.Command("sh", "-c", strings.Replace(step, "/out/headgate", filepath.Join(dir, "headgate"), 1))
	cmd.Dir = "../cmd/headgate"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	b := newBackend(t)
	addr := freeAddr(t)
	cmd = exec.Command("/headgate", "edge", "-upstream", b.URL, "-listen", addr, "-admin", "")
	cmd.Path, cmd.Dir = "/headgate", "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: dir, Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	within(t, 20*time.Second, "an answer", func() bool {
		resp, err := http.Get("http://" + addr + "/hello")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == 200
	})
}

// Where there is a Docker that runs, it builds the image, and the image runs.
func TestDockerBuildsTheImage(t *testing.T) {
	need(t)
	if out, err := exec.Command("docker", "info").CombinedOutput(); err != nil {
		t.Skipf("no Docker that runs: %v %.100s", err, out)
	}
	const name = "headgate-e2e"
	if out, err := exec.Command("docker", "build", "-q", "-f", "../cmd/headgate/install/Dockerfile", "-t", name, "..").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	defer exec.Command("docker", "rmi", "-f", name).Run()
	out, err := exec.Command("docker", "run", "--rm", "--read-only", name, "check", "-upstream", "http://h").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "listen") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestTheUnitIsHardened(t *testing.T) {
	need(t, "systemd-analyze")
	out, err := exec.Command("systemd-analyze", "security", "--offline=true", "../cmd/headgate/install/headgate.service").CombinedOutput()
	if err != nil && strings.Contains(string(out), "unrecognized option") {
		t.Skip("this systemd cannot tell without running")
	}
	if !strings.Contains(string(out), " OK ") {
		t.Errorf("%v\n%s", err, out)
	}
}

// Case ED-11: tried on the product
func TestTheEdgeOutlivesItsLogsReader(t *testing.T) {
	need(t)
	for _, gone := range []bool{true, false} { // closed; open, and read by nothing
		b := newBackend(t)
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		addr := freeAddr(t)
		cmd := exec.Command(build(t, "../examples/edge"), "-upstream", b.URL, "-listen", addr, "-admin", "")
		cmd.Stderr = w
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		w.Close()
		if gone {
			r.Close()
		}
		defer r.Close()
		within(t, 20*time.Second, "an answer", func() bool {
			resp, err := http.Get("http://" + addr + "/hello")
			if err != nil {
				return false
			}
			resp.Body.Close()
			return resp.StatusCode == 200
		})
		// More lines than a pipe holds: each reload of a program without a file is one.
		for range 2000 {
			cmd.Process.Signal(syscall.SIGHUP)
			time.Sleep(time.Millisecond)
		}
		if resp, err := http.Get("http://" + addr + "/hello"); err != nil || resp.StatusCode != 200 {
			t.Errorf("reader gone %v: %v, %v", gone, resp, err)
		}
		cmd.Process.Signal(syscall.SIGTERM)
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("reader gone %v: %v", gone, err)
			}
		case <-time.After(20 * time.Second):
			cmd.Process.Kill()
			t.Errorf("reader gone %v: still running", gone)
		}
	}
}
