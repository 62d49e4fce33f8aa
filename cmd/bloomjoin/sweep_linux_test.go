package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/storage"
)

// A run that finds its work done removes the temporary files of an earlier run that
// was killed right after publishing.
func TestDoneSweeps(t *testing.T) {
	dir := t.TempDir()
	ids := filepath.Join(dir, "ids.csv")
	if err := os.WriteFile(ids, []byte("id,name\n1,a\n2,b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "f.bjf")
	build := func() string {
		var said bytes.Buffer
		if code := run([]string{"build", "--key", "id", "-o", out, ids}, nil, &said, &said); code != 0 {
			t.Fatalf("exit %d: %s", code, &said)
		}
		return said.String()
	}
	build()
	sink, err := storage.Local().Create(t.Context(), out, storage.CreateOptions{Private: true})
	if err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, ".f.bjf.*.tmp"))
	if err != nil || len(left) != 1 {
		t.Fatal(left, err)
	}
	// As left by an earlier process with the same PID: HOST-PID-START-RANDOM.
	tag := strings.Split(left[0], "-")
	start, err := strconv.ParseUint(tag[len(tag)-2], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	tag[len(tag)-2] = strconv.FormatUint(start-1, 10)
	if err := sink.Abort(); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(out, strings.Join(tag, "-")); err != nil {
		t.Fatal(err)
	}
	if said := build(); !strings.Contains(said, "already done") {
		t.Error(said)
	}
	if left, err = filepath.Glob(filepath.Join(dir, ".f.bjf.*.tmp")); err != nil || len(left) != 0 {
		t.Error(left, err)
	}
}
