package session

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"testing"
)

// A pager shows the text; one that is missing or fails does not hide it. It runs for a
// terminal only.
func TestPage(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the pagers are those of Unix")
	}
	t.Cleanup(func() { signal.Reset(os.Interrupt) })
	const text = "one\ntwo\n"
	mark := filepath.Join(t.TempDir(), "mark")
	for _, c := range []struct {
		about, pager, want string
		terminal           bool
	}{
		{"a pager", "tr a-z A-Z", "ONE\nTWO\n", true},
		{"it fails", "false", text, true},
		{"it is not there", "/nowhere/pager", text, true},
		{"none is wanted", "", text, true},
		{"it ends before it has read all", "head -n 1", "one\n", true},
		{"no terminal", "touch " + mark, text, false},
	} {
		t.Setenv("PAGER", c.pager)
		screen, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		s := &Session{Stdout: &interruptibleWriter{ctx: ctx, w: screen}, Stderr: os.Stderr}
		if c.terminal {
			s.screen = screen
		}
		if err := s.Page(ctx, text); err != nil {
			t.Errorf("%s: %v", c.about, err)
		}
		if got, err := os.ReadFile(screen.Name()); string(got) != c.want || err != nil {
			t.Errorf("%s: %q, %v, want %q", c.about, got, err, c.want)
		}
		if n := s.Width(); n != plainWidth {
			t.Errorf("%s: width %d where the width is not known", c.about, n)
		}
		_ = screen.Close()
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("a pager ran without a terminal")
	}
}
