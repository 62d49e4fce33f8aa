package race

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func shell(command string) Step {
	return Step{Argv: []string{"sh", "-c", command}, Env: []string{"WORD=word"}}
}

func TestExecute(t *testing.T) {
	u, err := Execute(context.Background(), shell("sleep 0.1"), shell(`test "$WORD" = word && sleep 0.1`))
	if err != nil {
		t.Fatal(err)
	}
	if u.Wall < 0.2 || u.Wall > 20 || u.CPU > u.Wall || u.Peak < 100<<10 || u.Peak > 1<<30 {
		t.Errorf("two sleeps of 0.1 s: got %+v", u)
	}
	_, err = Execute(context.Background(), shell("echo first\necho the reason >&2; exit 3"), shell("touch "+t.TempDir()+"/never"))
	if err == nil || !strings.Contains(err.Error(), "the reason") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("a failure: got %v", err)
	}
}

// A step's output goes to Out, not into error messages.
func TestOut(t *testing.T) {
	var out strings.Builder
	s := shell("echo $WORD; echo trouble >&2; exit 1")
	s.Out = &out
	_, err := Execute(context.Background(), s)
	if err == nil || out.String() != "word\n" || !strings.Contains(err.Error(), "trouble") || strings.Contains(err.Error(), "\nword") {
		t.Errorf("got %q, %v", out.String(), err)
	}
}

// A directory appears when complete and is not made again.
func TestMake(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "data")
	failed := errors.New("full")
	err := Make(dir, func(begun string) error {
		return errors.Join(os.WriteFile(filepath.Join(begun, "half"), nil, 0o600), failed)
	})
	if _, missing := os.Stat(dir); !errors.Is(err, failed) || missing == nil {
		t.Errorf("a failure: got %v, %v", err, missing)
	}
	for _, times := range []int{1, 0} {
		calls := 0
		if err := Make(dir, func(begun string) error { calls++; return os.WriteFile(filepath.Join(begun, "whole"), nil, 0o600) }); err != nil || calls != times {
			t.Errorf("%d calls, %v, want %d", calls, err, times)
		}
	}
	if names, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(names) != 1 || filepath.Base(names[0]) != "whole" {
		t.Errorf("got %q, %v", names, err)
	}
}

func TestTail(t *testing.T) {
	for text, want := range map[string]string{"": "", "a\n": "a", "a\nb\nc\n": "b\nc"} {
		if got := Tail(text, 2); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
