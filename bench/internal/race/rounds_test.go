package race

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestRounds(t *testing.T) {
	var got string
	for round, name := range Rounds(3, []string{"a", "b"}) {
		if round == 2 && name == "b" {
			break
		}
		got += fmt.Sprint(round, name, " ")
	}
	if want := "0a 0b 1b 1a 2a "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The directory is removed, also if its function fails.
func TestWithin(t *testing.T) {
	parent := t.TempDir()
	for _, want := range []error{nil, errors.New("failed")} {
		err := Within(parent, func(dir string) error {
			return errors.Join(os.WriteFile(filepath.Join(dir, "file"), nil, 0o600), want)
		})
		if !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
		if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	}
}

func TestVersion(t *testing.T) {
	if got := Version("duckdb==2.0.0"); got != "2.0.0" {
		t.Errorf("got %q", got)
	}
}
