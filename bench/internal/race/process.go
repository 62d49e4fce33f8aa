// Package race measures competing programs, each as a whole process.
package race

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Step is a process to run.
type Step struct {
	Argv []string
	Env  []string // added to the environment
	// Out, if not nil, receives standard output. Otherwise it appears only in
	// error messages.
	Out io.Writer
}

// Usage is the resource usage of processes, from wait4(2).
type Usage struct {
	Wall float64 // seconds from before the start until after the exit
	CPU  float64 // seconds of user and system time, all threads
	Peak int64   // highest resident set in bytes, including mapped file pages
	Size int64   // bytes of the output, set by the caller
}

// Plus returns the usage of two processes that ran in sequence.
func (u Usage) Plus(v Usage) Usage {
	return Usage{u.Wall + v.Wall, u.CPU + v.CPU, max(u.Peak, v.Peak), u.Size + v.Size}
}

// timeLimit bounds the time of a process.
const timeLimit = 20 * time.Minute

// Execute runs steps in sequence and returns their total usage. The peak of a child
// includes that of this process before the fork, so this process must stay small:
// data are generated and read elsewhere.
func Execute(ctx context.Context, steps ...Step) (sum Usage, err error) {
	for _, s := range steps {
		u, err := s.execute(ctx)
		if err != nil {
			return sum, err
		}
		sum = sum.Plus(u)
	}
	return sum, nil
}

func (s Step) execute(ctx context.Context) (Usage, error) {
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, s.Argv[0], s.Argv[1:]...)
	cmd.Env = append(os.Environ(), s.Env...)
	cmd.Stdout, cmd.Stderr = &output, &output
	if s.Out != nil {
		cmd.Stdout = s.Out
	}
	begin := time.Now()
	err := cmd.Run()
	wall := time.Since(begin)
	if err != nil {
		return Usage{}, fmt.Errorf("%s: %w\n%s", s, err, Tail(output.String(), 20))
	}
	state := cmd.ProcessState
	return Usage{
		Wall: wall.Seconds(),
		CPU:  (state.UserTime() + state.SystemTime()).Seconds(),
		Peak: state.SysUsage().(*syscall.Rusage).Maxrss << 10, // Linux counts in KiB
	}, nil
}

// String returns the command line, with scripts shortened.
func (s Step) String() string {
	words := make([]string, len(s.Argv))
	for i, w := range s.Argv {
		if strings.Contains(w, "\n") {
			w = "SCRIPT"
		}
		words[i] = w
	}
	return strings.Join(words, " ")
}

// Tail returns the last lines of a text.
func Tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(len(all)-lines, 0):], "\n")
}

// Say prints a message on standard error.
func Say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// Program is a command to build.
type Program struct {
	Path            *string // receives the binary's
	Module, Package string
}

// Build compiles a command of a module to the directory bin below dir, without
// local paths in the binary.
func Build(ctx context.Context, dir, module, pkg string) (program string, err error) {
	program = filepath.Join(dir, "bin", filepath.Base(pkg))
	_, err = Execute(ctx, Step{Argv: []string{"go", "build", "-C", module, "-o", program, pkg}})
	return program, err
}
