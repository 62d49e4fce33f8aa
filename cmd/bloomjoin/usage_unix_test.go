//go:build unix

package main

import (
	"os"
	"runtime"
	"syscall"
	"testing"
)

// peakOf returns the peak memory in bytes of a process that has ended.
func peakOf(p *os.ProcessState) int64 { return maxRSS(p.SysUsage().(*syscall.Rusage)) }

// ownPeak returns the peak memory in bytes of this process.
func ownPeak(t *testing.T) int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Error(err)
	}
	return maxRSS(&usage)
}

func maxRSS(u *syscall.Rusage) int64 {
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		return int64(u.Maxrss) // in bytes
	}
	return int64(u.Maxrss) << 10
}
