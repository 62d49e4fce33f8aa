package source_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
	"github.com/bloomjoin/bloomjoin/storage"
)

// TestDigestsAtOpen checks that fingerprints made while files are opened are those made later,
// whatever the size, and that the files are the same otherwise.
func TestDigestsAtOpen(t *testing.T) {
	dir := t.TempDir()
	var names []string
	for i, n := range []int{0, 1, 5000, 8100, 8200, 40_000} {
		name := filepath.Join(dir, fmt.Sprint(i, ".parquet"))
		values := sourcetest.Numbers(n, func(i int) int64 { return int64(i) * 0x61c8864680b583eb })
		names = append(names, sourcetest.Write(t, name, 3000, sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "id", Values: values})))
	}
	later := roomtest.Open(t, source.Opening{}, names...)
	atOpen := roomtest.Open(t, source.Opening{Digests: true}, names...)
	for i, f := range atOpen {
		read := f.BytesRead()
		got, err := f.Fingerprint()
		want, err2 := later[i].Fingerprint()
		if err != nil || err2 != nil || !bytes.Equal(got, want) || len(got) != 16 {
			t.Errorf("%s, %d bytes: %x, %v; later: %x, %v", f.Name(), f.Size(), got, err, want, err2)
		}
		if small := f.Size() <= 256<<10; small && (read != f.Size() || f.BytesRead() != read) {
			t.Errorf("%s: %d of %d bytes read by opening it, and %d then", f.Name(), read, f.Size(), f.BytesRead()-read)
		}
		sourcetest.Equal(t, f.Name()+": row groups", f.NumGroups(), later[i].NumGroups())
		sourcetest.Equal(t, f.Name()+": rows", f.Rows(), later[i].Rows())
		for g := range f.NumGroups() {
			if err := f.Check(t.Context(), g); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestLoadPages checks that a small file's pages are those that are read without, that passes
// which overlap share them until the last has ended, and that a file that changes is an error.
func TestLoadPages(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.parquet")
	ids := func(first int64) string {
		values := sourcetest.Numbers(500, func(i int) int64 { return first + int64(i) })
		return sourcetest.Write(t, name, 200, sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "id", Values: values}))
	}
	f := roomtest.Open(t, source.Opening{}, ids(0))[0]
	first, second := f.LoadPages(), f.LoadPages()
	if err := first(); err != nil {
		t.Fatal(err)
	}
	for g := range f.NumGroups() {
		if err := f.Check(t.Context(), g); err != nil {
			t.Error(err)
		}
	}
	if err := second(); err != nil {
		t.Fatal(err)
	}
	ids(7)
	end := f.LoadPages() // reads nothing, so that a walk returns the error
	sourcetest.Says(t, "a file that has changed", f.Unless(f.Check(t.Context(), 0)), storage.ErrChanged, "a.parquet")
	if err := end(); err != nil {
		t.Error(err)
	}
}
