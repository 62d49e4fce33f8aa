package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go"
)

type row struct {
	User int64  `parquet:"user_id,plain"`
	URL  string `parquet:"url,dict"`
}

// Rows and row groups of the log. Its keys ascend by 10.
const (
	rows   = 6000
	groups = 3
)

func write(t *testing.T, path string, keys []int64, rows func(i int) row, options ...parquet.WriterOption) {
	t.Helper()
	var file bytes.Buffer
	w := parquet.NewGenericWriter[row](&file, append(options, parquet.PageBufferSize(1<<10))...)
	for i := range keys {
		if i > 0 && i%(len(keys)/groups+1) == 0 {
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.Write([]row{rows(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// files writes a log, and IDs.
func files(t *testing.T, ids ...int64) (log, wanted string) {
	t.Helper()
	log, wanted = filepath.Join(t.TempDir(), "log"), filepath.Join(t.TempDir(), "ids")
	write(t, log, make([]int64, rows), func(i int) row { return row{int64(i) * 10, fmt.Sprint("https://example.com/", i%100)} })
	write(t, wanted, ids, func(i int) row { return row{User: ids[i]} })
	return log, wanted
}

// pageSize is the size of a page of either column at a row, as the offset index has it.
func pageSize(t *testing.T, log string, column, at int) (size int64) {
	t.Helper()
	f, err := open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	for i, g := range f.RowGroups() {
		if n := int(g.NumRows()); at >= n {
			at -= n
			continue
		}
		pages, _, err := f.pages(i, column)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range pages {
			if int64(at) >= p.first && int64(at) < p.after {
				return p.size
			}
		}
	}
	t.Fatalf("no page of column %d has row %d", column, at)
	return 0
}

func TestNeeded(t *testing.T) {
	// One ID in the first row group, one between two keys of the last.
	log, ids := files(t, 1230, 50_005)
	n, err := compute(log, ids, "user_id")
	if err != nil {
		t.Fatal(err)
	}
	if n.Rows != rows || n.Kept != 1 {
		t.Errorf("%d rows, %d kept", n.Rows, n.Kept)
	}
	if want := pageSize(t, log, 0, 123) + pageSize(t, log, 0, 5000); n.Keys != want {
		t.Errorf("pages of the key: %d bytes, want %d", n.Keys, want)
	}
	if want := pageSize(t, log, 1, 123); n.Pages != want {
		t.Errorf("other pages: %d bytes, want %d", n.Pages, want)
	}
	if n.Dictionaries == 0 || n.Dictionaries > 4000 || n.Index == 0 {
		t.Errorf("dictionaries %d, index %d", n.Dictionaries, n.Index)
	}
	// All rows: every byte before the page index.
	var every []int64
	for i := range rows {
		every = append(every, int64(i)*10)
	}
	log, ids = files(t, every...)
	n, err = compute(log, ids, "user_id")
	info, stat := os.Stat(log)
	if err != nil || stat != nil {
		t.Fatal(err, stat)
	}
	if got, want := n.Keys+n.Pages+n.Dictionaries+n.Index, info.Size()-4; n.Kept != rows || got != want {
		t.Errorf("%d rows kept, %d bytes, want %d of %d", n.Kept, got, want, info.Size())
	}
}

func TestErrors(t *testing.T) {
	log, ids := files(t, 1)
	for _, args := range [][]string{{}, {log}, {"-key", "nosuch", log, ids}, {"-key", "url", log, ids}, {log, "/nonexistent"}} {
		if err := run(args); err == nil {
			t.Errorf("%q: want an error", args)
		}
	}
}
