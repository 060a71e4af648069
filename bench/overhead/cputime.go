//go:build linux || darwin || freebsd

package overhead

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is what this process has spent on processors, the collector included. On
// one core it is the time that passes, less what other processes take.
func cpuTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		return wallTime()
	}
	return time.Duration(t.Nano())
}
