//go:build unix

package session

import (
	"runtime"
	"syscall"
	"time"
)

// diskBlock is the unit in which systems count what is read from disks, in bytes.
const diskBlock = 512

// systemUsage returns what the system says.
func systemUsage() (u Usage) {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return u
	}
	u.CPUSeconds = time.Duration(r.Utime.Nano() + r.Stime.Nano()).Seconds()
	u.DiskBytesRead, u.PageFaults, u.PeakMemory = int64(r.Inblock)*diskBlock, int64(r.Majflt), int64(r.Maxrss)
	if runtime.GOOS != "darwin" && runtime.GOOS != "ios" { // they count bytes
		u.PeakMemory <<= 10
	}
	return u
}
