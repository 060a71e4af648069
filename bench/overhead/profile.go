package overhead

import (
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
)

// mutexFraction is one in how many contentions are looked at.
const mutexFraction = 5

// profiled runs f under the CPU, mutex and block profilers, if a directory is
// named.
func profiled(dir string, f func() error) error {
	if dir == "" {
		return f()
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	cpu, err := os.Create(filepath.Join(dir, "cpu.pprof"))
	if err != nil {
		return err
	}
	defer cpu.Close()
	runtime.SetMutexProfileFraction(mutexFraction)
	runtime.SetBlockProfileRate(1)
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return err
	}
	err = f()
	pprof.StopCPUProfile()
	for _, name := range []string{"mutex", "block", "allocs"} {
		if err := writeProfile(name, filepath.Join(dir, name+".pprof")); err != nil {
			return err
		}
	}
	return err
}

func writeProfile(name, path string) error {
	to, err := os.Create(path)
	if err != nil {
		return err
	}
	defer to.Close()
	return pprof.Lookup(name).WriteTo(to, 0)
}
