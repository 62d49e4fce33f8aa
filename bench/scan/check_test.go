package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/bloomjoin/bloomjoin/bench/internal/report"
)

func TestCheckOutput(t *testing.T) {
	type row struct {
		ID  int64  `parquet:"id,zstd"`
		URL string `parquet:"url,zstd"`
	}
	path := filepath.Join(t.TempDir(), "out.parquet")
	if err := parquet.WriteFile(path, []row{{1, "a"}, {2, "b"}, {3, "c"}}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if size, err := checkOutput(path, 3, "zstd"); err != nil || size != info.Size() {
		t.Errorf("got %d, %v, want %d", size, err, info.Size())
	}
	if _, err := checkOutput(path, 2, "zstd"); err == nil {
		t.Error("one row more than wanted: want an error")
	}
	if _, err := checkOutput(path, 3, "snappy"); err == nil {
		t.Error("another codec: want an error")
	}
	if _, err := checkOutput(path+"x", 3, "zstd"); err == nil {
		t.Error("no file: want an error")
	}
}

func TestSameDigest(t *testing.T) {
	a := map[string]string{"id": "3 values, hash 4", "url": "3 values, hash 5"}
	if err := sameDigest("x", a, "y", map[string]string{"url": "3 values, hash 5", "id": "3 values, hash 4"}); err != nil {
		t.Error(err)
	}
	for _, b := range []map[string]string{{"id": "3 values, hash 4"}, {"id": "3 values, hash 4", "url": "3 values, hash 6"}, {"id": "3 values, hash 4", "URL": "3 values, hash 5"}} {
		if err := sameDigest("x", b, "y", a); err == nil {
			t.Errorf("%v and %v: want an error", b, a)
		}
	}
}

// The document has markers for every table.
func TestDocumentHasMarkers(t *testing.T) {
	doc, err := os.ReadFile("../" + document)
	if err != nil {
		t.Fatal(err)
	}
	r := run{rounds: 1}
	for _, table := range append(r.matrix(make([]result, 2)), report.Table{Name: "startup"}, report.Table{Name: "targets"}, report.Table{Name: "shapes"}) {
		if _, err := report.Replace(doc, table.Name, ""); err != nil {
			t.Error(err)
		}
	}
}
