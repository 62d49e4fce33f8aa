package iceberg_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/lake"
	"github.com/bloomjoin/bloomjoin/internal/lake/iceberg"
	"github.com/bloomjoin/bloomjoin/internal/lake/laketest"
	"github.com/bloomjoin/bloomjoin/internal/panics"
	"github.com/bloomjoin/bloomjoin/internal/teststore"
)

const fuzzed = "s3://b/t"

// seed returns the metadata of a table, its list, and a manifest of data and one of deletes. All manifests
// of the list have these two names, and any length.
func seed(f *testing.F, format int, by []string, values ...any) (parts [4][]byte) {
	d := laketest.NewIceberg(f, format, schema, by...)
	d.Location = fuzzed
	d.Edit = func(what string, of map[string]any) {
		switch what {
		case "list schema":
			withoutField(of, "manifest_length")
		case "list":
			of["manifest_path"] = map[any]string{0: fuzzed + "/data", 1: fuzzed + "/deletes"}[of["content"]]
		case "entry":
			file := of["data_file"].(map[string]any)
			bounds := func(v any) any {
				return []any{map[string]any{"key": 1, "value": laketest.SingleValue("long", v)}, map[string]any{"key": 2, "value": []byte("a")}, map[string]any{"key": 5, "value": []byte{1}}}
			}
			if file["content"] == 0 {
				file["lower_bounds"], file["upper_bounds"], file["null_value_counts"] = bounds(1), bounds(9), []any{map[string]any{"key": 1, "value": 0}}
			}
		}
	}
	var gone []int64
	if format > 1 {
		gone = []int64{1, 5}
	}
	d.Commit(d.Add("a.parquet", "A", gone, values...), d.Add("b.parquet", "B", nil, values...))
	for i, pattern := range []string{"v1.metadata.json", "snap-1.avro", "m1-*.avro"} {
		names, err := filepath.Glob(filepath.Join(d.Dir, "metadata", pattern))
		if err != nil || len(names) == 0 {
			f.Fatal(pattern, err)
		}
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			if at := i; strings.Contains(string(b), "/deletes") {
				parts[3] = b
			} else {
				parts[at] = b
			}
		}
	}
	return parts
}

// Whatever metadata has, it is read or refused, in little memory, and names only files in its own storage.
func FuzzMetadata(f *testing.F) {
	for format := 1; format <= 3; format++ {
		for _, by := range []struct {
			names  []string
			values []any
		}{{nil, nil}, {[]string{"id", "day(at)", "truncate[3](name)", "sum"}, []any{7, 19000, "abc", []byte{0, 0, 1, 0}}}, {[]string{"bucket[4](id)", "month(day)", "of"}, []any{3, -5, nil}}} {
			p := seed(f, format, by.names, by.values...)
			f.Add(p[0], p[1], p[2], p[3], byte(format))
		}
	}
	f.Fuzz(func(t *testing.T, metadata, list, data, deleted []byte, kind byte) {
		s := teststore.NewMemory()
		s.Put(fuzzed+"/metadata/v1.metadata.json", metadata)
		s.Put(fuzzed+"/metadata/snap-1.avro", list)
		s.Put(fuzzed+"/data", data)
		s.Put(fuzzed+"/deletes", deleted)
		name := lake.Name{Kind: "iceberg", Location: fuzzed + "/metadata/v1.metadata.json"}
		if kind%4 == 3 {
			name.Version = "snapshot=7000000001"
		}
		size := len(metadata) + len(list) + len(data) + len(deleted)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := readAll(t, s, name, kind)
		runtime.ReadMemStats(&after)
		if most := uint64(16<<20 + 2000*size); after.TotalAlloc-before.TotalAlloc > most {
			t.Errorf("%d bytes are allocated, want at most %d", after.TotalAlloc-before.TotalAlloc, most)
		}
		if errors.Is(err, panics.ErrRecovered) {
			t.Fatal(err)
		}
	})
}

// readAll reads what metadata says of all files, and checks what holds for any.
func readAll(t *testing.T, s *teststore.Memory, name lake.Name, kind byte) error {
	n, err := iceberg.Open(t.Context(), s, name, kind%2 == 0)
	if err != nil {
		return err
	}
	of := n.Table()
	holds := func(b []lake.Bound) bool { return kind%8 < 6 || len(b)%2 == 0 }
	skipped, err := n.Files(t.Context(), holds, func(f *lake.File) error {
		if !strings.HasPrefix(f.Object.Name, "s3://") && strings.Contains(fuzzed, "s3://") && !strings.Contains(f.Object.Name, "://") {
			t.Errorf("%q is read", f.Object.Name)
		}
		if f.Object.Size < 0 {
			t.Errorf("%+v", f.Object)
		}
		if d := f.Deleted; d != nil && (d.Count < 0 || d.In == nil && (d.Place == "" || d.Offset < 0 || d.Size < 4)) {
			t.Errorf("%+v", d)
		}
		for _, v := range f.Values {
			if v.Null && v.Text != "" {
				t.Errorf("%+v", v)
			}
		}
		if f.Bounds != nil {
			for _, b := range f.Bounds() {
				if b.Column >= len(of.Columns) || len(of.Columns[b.Column].Children) > 0 {
					t.Errorf("%+v", b)
				}
			}
		}
		return nil
	})
	if skipped < 0 {
		t.Errorf("%d are skipped", skipped)
	}
	return err
}
