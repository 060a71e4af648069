package ratelimit

import (
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// BenchmarkLongestStep reports the longest decision while a million keys come, and
// the longest while they are forgotten, in processor time of the thread: what other
// programs take meanwhile is not a step's fault.
func BenchmarkLongestStep(b *testing.B) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for b.Loop() {
		l, now := PerKey(1000, 1), epoch
		coming := longest(1_000_000, func(i int) { ask1(l, now, strconv.Itoa(i)) })
		going := longest(600, func(int) {
			now = now.Add(100 * time.Millisecond)
			ask1(l, now, "light")
		})
		b.ReportMetric(float64(coming.Microseconds()), "µs/longest-coming")
		b.ReportMetric(float64(going.Microseconds()), "µs/longest-going")
		if n := l.Stats().Keys; n > 10_000 {
			b.Errorf("%d keys left", n)
		}
	}
}

func longest(n int, step func(int)) (most time.Duration) {
	before := threadTime()
	for i := range n {
		step(i)
		after := threadTime()
		most = max(most, after-before)
		before = after
	}
	return most
}

func threadTime() time.Duration {
	const threadCPU = 3 // CLOCK_THREAD_CPUTIME_ID
	var t syscall.Timespec
	if _, _, err := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, threadCPU, uintptr(unsafe.Pointer(&t)), 0); err != 0 {
		panic(err)
	}
	return time.Duration(t.Nano())
}
