package publish

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/teststore"
)

// TestAdded: lines are in the order of the manifest, all or none, and do not outlive the state.
func TestAdded(t *testing.T) {
	s, log := teststore.NewMemory(), map[string]string{}
	for i := range 2*linesAtOnce + 9 {
		log[fmt.Sprintf("%04d", i)] = "x"
	}
	r := newRunner(s, log)
	r.AtOnce = 8
	if _, _, _, err := r.do(t.Context()); err != nil {
		t.Fatal(err)
	}
	name := func(f *File, full string, _ []string) ([]byte, error) {
		if full != "b/out/"+f.Name {
			t.Error(full)
		}
		return []byte(f.Name), nil
	}
	before := s.Names()
	failed := errors.New("failed")
	_, err := r.WriteAdded(t.Context(), "delta", func(f *File, full string, hive []string) ([]byte, error) {
		if strings.HasPrefix(f.Name, "0400") {
			return nil, failed
		}
		return name(f, full, hive)
	})
	if now := s.Names(); !errors.Is(err, failed) || !slices.Equal(now, before) {
		t.Fatalf("%v, %d objects, %d before", err, len(now), len(before))
	}
	at, err := r.WriteAdded(t.Context(), "delta", name)
	if err != nil || at != "b/out.bloomjoin/add-delta.jsonl" {
		t.Fatal(at, err)
	}
	b, _ := s.Get(at)
	lines := strings.SplitAfter(string(b), "\n")
	if lines = lines[:len(lines)-1]; len(lines) != len(log) || !slices.IsSorted(lines) {
		t.Errorf("%d lines of %d: %.99s", len(lines), len(log), b)
	}
	s.Put("b/out.bloomjoin/add-notes.txt", nil) // of somebody else
	if _, _, _, err := r.do(t.Context()); err != nil && !errors.Is(err, ErrDone) {
		t.Fatal(err)
	}
	if _, ok := s.Get(at); !ok {
		t.Error("the same run has removed them")
	}
	r.log["new"] = "y"
	if _, _, _, err := r.do(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Get(at); ok {
		t.Error("they outlive the state")
	}
	if _, ok := s.Get("b/out.bloomjoin/add-notes.txt"); !ok {
		t.Error("a file of somebody else is gone")
	}
}
