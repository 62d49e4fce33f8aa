package process

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"strconv"
	"sync"
	"syscall"
)

// This returns the ID of this process. ok is false where the system does not
// identify processes well enough.
func This() (id ID, ok bool) { return this() }

var this = sync.OnceValues(func() (id ID, ok bool) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return id, false
	}
	// Containers of one machine share its boot ID, but each has process IDs of its own.
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return id, false
	}
	h := fnv.New64a()
	h.Write(boot)
	h.Write([]byte(namespace))
	id.Host, id.PID = fmt.Sprintf("%016x", h.Sum64()), os.Getpid()
	id.Start, ok = Start(id.PID)
	return id, ok
})

// Start returns when a process started, in clock ticks since the machine booted.
func Start(pid int) (uint64, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	// The second field, the command's name in parentheses, may hold anything.
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 20 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(fields[19]), 10, 64)
	return n, err == nil
}

// Gone reports whether the process has certainly ended.
func (id ID) Gone() bool {
	self, ok := This()
	if !ok || id.Host != self.Host {
		return false
	}
	if errors.Is(syscall.Kill(id.PID, 0), syscall.ESRCH) {
		return true
	}
	start, ok := Start(id.PID)
	return ok && start != id.Start // another process has its number now
}
