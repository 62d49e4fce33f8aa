package session

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
)

// Usage is what a run has taken of the machine so far, to find out what it waited for. A figure
// that the system does not have is absent.
type Usage struct {
	CPUSeconds     float64 `json:"cpu_seconds,omitempty"`      // of all processors
	CPUWaitSeconds float64 `json:"cpu_wait_seconds,omitempty"` // in which threads were ready to run and had no processor
	// ReadSeconds is the time of all reads of inputs together, which may be at once. Pages of local
	// Parquet files are mapped: what they take shows in PageFaults.
	ReadSeconds   float64 `json:"read_seconds,omitempty"`
	DiskBytesRead int64   `json:"disk_bytes_read,omitempty"` // not from the system's cache
	PageFaults    int64   `json:"page_faults,omitempty"`     // that waited for a disk
	PeakMemory    int64   `json:"peak_memory_bytes,omitempty"`
}

// measured reports whether the usage will be asked for.
func (c *Session) measured() bool { return c.JSON || c.Verbose || c.reports() }

// usage returns the usage; nil if it is not measured.
func (c *Session) usage() *Usage {
	if !c.measured() {
		return nil
	}
	u := systemUsage()
	u.ReadSeconds = time.Duration(c.reading.Load()).Seconds()
	threads, _ := filepath.Glob("/proc/self/task/*/schedstat") // of Linux; the pattern is right
	for _, name := range threads {
		b, err := os.ReadFile(name)
		fields := strings.Fields(string(b))
		if err != nil || len(fields) < 2 {
			continue // it has ended
		}
		ns, _ := strconv.ParseInt(fields[1], 10, 64)
		u.CPUWaitSeconds += time.Duration(ns).Seconds()
	}
	return &u
}

// sayUsage prints the usage with --verbose. read is how many bytes of inputs were read; 0: unknown.
func (c *Session) sayUsage(read int64) {
	if !c.Verbose {
		return
	}
	u, elapsed := c.usage(), max(time.Since(c.started).Seconds(), 1e-3)
	if u.CPUSeconds > 0 {
		c.Say("  processors: busy for %.2f s, %.1f of %d on average; threads waited %.2f s for one", u.CPUSeconds, min(u.CPUSeconds/elapsed, float64(runtime.GOMAXPROCS(0))), runtime.GOMAXPROCS(0), u.CPUWaitSeconds)
	}
	bytes, disk := "", ""
	if read > 0 {
		bytes = words.Bytes(read) + " of inputs, "
	}
	if u.PageFaults > 0 {
		disk = fmt.Sprintf(", for which %s waited", words.Things(u.PageFaults, "page fault"))
	}
	c.Say("  reading: %s%.2f s of all workers; %s came from disk%s", bytes, u.ReadSeconds, words.Bytes(u.DiskBytesRead), disk)
	if u.PeakMemory > 0 {
		c.Say("  memory: %s at most", words.Bytes(u.PeakMemory))
	}
}
