package storage

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/bloomjoin/bloomjoin/fault"
)

func create(t *testing.T, name, content string, private bool) Writer {
	t.Helper()
	s, err := Local().Create(t.Context(), name, CreateOptions{Private: private})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestLocalCommit(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "new/dir/out")
	s := create(t, name, "mine", false)
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the object is visible before it is committed")
	}
	// A crash now would leave one file, whose name begins with a dot.
	if left := tree(t, dir); len(left) != 1 || !strings.HasPrefix(filepath.Base(left[0]), ".") {
		t.Errorf("meanwhile there is %q", left)
	}
	if err := errors.Join(s.Commit(false), s.Abort()); err != nil {
		t.Fatal(err)
	}
	equal(t, "content", get(t, name), "mine")
	equal(t, "files", tree(t, dir), []string{"new/dir/out"})

	s = create(t, name, "rival", false)
	err := s.Commit(false)
	if !errors.Is(err, fs.ErrExist) {
		t.Errorf("over another object: %v, want fs.ErrExist", err)
	}
	if err := s.Abort(); err != nil {
		t.Errorf("abort after a failed commit: %v", err)
	}
	equal(t, "content", get(t, name), "mine")
	equal(t, "files", tree(t, dir), []string{"new/dir/out"})

	s = create(t, name, "newer", false)
	if err := errors.Join(s.Commit(true), s.Abort()); err != nil {
		t.Fatal(err)
	}
	equal(t, "content", get(t, name), "newer")

	s = create(t, name, "dropped", false)
	if err := errors.Join(s.Abort(), s.Abort()); err != nil {
		t.Errorf("abort twice: %v", err)
	}
	equal(t, "content", get(t, name), "newer")
	equal(t, "files", tree(t, dir), []string{"new/dir/out"})
}

func TestLocalCommitOverADirectory(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "out")
	put(t, filepath.Join(name, "file"), "kept")
	for _, replace := range []bool{false, true} {
		s := create(t, name, "mine", false)
		if err := s.Commit(replace); err == nil {
			t.Error("a directory was replaced")
		}
		if err := s.Abort(); err != nil {
			t.Error(err)
		}
	}
	equal(t, "files", tree(t, dir), []string{"out/file"})
	put(t, filepath.Join(dir, "file"), "")
	if _, err := Local().Create(t.Context(), filepath.Join(dir, "file/below"), CreateOptions{}); err == nil {
		t.Error("a file was taken for a directory")
	}
}

func TestLocalPrivate(t *testing.T) {
	dir := t.TempDir()
	for _, private := range []bool{true, false} {
		for _, replace := range []bool{false, true} {
			name := filepath.Join(dir, fmt.Sprint(private, replace))
			if replace {
				put(t, name, "old, for everybody")
			}
			if err := create(t, name, "x", private).Commit(replace); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(name)
			if err != nil {
				t.Fatal(err)
			}
			if mode := info.Mode().Perm(); private && mode != 0o600 || !private && mode&0o600 != 0o600 {
				t.Errorf("private %v, replace %v: mode %o", private, replace, mode)
			}
		}
	}
}

// If many commit the same name at once, one succeeds, and its file is whole.
func TestLocalRivals(t *testing.T) {
	for _, replace := range []bool{false, true} {
		dir := t.TempDir()
		name := filepath.Join(dir, "out")
		const rivals = 16
		var wg sync.WaitGroup
		errs := make([]error, rivals)
		for i := range rivals {
			s := create(t, name, strings.Repeat(string(rune('a'+i)), 10_000), false)
			wg.Go(func() { errs[i] = errors.Join(s.Commit(replace), s.Abort()) })
		}
		wg.Wait()
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
			} else if !errors.Is(err, fs.ErrExist) {
				t.Error(err)
			}
		}
		if want := map[bool]int{false: 1, true: rivals}[replace]; won != want {
			t.Errorf("replace %v: %d of %d won, want %d", replace, won, rivals, want)
		}
		b := []byte(get(t, name))
		if len(b) != 10_000 || bytes.Count(b, b[:1]) != len(b) || !replace && errs[b[0]-'a'] != nil {
			t.Errorf("replace %v: a file of %d bytes that is nobody's", replace, len(b))
		}
		equal(t, "files", tree(t, dir), []string{"out"})
	}
}

func TestLocalOpen(t *testing.T) {
	dir := t.TempDir()
	if _, err := Local().Open(t.Context(), Object{Name: filepath.Join(dir, "nowhere")}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	_, err := Local().Open(t.Context(), Object{Name: dir})
	says(t, "a directory", err, fault.ErrUnsupported, dir, "regular file")
	name := put(t, filepath.Join(dir, "file"), "0123456789")
	src, err := Local().Open(t.Context(), Object{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "size", src.Object().Size, int64(10))
	read := func() (string, error) {
		b := make([]byte, 4)
		n, err := src.ReadAt(b, 3)
		return string(b[:n]), err
	}
	rest := func() {
		if err := src.(Rester).Rest(); err != nil {
			t.Fatal(err)
		}
	}
	// A file at rest is opened again for a read, also for many at once.
	for range 20 {
		rest()
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if got, err := read(); err != nil || got != "3456" {
					t.Errorf("%q, %v", got, err)
				}
			})
		}
		wg.Go(rest)
		wg.Wait()
	}
	// Another file under the same name is an error, not other data.
	rest()
	other := put(t, filepath.Join(dir, "other"), "abcdefghij")
	if err := os.Rename(other, name); err != nil {
		t.Fatal(err)
	}
	_, err = read()
	says(t, "a file that was replaced", err, syscall.ESTALE, name, "changed")
	says(t, "a file that was replaced", err, ErrChanged)
	if err := src.Close(); err != nil {
		t.Error(err)
	}
}
