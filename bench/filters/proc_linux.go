package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// procField returns the value of a line "name: value" in a file below /proc.
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

// size returns a field that /proc has in kB, in bytes.
func size(path, name string) (uint64, error) {
	text, err := procField(path, name)
	if err != nil {
		return 0, err
	}
	kb, err := strconv.ParseUint(strings.TrimSuffix(text, " kB"), 10, 64)
	return kb << 10, err
}

// resident returns the resident memory of this process, and peak its highest since
// resetPeak. Both include mapped file pages.
func resident() (uint64, error) { return size("/proc/self/status", "VmRSS") }
func peak() (uint64, error)     { return size("/proc/self/status", "VmHWM") }

// resetPeak resets the peak to the current resident memory (proc(5), clear_refs).
func resetPeak() error { return os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }

// hugeBytes returns how much of this process's memory is in huge pages, over all
// mappings.
func hugeBytes() (uint64, error) { return size("/proc/self/smaps_rollup", "AnonHugePages") }

// withoutHugePages replaces this process with this program, run with the given
// arguments and without transparent huge pages. The setting survives execve
// (prctl(2), PR_SET_THP_DISABLE).
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
