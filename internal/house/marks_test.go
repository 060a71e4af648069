package house

import (
	"strings"
	"testing"
)

// TestNothingIsLeftToDo: what is not done is not on main.
func TestNothingIsLeftToDo(t *testing.T) {
	for _, ending := range []string{".go", ".md", ".lua", ".js", ".css", ".html", ".yml", ".yaml"} {
		for _, path := range files(t, ending) {
			for _, mark := range []string{"TO" + "DO", "FIX" + "ME", "XX" + "X:"} {
				if strings.Contains(read(t, path), mark) {
					t.Errorf("%s says %s", path, mark)
				}
			}
		}
	}
}
