//go:build !linux && !darwin && !freebsd

package overhead

import "time"

func cpuTime() time.Duration { return wallTime() }
