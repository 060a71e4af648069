package e2e

import (
	"os"
	"os/exec"
	"testing"
)

// need skips the test unless end-to-end tests are asked for, and fails it when
// they are and a tool is missing.
func need(t testing.TB, tools ...string) {
	t.Helper()
	if os.Getenv("HEADGATE_E2E") != "1" && os.Getenv("CI") != "true" {
		t.Skip("set HEADGATE_E2E=1 to run what needs real tools")
	}
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("%s is needed: %v", tool, err)
		}
	}
}

// artefacts is where screenshots and logs of a run are kept: the directory that
// HEADGATE_ARTEFACTS names, or one that goes with the test.
func artefacts(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("HEADGATE_ARTEFACTS")
	if dir == "" {
		return t.TempDir()
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}
