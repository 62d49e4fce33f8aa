//go:build unix

package storage

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func TestLocalMap(t *testing.T) {
	content := string(bytes.Repeat([]byte("0123456789"), 1000))
	name := put(t, filepath.Join(t.TempDir(), "f"), content)
	open := func() (Reader, []byte, func() error) {
		src, err := Local().Open(t.Context(), Object{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		b, unmap, err := src.(Mapper).Map()
		if err != nil {
			t.Fatal(err)
		}
		return src, b, unmap
	}
	// The mapping outlives the reader, and is released once.
	src, b, unmap := open()
	if err := src.Close(); err != nil {
		t.Fatal(err)
	}
	if string(b) != content {
		t.Error("mapped other bytes")
	}
	for range 2 {
		if err := unmap(); err != nil {
			t.Error(err)
		}
	}
	// A file that was replaced under its name is still the file that was opened.
	src, b, unmap = open()
	defer src.Close()
	put(t, name+".new", "other")
	if err := os.Rename(name+".new", name); err != nil {
		t.Fatal(err)
	}
	if string(b) != content {
		t.Error("the new file shows in the map of the old one")
	}
	if err := unmap(); err != nil {
		t.Error(err)
	}
	// It can no longer be mapped, since its name opens another file.
	if _, _, err := src.(Mapper).Map(); !errors.Is(err, syscall.ESTALE) {
		t.Errorf("mapping a file that was replaced: %v", err)
	}
	// Unmapping reports a file that was overwritten or truncated.
	for what, change := range map[string]func() error{
		"written": func() error {
			f, err := os.OpenFile(name, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteString("y")
			return errors.Join(err, f.Close(), os.Chtimes(name, time.Time{}, time.Now().Add(time.Second)))
		},
		"cut": func() error { return os.Truncate(name, 1) },
	} {
		put(t, name, content)
		src, _, unmap := open()
		defer src.Close()
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if err := unmap(); !errors.Is(err, syscall.ESTALE) {
			t.Errorf("%s while mapped: %v", what, err)
		}
	}
	// An empty file has nothing to map.
	put(t, name, "")
	empty, err := Local().Open(t.Context(), Object{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	defer empty.Close()
	if _, _, err := empty.(Mapper).Map(); err == nil {
		t.Error("an empty file was mapped")
	}
}
