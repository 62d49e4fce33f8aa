package session

import (
	"context"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"
)

// plainWidth is the width of standard output if it is not a terminal.
const plainWidth = 80

// Width returns the number of columns of the terminal that standard output is, or 80.
func (c *Session) Width() int {
	if c.screen != nil {
		return widthOf(c.screen, plainWidth)
	}
	return plainWidth
}

// widthOf returns the number of columns of a terminal, or another number.
func widthOf(w io.Writer, other int) int {
	if f, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return other
}

// LineWidth returns the width of prose on standard output: at most 100.
func (c *Session) LineWidth() int { return min(c.Width(), 100) }

// Page prints text on standard output: on a terminal by the program that PAGER names, or
// less. If that cannot be run or fails, the text is printed as it is.
func (c *Session) Page(ctx context.Context, text string) error {
	if c.screen != nil && c.pager(ctx, text) == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	_, err := io.WriteString(c.Stdout, text)
	return err
}

// pager shows text by a pager.
func (c *Session) pager(ctx context.Context, text string) error {
	command := []string{"less"}
	if given, ok := os.LookupEnv("PAGER"); ok {
		command = strings.Fields(given)
	}
	if len(command) == 0 {
		return exec.ErrNotFound
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(text), c.screen, c.Stderr
	if os.Getenv("LESS") == "" {
		cmd.Env = append(os.Environ(), "LESS=FX") // quit if the text fits, and leave it on the screen
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // so that it restores the terminal
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return err
	}
	signal.Ignore(os.Interrupt) // it is the pager's, as in less
	return cmd.Wait()
}
