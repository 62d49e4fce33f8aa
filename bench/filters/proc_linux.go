package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// procField returns the value of "name: value" in a file below /proc.
func procField(path, name string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value), nil
		}
	}
	return "", fmt.Errorf("%s has no line %q", path, name)
}

// size returns a field in kB, in bytes.
func size(path, name string) (uint64, error) {
	text, err := procField(path, name)
	if err != nil {
		return 0, err
	}
	kb, err := strconv.ParseUint(strings.TrimSuffix(text, " kB"), 10, 64)
	return kb << 10, err
}

// resident returns the memory that this process has now, and peak the most it
// had since resetPeak, file pages that it has mapped included.
func resident() (uint64, error) { return size("/proc/self/status", "VmRSS") }
func peak() (uint64, error)     { return size("/proc/self/status", "VmHWM") }

// resetPeak makes the peak start again from what is resident now (proc(5),
// clear_refs).
func resetPeak() error { return os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }

// hugeBytes returns how much of this process's memory lies in huge pages, as
// the kernel counts it over all of its mappings.
func hugeBytes() (uint64, error) { return size("/proc/self/smaps_rollup", "AnonHugePages") }

// withoutHugePages runs this program again with the given arguments in a
// process that gets no transparent huge pages, whatever it asks for: the setting
// survives execve (prctl(2), PR_SET_THP_DISABLE).
func withoutHugePages(args ...string) error {
	if err := unix.Prctl(unix.PR_SET_THP_DISABLE, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no huge pages: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return syscall.Exec(self, append([]string{self}, args...), os.Environ())
}
