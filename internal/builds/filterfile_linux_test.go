package builds

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/storage"
)

// The remains of a filter file from a killed process are removed when the file is
// written again.
func TestWriteSweeps(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "f.bjf")
	sink, err := storage.Local().Create(t.Context(), name, storage.CreateOptions{Private: true})
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	// As from an earlier process with the same number: HOST-PID-START-RANDOM.
	tag := strings.Split(entries[0].Name(), "-")
	start, err := strconv.ParseUint(tag[2], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	tag[2] = strconv.FormatUint(start-1, 10)
	if err := sink.Abort(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, strings.Join(tag, "-")), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := newStore()
	putParquet(t, s, "ids.parquet", 10, record(t, column{"id", []int64{1, 2, 3}}))
	f, _ := build(t, s, []string{"ids.parquet"}, Options{Key: "id"})
	if _, err := filters.Save(t.Context(), storage.Local(), name, f, filters.Options{}); err != nil {
		t.Fatal(err)
	}
	if entries, err = os.ReadDir(dir); err != nil || len(entries) != 1 || entries[0].Name() != "f.bjf" {
		t.Error(entries, err)
	}
}
