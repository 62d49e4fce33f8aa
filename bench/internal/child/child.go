// Package child runs measurements in child processes, whose memory can be measured
// and which can be built or started differently.
//
// A child reads one command per line, as words separated by spaces, and answers
// each with a JSON object on one line. An answer with "error" reports a failure.
package child

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// Serve runs the child: for each command it calls answer with the words and prints
// the result, until the input ends.
func Serve(in io.Reader, out io.Writer, answer func(words []string) (any, error)) error {
	lines, replies := bufio.NewScanner(in), json.NewEncoder(out)
	for lines.Scan() {
		reply, err := answer(strings.Fields(lines.Text()))
		if err != nil {
			reply = map[string]string{"error": err.Error()}
		}
		if err := replies.Encode(reply); err != nil {
			return err
		}
	}
	return lines.Err()
}

// Parse parses the words of a command.
func Parse(words []string, into ...any) error {
	if len(words) != len(into) {
		return fmt.Errorf("command of %d words, want %d", len(words), len(into))
	}
	for i, w := range words {
		if _, err := fmt.Sscan(w, into[i]); err != nil {
			return fmt.Errorf("%q: %w", w, err)
		}
	}
	return nil
}

// Process is a child as its parent sees it.
type Process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// Start starts a program as a child. It shares the parent's standard error.
func Start(program string, args ...string) (*Process, error) {
	cmd := exec.Command(program, args...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &Process{cmd, in, bufio.NewReader(out)}, cmd.Start()
}

// Call sends a command and decodes its answer.
func (p *Process) Call(answer any, words ...any) error {
	line := strings.TrimSpace(fmt.Sprintln(words...))
	if _, err := fmt.Fprintln(p.in, line); err != nil {
		return err
	}
	text, err := p.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("child process, asked %q: %w", line, err)
	}
	var failure struct{ Error string }
	if err := errors.Join(json.Unmarshal(text, &failure), json.Unmarshal(text, answer)); err != nil {
		return err
	}
	if failure.Error != "" {
		return fmt.Errorf("child process, asked %q: %s", line, failure.Error)
	}
	return nil
}

// Close closes the child's input and waits for its exit.
func (p *Process) Close() error {
	return errors.Join(p.in.Close(), p.cmd.Wait())
}
