package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go"
)

type row struct {
	ID  int64  `parquet:"id,plain"`
	URL string `parquet:"url,plain"`
}

// write creates a file with V1 pages and two row groups.
func write(t *testing.T, path string, rows int, options ...parquet.WriterOption) {
	t.Helper()
	var file bytes.Buffer
	w := parquet.NewGenericWriter[row](&file, append(options, parquet.DataPageVersion(1), parquet.PageBufferSize(4<<10))...)
	for i := range rows {
		if i == rows/2 {
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.Write([]row{{int64(i), fmt.Sprintf("https://example.com/%d", i)}}); err != nil {
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

// Every byte of every page is decompressed, compared with sizes from the footer and
// the plain encoding.
func TestWalk(t *testing.T) {
	const rows = 5000
	var urls int64
	for i := range rows {
		urls += int64(4 + len(fmt.Sprintf("https://example.com/%d", i)))
	}
	for name, codec := range map[string]parquet.WriterOption{
		"snappy": parquet.Compression(&parquet.Snappy), "zstd": parquet.Compression(&parquet.Zstd), "none": parquet.Compression(&parquet.Uncompressed),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "a.parquet"), rows, codec)
			write(t, filepath.Join(dir, "b.parquet"), rows, codec)
			for columns, want := range map[string]int64{"": 2 * (8*rows + urls), "id": 2 * 8 * rows, "url,none": 2 * urls} {
				chunks, err := list(dir, columns)
				if err != nil {
					t.Fatal(err)
				}
				for _, threads := range []int{1, 3} {
					sum, err := walk(chunks, threads, 0.25)
					if err != nil || sum.plain != want || sum.pages < int64(len(chunks)) {
						t.Errorf("columns %q: %+v, %v, want %d bytes", columns, sum, err, want)
					}
					// The share is rounded down for each page.
					if low := want/4 - sum.pages; sum.taken > want/4 || sum.taken < low {
						t.Errorf("columns %q: %d bytes compressed again, want %d to %d", columns, sum.taken, low, want/4)
					}
				}
			}
		})
	}
}

// The decompressed bytes are the values: their sum equals that of another reader.
func TestWalkSeesValues(t *testing.T) {
	const rows = 50_000
	path := filepath.Join(t.TempDir(), "a.parquet")
	write(t, path, rows, parquet.Compression(&parquet.Snappy))
	all, err := parquet.ReadFile[row](path)
	if err != nil {
		t.Fatal(err)
	}
	var want, got uint64
	for i, r := range all {
		want += uint64(i+1) * uint64(r.ID)
	}
	chunks, err := list(path, "id")
	if err != nil {
		t.Fatal(err)
	}
	w, at := newWorker(0), uint64(0)
	w.seen = func(plain []byte) {
		for ; len(plain) >= 8; plain = plain[8:] {
			at++
			got += at * binary.LittleEndian.Uint64(plain)
		}
		if len(plain) > 0 {
			t.Errorf("%d bytes are left of a page", len(plain))
		}
	}
	for _, c := range chunks {
		if err := w.chunk(c); err != nil {
			t.Fatal(err)
		}
	}
	if at != rows || got != want {
		t.Errorf("%d values of sum %d, want %d of %d", at, got, rows, want)
	}
}

func TestDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.parquet")
	write(t, path, 5000, parquet.Compression(&parquet.Snappy))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copy(whole[1000:1100], bytes.Repeat([]byte{0xff}, 100))
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	chunks, err := list(path, "")
	if err != nil {
		t.Fatal(err)
	}
	if sum, err := walk(chunks, 2, 0); err == nil {
		t.Errorf("got %+v, want an error", sum)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{}, {"a", "b"}, {"-share", "2", "a"}, {"-threads", "0", "a"}, {"/nonexistent"}} {
		if err := run(args); err == nil {
			t.Errorf("%q: want an error", args)
		}
	}
}
