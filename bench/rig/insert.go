package rig

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// Insert writes a text into a file, in the place of what is between the marks of that
// name, with the command that made it and the machine.
func Insert(path, name, command, text string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	begin, end := "<!-- "+name+": begin -->", "<!-- "+name+": end -->"
	before, rest, begun := strings.Cut(string(page), begin)
	_, after, ended := strings.Cut(rest, end)
	if !begun || !ended {
		return fmt.Errorf("%s has no %s with %s after it", path, begin, end)
	}
	head := fmt.Sprintf("```sh\n%s\n```\n\n%d cores, %s, %s, load of the machine at the end %s.\n\n",
		strings.TrimSpace(command), runtime.NumCPU(), runtime.Version(), time.Now().UTC().Format(time.DateOnly), load())
	return os.WriteFile(path, []byte(before+begin+"\n"+head+text+end+after), 0o644)
}

// load returns how many wanted a core in the last minute.
func load() string {
	avg, _ := os.ReadFile("/proc/loadavg")
	first, _, found := strings.Cut(string(avg), " ")
	if !found {
		return "unknown"
	}
	return first
}

// Words returns arguments as they are typed.
func Words(args []string) string {
	var words []string
	for _, a := range args {
		if a == "" || strings.ContainsAny(a, " \t;&|*?$\"'()<>") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		words = append(words, a)
	}
	return strings.Join(words, " ")
}
