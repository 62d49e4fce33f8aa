//go:build unix

package table

import "syscall"

// spentCPU returns the processor time of the process in nanoseconds.
func spentCPU() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return float64(u.Utime.Nano() + u.Stime.Nano())
}
