package output

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/listing"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
	"github.com/bloomjoin/bloomjoin/internal/teststore"
	"github.com/bloomjoin/bloomjoin/storage"
)

// memoryLogs copies the files of logs into a storage in memory, below in/.
func memoryLogs(t *testing.T) *teststore.Memory {
	t.Helper()
	s, dir := teststore.NewMemory(), roomtest.Logs(t)
	for _, name := range sourcetest.Tree(t, dir) {
		s.Put("in/"+name, []byte(sourcetest.Get(t, filepath.Join(dir, name))))
	}
	return s
}

// scanIn scans the logs of a storage into an output in it.
func scanIn(t *testing.T, s storage.Storage, out Destination, ids ...int64) (dataset.Written, error) {
	t.Helper()
	files := roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Store: s}}, "in")
	out.Store, out.Result, out.WriteEmpty = s, source.ResultExact, true
	out.Run = &Run{Options: []string{"scan", fmt.Sprint(ids)}, Log: files}
	todo, err := out.Pending(t.Context())
	if err != nil {
		return dataset.Written{}, err
	}
	scanner, err := keyscan.New(keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(roomtest.ExactOf("id", ids...))}}}})
	if err != nil {
		t.Fatal(err)
	}
	return out.WriteScan(t.Context(), scanner, source.Split(todo, dataset.Shard{}), todo, nil)
}

// TestStorageInMemory: inputs and outputs, including directories with their manifests,
// need nothing but a Storage.
func TestStorageInMemory(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"out.parquet", "out/"} {
		s := memoryLogs(t)
		before := len(s.Names())
		w, err := scanIn(t, s, Destination{Output: Output{Name: name}}, 3, 14, 25)
		if err != nil || w.Rows != 3 {
			t.Fatalf("%s: %+v, %v", name, w, err)
		}
		want := []string{"out.parquet"}
		if name == "out/" {
			want = []string{"out.bloomjoin/manifest-00000001.json", "out.bloomjoin/manifest.json", "out.bloomjoin/settled-00000001.json", "out/_SUCCESS", "out/a.parquet", "out/y=1/_SUCCESS", "out/y=1/b.parquet", "out/y=1/c.parquet"}
		}
		names := slices.DeleteFunc(s.Names(), func(n string) bool { return strings.HasPrefix(n, "in/") })
		sourcetest.Equal(t, name, names, want)
		_, err = scanIn(t, s, Destination{Output: Output{Name: name}}, 3, 14, 25)
		sourcetest.Says(t, "the same run", err, ErrDone)
		_, err = scanIn(t, s, Destination{Output: Output{Name: name}}, 4)
		sourcetest.Says(t, "another run", err, ErrExists)
		if w, err := scanIn(t, s, Destination{Output: Output{Name: name, Force: true}}, 4); err != nil || w.Rows != 1 {
			t.Errorf("%s, forced: %+v, %v", name, w, err)
		}
		lost := "out.parquet"
		if name == "out/" {
			lost = "out/a.parquet"
		}
		if err := s.Delete(t.Context(), storage.Object{Name: lost}); err != nil {
			t.Fatal(err)
		}
		if w, err := scanIn(t, s, Destination{Output: Output{Name: name}}, 4); err != nil || w.Rows != 1 || len(s.Names()) != before+len(want) {
			t.Errorf("%s, healed: %+v, %v; %v", name, w, err, s.Names())
		}
		_, err = scanIn(t, s, Destination{Output: Output{Name: "in/a.parquet", Force: true}}, 4)
		sourcetest.Says(t, "over an input", err, nil, "the output is the input")
	}
	if left, err := os.ReadDir("."); err != nil || len(left) != 0 {
		t.Errorf("on disk: %v, %v", left, err)
	}
}

// TestStorageChanges: if an object is replaced after it was opened, the error names it,
// and there is no output.
func TestStorageChanges(t *testing.T) {
	s := memoryLogs(t)
	files := roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Store: s}}, "in")
	b, _ := s.Get("in/y=1/c.parquet")
	s.Put("in/y=1/c.parquet", b)
	scanner, err := keyscan.New(keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(roomtest.ExactOf("id", 3, 25))}}}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Destination{Output: Output{Name: "out.parquet", Store: s}}.WriteScan(t.Context(), scanner, source.Split(files, dataset.Shard{}), files, nil)
	sourcetest.Says(t, "an object that changed", err, storage.ErrChanged, "in/y=1/c.parquet")
	if _, ok := s.Get("out.parquet"); ok {
		t.Error("there is an output")
	}
	// If it is replaced between listing and opening, it has not been read yet.
	listed, _, err := listing.List(t.Context(), s, "in")
	if err != nil {
		t.Fatal(err)
	}
	s.Put(listed[0].Name, func() []byte { b, _ := s.Get(listed[0].Name); return b }())
	opts := source.Opening{OpenOptions: source.OpenOptions{Store: s}}
	if err := opts.Fill(); err != nil {
		t.Fatal(err)
	}
	f, err := source.OpenObject(t.Context(), listed[0], nil, opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
