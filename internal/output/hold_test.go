package output

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/arraycopy"
	"github.com/bloomjoin/bloomjoin/internal/publish"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
	"github.com/bloomjoin/bloomjoin/storage"
)

// TestHold: a directory with held files changes only when all rows have arrived, and
// not at all if their sequence ends with an error, even at the very end.
func TestHold(t *testing.T) {
	in := roomtest.Logs(t)
	boom := errors.New("boom")
	dir := t.TempDir() + "/out/"
	failing := func(rows iter.Seq2[arraycopy.Rows, error]) iter.Seq2[arraycopy.Rows, error] {
		return func(yield func(arraycopy.Rows, error) bool) {
			for r, err := range rows {
				if !yield(r, err) {
					return
				}
			}
			yield(arraycopy.Rows{}, boom)
		}
	}
	held := job{[]string{in}, Destination{Output: Output{Name: dir}, Run: runOf(1)}}
	_, err := held.doWith(t, failing)
	sourcetest.Says(t, "into an empty directory", err, boom)
	sourcetest.Equal(t, "what is left", sourcetest.Tree(t, dir), nil)
	sourcetest.Equal(t, "what is left beside it", sourcetest.Tree(t, publish.ManifestsOf(dir)), nil)

	// The directory has another run's output: Force replaces it only at the end.
	other := job{[]string{in + "/a.parquet"}, Destination{Output: Output{Name: dir}, Run: runOf(2)}}
	if _, err := other.do(t); err != nil {
		t.Fatal(err)
	}
	_, err = held.do(t)
	sourcetest.Says(t, "without force", err, ErrExists)
	before, state := snapshot(t, dir), snapshot(t, publish.ManifestsOf(dir))
	held.out.Force = true
	_, err = held.doWith(t, failing)
	sourcetest.Says(t, "over another run", err, boom)
	sourcetest.Equal(t, "what stands there", snapshot(t, dir), before)
	sourcetest.Equal(t, "what stands beside it", snapshot(t, publish.ManifestsOf(dir)), state)

	if w, err := held.doWith(t, watch(t, dir, snapshot(t, dir))); err != nil || w.Rows != 30 {
		t.Fatalf("%+v, %v", w, err)
	}

	// What a rival has written in the meantime stays.
	fresh := t.TempDir() + "/out/"
	held.out.Force, held.out.Name, other.out.Name = false, fresh, fresh
	_, err = held.doWith(t, func(rows iter.Seq2[arraycopy.Rows, error]) iter.Seq2[arraycopy.Rows, error] {
		if _, err := other.do(t); err != nil {
			t.Fatal(err)
		}
		return rows
	})
	sourcetest.Says(t, "a rival", err, ErrExists)
	sourcetest.Equal(t, "the rival's files", sourcetest.Tree(t, fresh), []string{"_SUCCESS", "a.parquet"})
}

// watch checks that the directory is unchanged until the last row, and that no file is
// open at the end.
func watch(t *testing.T, dir, before string) func(iter.Seq2[arraycopy.Rows, error]) iter.Seq2[arraycopy.Rows, error] {
	return func(rows iter.Seq2[arraycopy.Rows, error]) iter.Seq2[arraycopy.Rows, error] {
		return func(yield func(arraycopy.Rows, error) bool) {
			for r, err := range rows {
				sourcetest.Equal(t, "the directory meanwhile", snapshot(t, dir), before)
				if !yield(r, err) {
					return
				}
			}
			for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) { // some may wait for the disk
				open, err := os.ReadDir("/proc/self/fd")
				if errors.Is(err, fs.ErrNotExist) {
					return // not on this system
				}
				attempts := 0
				for _, fd := range open {
					if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(to, dir) {
						attempts++
					}
				}
				if attempts <= 1 { // the last file may be open
					return
				}
				if time.Now().After(end) {
					t.Fatalf("%d attempts are open", attempts)
				}
			}
		}
	}
}

// snapshot returns what a reader of the directory sees.
func snapshot(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	for _, name := range sourcetest.Tree(t, dir) {
		if base := name[strings.LastIndex(name, "/")+1:]; !strings.HasPrefix(base, ".") && !strings.HasSuffix(base, ".staged") {
			b.WriteString(name + "\n" + sourcetest.Get(t, dir+"/"+name) + "\n")
		}
	}
	return b.String()
}

// TestHoldOnAFullDisk: an attempt that fails half-way leaves nothing.
func TestHoldOnAFullDisk(t *testing.T) {
	in := roomtest.Logs(t)
	for space := range 1200 {
		if space%50 > 0 {
			continue
		}
		dir := t.TempDir() + "/out/"
		left := space
		if _, err := (job{[]string{in}, Destination{Output: Output{Name: dir, Store: fullStore{Storage: storage.Local(), left: &left}}, Run: runOf(1)}}).do(t); err != nil {
			sourcetest.Equal(t, "what is left", sourcetest.Tree(t, dir), nil)
			sourcetest.Equal(t, "what is left beside it", sourcetest.Tree(t, publish.ManifestsOf(dir)), nil)
		}
	}
}

// TestHoldCancelled: the same for a cancelled run.
func TestHoldCancelled(t *testing.T) {
	files := roomtest.Open(t, source.Opening{}, roomtest.Logs(t))
	ctx, cancel := context.WithCancel(t.Context())
	dir := t.TempDir() + "/out/"
	var parts []Part
	for _, p := range source.Split(files, dataset.Shard{}) {
		parts = append(parts, Part{Piece: p, Schema: p.File.Schema()})
	}
	rows := func(yield func(arraycopy.Rows, error) bool) {
		n := 0
		for r, err := range roomtest.Map(ctx, source.Split(files, dataset.Shard{}), 0, nil, roomtest.Pass) {
			if n++; n == 5 {
				cancel()
			}
			if !yield(r, err) {
				return
			}
		}
	}
	_, err := Destination{Output: Output{Name: dir}, Run: runOf(1)}.Write(ctx, parts, rows)
	sourcetest.Says(t, "a run that is called off", err, context.Canceled)
	sourcetest.Equal(t, "what is left", sourcetest.Tree(t, dir), nil)
	sourcetest.Equal(t, "what is left beside it", sourcetest.Tree(t, publish.ManifestsOf(dir)), nil)
}
