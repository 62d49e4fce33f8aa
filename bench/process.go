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

// Command is a process to run.
type Command struct {
	Argv []string
	Env  []string // added to the environment
	Dir  string   // "": the harness's
}

// timeLimit bounds the time of a process.
const timeLimit = 20 * time.Minute

// Execute runs a process and returns what it took and its standard output.
//
// On Linux the peak of a child includes that of its parent before the fork, so the
// harness must stay small: data are generated and answers read in other processes.
func (c Command) Execute(ctx context.Context) (r Run, output []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	var out, complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.Env, cmd.Dir = append(os.Environ(), c.Env...), c.Dir
	cmd.Stdout, cmd.Stderr = &out, &complaint
	begin := time.Now()
	err = cmd.Run()
	wall := time.Since(begin)
	if err != nil {
		return r, nil, fmt.Errorf("%s: %w\n%s", c, err, tail(complaint.String()+out.String(), 20))
	}
	state := cmd.ProcessState
	return Run{
		Wall: wall.Seconds(),
		CPU:  (state.UserTime() + state.SystemTime()).Seconds(),
		Peak: state.SysUsage().(*syscall.Rusage).Maxrss << 10, // Linux counts in KiB
	}, out.Bytes(), nil
}

// String returns the command line.
func (c Command) String() string { return strings.Join(c.Argv, " ") }

// tail returns the last lines of a text.
func tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(len(all)-lines, 0):], "\n")
}

// say prints a message on standard error.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
