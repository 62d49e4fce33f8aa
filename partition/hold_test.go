package partition

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"strings"
	"testing"
)

// TestHold: a directory whose files are held changes when all rows have come,
// and not at all if their sequence ends in an error, be it its last word.
func TestHold(t *testing.T) {
	in := logs(t)
	boom := errors.New("boom")
	dir := t.TempDir() + "/out/"
	failing := func(rows iter.Seq2[Rows, error]) iter.Seq2[Rows, error] {
		return func(yield func(Rows, error) bool) {
			for r, err := range rows {
				if !yield(r, err) {
					return
				}
			}
			yield(Rows{}, boom)
		}
	}
	held := job{[]string{in}, Output{Name: dir, Run: runOf(1), Hold: true}}
	_, err := held.doWith(t, failing)
	says(t, "into an empty directory", err, boom)
	equal(t, "what is left", tree(t, dir), nil)

	// Another run stands there: Force replaces it then only.
	other := job{[]string{in + "/a.parquet"}, Output{Name: dir, Run: runOf(2)}}
	if _, err := other.do(t); err != nil {
		t.Fatal(err)
	}
	_, err = held.do(t)
	says(t, "without force", err, ErrExists)
	before := snapshot(t, dir)
	held.out.Force = true
	_, err = held.doWith(t, failing)
	says(t, "over another run", err, boom)
	equal(t, "what stands there", snapshot(t, dir), before)

	// All is well: the directory is what it would have been without Hold.
	if w, err := held.doWith(t, watch(t, dir, snapshot(t, dir))); err != nil || w.Rows != 30 {
		t.Fatalf("%+v, %v", w, err)
	}
	plain := held
	plain.out.Hold, plain.out.Name = false, t.TempDir()+"/out/"
	if _, err := plain.do(t); err != nil {
		t.Fatal(err)
	}
	equal(t, "the directory", snapshot(t, dir), snapshot(t, plain.out.Name))

	// What a rival has put there meanwhile stays.
	fresh := t.TempDir() + "/out/"
	held.out.Force, held.out.Name, other.out.Name = false, fresh, fresh
	_, err = held.doWith(t, func(rows iter.Seq2[Rows, error]) iter.Seq2[Rows, error] {
		if _, err := other.do(t); err != nil {
			t.Fatal(err)
		}
		return rows
	})
	says(t, "a rival", err, ErrExists)
	equal(t, "the rival's files", tree(t, fresh), []string{"_SUCCESS", "_manifest.json", "a.parquet"})
}

// watch sees to it that, until the last row, the directory is as it was, and
// that at the end no file is held open.
func watch(t *testing.T, dir, before string) func(iter.Seq2[Rows, error]) iter.Seq2[Rows, error] {
	return func(rows iter.Seq2[Rows, error]) iter.Seq2[Rows, error] {
		return func(yield func(Rows, error) bool) {
			for r, err := range rows {
				equal(t, "the directory meanwhile", snapshot(t, dir), before)
				if !yield(r, err) {
					return
				}
			}
			open, err := os.ReadDir("/proc/self/fd")
			if errors.Is(err, fs.ErrNotExist) {
				return // not this system
			}
			attempts := 0
			for _, fd := range open {
				if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(to, dir) {
					attempts++
				}
			}
			if attempts > 1 { // the last file's
				t.Errorf("%d attempts are open", attempts)
			}
		}
	}
}

// snapshot is what a reader of the directory sees.
func snapshot(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	for _, name := range tree(t, dir) {
		if base := name[strings.LastIndex(name, "/")+1:]; !strings.HasPrefix(base, ".") {
			content := ""
			if strings.HasPrefix(base, "_manifest") {
				content = get(t, manifestOf(t, dir))
			} else {
				content = get(t, dir+"/"+name)
			}
			b.WriteString(name + "\n" + content + "\n")
		}
	}
	return b.String()
}

// TestHoldOnAFullDisk: an attempt that fails half-way leaves nothing at all.
func TestHoldOnAFullDisk(t *testing.T) {
	in := logs(t)
	for space := range 1200 {
		if space%50 > 0 {
			continue
		}
		dir := t.TempDir() + "/out/"
		left := space
		if _, err := (job{[]string{in}, Output{Name: dir, Store: fullStore{left: &left}, Run: runOf(1), Hold: true}}).do(t); err != nil {
			equal(t, "what is left", tree(t, dir), nil)
		}
	}
}

// TestHoldCancelled: the same of a run that is called off.
func TestHoldCancelled(t *testing.T) {
	files := open(t, OpenOptions{}, logs(t))
	ctx, cancel := context.WithCancel(t.Context())
	dir := t.TempDir() + "/out/"
	var parts []Part
	for _, p := range Split(files, Shard{}) {
		parts = append(parts, Part{Piece: p, Schema: p.File.Schema()})
	}
	rows := func(yield func(Rows, error) bool) {
		n := 0
		for r, err := range Map(ctx, Split(files, Shard{}), 0, nil, pass) {
			if n++; n == 5 {
				cancel()
			}
			if !yield(r, err) {
				return
			}
		}
	}
	_, err := Output{Name: dir, Run: runOf(1), Hold: true}.Write(ctx, parts, rows)
	says(t, "a run that is called off", err, context.Canceled)
	equal(t, "what is left", tree(t, dir), nil)
}
