package session

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"testing"
)

// One pipe is read; with a second one, or standard input, rows would be lost.
func TestPipes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("its pipes have no such names")
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = r.Close(), w.Close() }()
	pipe := fmt.Sprintf("/dev/fd/%d", r.Fd())
	for _, c := range []struct {
		names []string
		taken string
		want  []string // nil: wrong usage
	}{
		{[]string{pipe, "a"}, "", []string{"-", "a"}},
		{[]string{"-", "a"}, "", []string{"-", "a"}},
		{[]string{"-"}, "-", []string{"-"}},
		{[]string{"-", pipe}, "", nil},
		{[]string{pipe, "-"}, "", nil},
		{[]string{pipe, pipe}, "", nil},
		{[]string{pipe}, "-", nil},
		{[]string{"-"}, pipe, nil},
	} {
		var s Session
		got := slices.Clone(c.names)
		_, err := s.pipesIn(t.Context(), got, c.taken)
		if c.want == nil && err == nil || c.want != nil && (err != nil || !slices.Equal(got, c.want)) {
			t.Errorf("%q after %q: %q, %v, want %q", c.names, c.taken, got, err, c.want)
		}
	}
}
