package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// usage is what processes took, as wait4(2) tells it.
type usage struct {
	wall float64 // seconds from before the start until the exit was seen
	cpu  float64 // seconds of user and system time, all threads
	peak int64   // bytes resident at most, mapped file pages counted
	size int64   // bytes of the output
}

// plus is the usage of two processes of which one follows the other.
func (u usage) plus(v usage) usage {
	return usage{u.wall + v.wall, u.cpu + v.cpu, max(u.peak, v.peak), u.size + v.size}
}

// timeLimit is what a process may take.
const timeLimit = 20 * time.Minute

// execute runs the steps one after the other. What they print is kept for the
// error message only. A child's peak memory starts at that of this process,
// which is a few MiB: data are made and read elsewhere.
func execute(ctx context.Context, steps []step) (sum usage, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	for _, s := range steps {
		var output bytes.Buffer
		cmd := exec.CommandContext(ctx, s.argv[0], s.argv[1:]...)
		cmd.Env = append(os.Environ(), s.env...)
		cmd.Stdout, cmd.Stderr = &output, &output
		begin := time.Now()
		err := cmd.Run()
		wall := time.Since(begin)
		if err != nil {
			return sum, fmt.Errorf("%s: %w\n%s", commandLine(s), err, tail(output.String(), 20))
		}
		state := cmd.ProcessState
		sum = sum.plus(usage{
			wall: wall.Seconds(),
			cpu:  (state.UserTime() + state.SystemTime()).Seconds(),
			peak: state.SysUsage().(*syscall.Rusage).Maxrss << 10, // Linux counts in KiB
		})
	}
	return sum, nil
}

// commandLine names a step, scripts shortened.
func commandLine(s step) string {
	words := make([]string, len(s.argv))
	for i, w := range s.argv {
		if strings.Contains(w, "\n") {
			w = "SCRIPT"
		}
		words[i] = w
	}
	return strings.Join(words, " ")
}

// tail returns the last lines of a text.
func tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(len(all)-lines, 0):], "\n")
}
