package storage

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

// thisProcess identifies this process in temporary names.
var thisProcess = sync.OnceValues(func() (o owner, ok bool) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return o, false
	}
	// Containers of one machine share its boot ID, but each has process IDs of its own.
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return o, false
	}
	h := fnv.New64a()
	h.Write(boot)
	h.Write([]byte(namespace))
	o.host, o.pid = fmt.Sprintf("%016x", h.Sum64()), os.Getpid()
	o.start, ok = startOf(o.pid)
	return o, ok
})

// startOf returns when a process started, in clock ticks since the machine booted.
func startOf(pid int) (uint64, bool) {
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

// gone reports whether the process has certainly ended.
func (o owner) gone() bool {
	this, ok := thisProcess()
	if !ok || o.host != this.host {
		return false
	}
	if errors.Is(syscall.Kill(o.pid, 0), syscall.ESRCH) {
		return true
	}
	start, ok := startOf(o.pid)
	return ok && start != o.start // another process has its ID now
}
