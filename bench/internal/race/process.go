// Package race runs programs beside each other, each as a whole process, and
// keeps what they took.
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

// Step is a process to run; the time of several steps is that of all together.
type Step struct {
	Argv []string
	Env  []string // besides the environment
	// Out, if not nil, gets the standard output, which else is kept for an
	// error message alone.
	Out io.Writer
}

// Usage is what processes took, as wait4(2) tells it.
type Usage struct {
	Wall float64 // seconds from before the start until the exit was seen
	CPU  float64 // seconds of user and system time, all threads
	Peak int64   // bytes resident at most, mapped file pages counted
	Size int64   // bytes of the output, put in by who knows them
}

// Plus is the usage of two processes of which one follows the other.
func (u Usage) Plus(v Usage) Usage {
	return Usage{u.Wall + v.Wall, u.CPU + v.CPU, max(u.Peak, v.Peak), u.Size + v.Size}
}

// timeLimit is what a process may take.
const timeLimit = 20 * time.Minute

// Execute runs the steps one after the other. What they print is kept for the
// error message only, unless a step says where it goes. A child's peak memory
// starts at that of this process, which is to be a few MiB: data are made and
// read elsewhere.
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

// String is the command line, scripts shortened.
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

// Say tells what goes on, on standard error.
func Say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// Build compiles a command of a module into the directory bin below dir: its
// binary carries no trace of where it is run.
func Build(ctx context.Context, dir, module, pkg string) (program string, err error) {
	program = filepath.Join(dir, "bin", filepath.Base(pkg))
	_, err = Execute(ctx, Step{Argv: []string{"go", "build", "-C", module, "-o", program, pkg}})
	return program, err
}
