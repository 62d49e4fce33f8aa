package iceberg_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/lake"
	"github.com/bloomjoin/bloomjoin/internal/lake/iceberg"
	"github.com/bloomjoin/bloomjoin/internal/lake/laketest"
	"github.com/bloomjoin/bloomjoin/storage"
)

// deleting returns a table of two partitions with two files each, and the actions that have added them.
func deleting(t *testing.T, format int) (d *laketest.Iceberg, files []*laketest.IcebergFile) {
	t.Helper()
	d = laketest.NewIceberg(t, format, schema, "id")
	var actions []any
	for i, name := range []string{"a.parquet", "b.parquet", "c.parquet", "d.parquet"} {
		a := d.Add(name, name, nil, i/2)
		actions, files = append(actions, a), append(files, a.(*laketest.IcebergFile))
	}
	d.Commit(actions...)
	return d, files
}

// without commits a snapshot in which files have deleted rows.
func without(d *laketest.Iceberg, files []*laketest.IcebergFile, deleted ...[]int64) {
	var actions []any
	for i, rows := range deleted {
		again := *files[i]
		again.Deleted = rows
		actions = append(actions, &again)
	}
	d.Commit(actions...)
}

const (
	fileA, fileB = "a.parquet id=0", "b.parquet id=0"
	filesCD      = "; c.parquet id=1; d.parquet id=1\n"
)

// Positions are of the files that they name, in the partition of their file, and not of younger files.
func TestPositions(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(e, file map[string]any)
		want string
	}{
		"both":      {func(_, _ map[string]any) {}, fileA + " without [0 3]; " + fileB + " without [4]" + filesCD},
		"no bounds": {func(_, file map[string]any) { file["lower_bounds"], file["upper_bounds"] = nil, nil }, fileA + " without [0 3]; " + fileB + " without [4]" + filesCD},
		"one": {func(_, file map[string]any) {
			file["referenced_data_file"] = strings.Replace(file["file_path"].(string), "deletes 2 0", "a", 1)
		}, fileA + " without [0 3]; " + fileB + filesCD},
		"one bound": {func(_, file map[string]any) { file["upper_bounds"] = file["lower_bounds"] }, fileA + " without [0 3]; " + fileB + filesCD},
		"range":     {func(_, file map[string]any) { file["lower_bounds"] = file["upper_bounds"] }, fileA + "; " + fileB + " without [4]" + filesCD},
		"half":      {func(_, file map[string]any) { file["lower_bounds"] = nil }, fileA + " without [0 3]; " + fileB + " without [4]" + filesCD},
		"cut": {func(_, file map[string]any) { // as writers do that cut both bounds alike
			for _, bound := range []string{"lower_bounds", "upper_bounds"} {
				of := file[bound].([]any)[0].(map[string]any)
				of["value"] = of["value"].([]byte)[:16]
			}
		}, fileA + " without [0 3]; " + fileB + " without [4]" + filesCD},
		"partition":  {func(_, file map[string]any) { file["partition"] = map[string]any{"by 0": 1} }, fileA + "; " + fileB + filesCD},
		"partitions": {func(_, file map[string]any) { file["partition"], file["lower_bounds"] = map[string]any{"by 0": 1}, nil }, fileA + "; " + fileB + "; c.parquet id=1 without []; d.parquet id=1 without []\n"},
		"null":       {func(_, file map[string]any) { file["partition"] = map[string]any{"by 0": nil} }, fileA + "; " + fileB + filesCD},
		"older":      {func(e, _ map[string]any) { e["status"], e["sequence_number"] = 0, 0 }, fileA + "; " + fileB + filesCD},
		"same":       {func(e, _ map[string]any) { e["status"], e["sequence_number"] = 0, 1 }, fileA + " without [0 3]; " + fileB + " without [4]" + filesCD},
		"explicit":   {func(e, _ map[string]any) { e["sequence_number"] = 0 }, fileA + "; " + fileB + filesCD},
		"removed":    {func(e, _ map[string]any) { e["status"] = 2 }, fileA + "; " + fileB + filesCD},
		"inherited":  {func(e, _ map[string]any) { e["status"], e["sequence_number"] = 0, nil }, "an old file without its sequence number"},
		"format":     {func(_, file map[string]any) { file["file_format"] = "avro" }, `a delete file of format "AVRO" (compact the table's delete files)`},
		"lower case": {func(_, file map[string]any) { file["file_format"] = "parquet" }, fileA + " without [0 3]; " + fileB + " without [4]" + filesCD},
		"fewer":      {func(_, file map[string]any) { file["record_count"] = 2 }, "rows of a delete file: want 2, got 3"},
		"more":       {func(_, file map[string]any) { file["record_count"] = 4 }, "rows of a delete file: want 4, got 3"},
		"most":       {func(_, file map[string]any) { file["record_count"] = 1 << 50 }, "a file of 1125899906842624 positions"},
		"size":       {func(_, file map[string]any) { file["file_size_in_bytes"] = 4 }, "bytes of a delete file of the table: want 4"},
		"place":      {func(_, file map[string]any) { file["file_path"] = "https://h/deletes 2" }, "in another place"},
		"content":    {func(_, file map[string]any) { file["content"] = 3 }, "a delete file of content 3"},
		"data":       {func(_, file map[string]any) { file["content"] = 0 }, "a file of content 0 that the list of manifests contradicts"},
		"encrypted":  {func(_, file map[string]any) { file["key_metadata"] = []byte("k") }, "the encrypted file"},
	} {
		t.Run(name, func(t *testing.T) {
			d, files := deleting(t, 2)
			onEntry(d, "deletes 2 0.parquet", c.edit)
			if d.Edit == nil {
				t.Fatal()
			}
			if name == "removed" {
				uncounted(d)
			}
			without(d, files, []int64{0, 3}, []int64{4})
			check(t, d.Name(), c.want)
		})
	}
}

// uncounted leaves out of lists how many files their manifests add.
func uncounted(d *laketest.Iceberg) {
	edit := d.Edit
	d.Edit = func(what string, of map[string]any) {
		if edit(what, of); what == "list" {
			of["added_files_count"] = nil
		}
	}
}

// Files without positions for a file are read once, and of several all count.
func TestManyPositions(t *testing.T) {
	d, files := deleting(t, 2)
	d.Keep = true
	without(d, files, []int64{0, 3}, []int64{4}, []int64{1})
	without(d, files, []int64{0, 2, 3}, []int64{4, 5}, []int64{1})
	without(d, files, []int64{0, 2, 3, 70000}, []int64{4, 5}, []int64{1})
	check(t, d.Name(), fileA+" without [0 2 3 70000]; "+fileB+" without [4 5]; c.parquet id=1 without [1]; d.parquet id=1")
	check(t, d.Name()+"@snapshot=7000000002", fileA+" without [0 3]; "+fileB+" without [4]; c.parquet id=1 without [1]; d.parquet id=1")
	// A file that is written later, with the same name, has none of these deleted.
	d.Commit(laketest.Remove(files[0]))
	d.Commit(d.Add("a.parquet", "again", nil, 0))
	check(t, d.Name(), "7000000006: "+fileA+"; b.parquet id=0 without [4 5]; c.parquet id=1 without [1]; d.parquet id=1")
}

// Files of positions whose columns are others, or that are none, are refused.
func TestBadPositions(t *testing.T) {
	type other[A, B any] struct {
		Path A `parquet:"file_path,optional"`
		Pos  B `parquet:"pos,optional"`
	}
	name := "x"
	at := int64(-1)
	for _, c := range []struct{ content, want string }{
		{parquetOf(t, other[string, int32]{"x", 1}), "columns of positions of deleted rows: want file_path: utf8 and pos: int64, without NULL, got "}, {parquetOf(t, other[int64, int64]{1, 1}), "columns of positions of deleted rows: want file_path: utf8 and pos: int64, without NULL, got "},
		{parquetOf(t, other[*string, *int64]{&name, nil}), "columns of positions of deleted rows: want file_path: utf8 and pos: int64, without NULL, got "}, {parquetOf(t, other[*string, *int64]{nil, &at}), "columns of positions of deleted rows: want file_path: utf8 and pos: int64, without NULL, got "},
		{parquetOf(t, other[string, *int64]{"x", &at}), "position -1 of a deleted row"}, {parquetOf(t, struct{ Pos int64 }{1}), "without the column file_path"},
		{parquetOf(t, struct {
			Path string `parquet:"file_path"`
		}{"x"}), "without the column pos"}, {"PAR1", "deletes"}, {"", "deletes"},
	} {
		d, files := deleting(t, 2)
		onEntry(d, "deletes 2 0.parquet", func(_, file map[string]any) { file["file_size_in_bytes"], file["record_count"] = len(c.content), 1 })
		without(d, files, []int64{0, 3})
		d.Put("deletes 2 0.parquet", c.content)
		check(t, d.Name(), c.want)
	}
	d, files := deleting(t, 2)
	without(d, files, []int64{0, 3})
	if err := os.Remove(filepath.Join(d.Dir, "deletes 2 0.parquet")); err != nil {
		t.Fatal(err)
	}
	check(t, d.Name(), "no such file")
}

// Vectors replace positions, and each is of one file.
func TestVectors(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(e, file map[string]any)
		want string
	}{
		"both":    {func(_, _ map[string]any) {}, fileA + " without [0 3]; " + fileB + " without [4]" + filesCD},
		"older":   {func(e, _ map[string]any) { e["status"], e["sequence_number"] = 0, 0 }, "a deletion vector that is older than its data file"},
		"same":    {func(e, _ map[string]any) { e["status"], e["sequence_number"] = 0, 1 }, fileA + " without [0 3]"},
		"no file": {func(_, file map[string]any) { file["referenced_data_file"] = nil }, "a deletion vector that names no data file"},
		"another": {func(_, file map[string]any) { file["referenced_data_file"] = "x" }, fileA + "; " + fileB + " without [4]" + filesCD},
		"two": {func(_, file map[string]any) {
			file["referenced_data_file"] = strings.Replace(file["referenced_data_file"].(string), "a.p", "b.p", 1)
		}, "a second deletion vector of "},
		"count":        {func(_, file map[string]any) { file["record_count"] = 3 }, "rows of a deletion vector: want 3, got 2"},
		"no offset":    {func(_, file map[string]any) { file["content_offset"] = nil }, "a deletion vector of 44 bytes at -1"},
		"no size":      {func(_, file map[string]any) { file["content_size_in_bytes"] = nil }, "a deletion vector of -1 bytes at 4"},
		"shorter":      {func(_, file map[string]any) { file["content_size_in_bytes"] = 43 }, "bytes of a deletion vector: want 35, got 36"},
		"longer":       {func(_, file map[string]any) { file["content_size_in_bytes"] = 45 }, "bytes of a deletion vector: want 37, got 36"},
		"longest":      {func(_, file map[string]any) { file["content_size_in_bytes"] = int64(1<<63 - 1) }, "a deletion vector of 9223372036854775807 bytes at 4"},
		"shortest":     {func(_, file map[string]any) { file["content_size_in_bytes"] = 11 }, "a deletion vector of 11 bytes at 4"},
		"farther":      {func(_, file map[string]any) { file["content_offset"] = 5 }, "bytes of a deletion vector"},
		"farthest":     {func(_, file map[string]any) { file["content_offset"] = int64(1<<63 - 1) }, "a deletion vector of 36 bytes at 9223372036854775807"},
		"inside":       {func(_, file map[string]any) { file["content_offset"] = 3 }, "bytes of a deletion vector: want 36, got 822083584"},
		"place":        {func(_, file map[string]any) { file["file_path"] = "s3://b/deletes 2.puffin" }, "in another place"},
		"of keys":      {func(_, file map[string]any) { file["content"] = 2 }, `a delete file of format "PUFFIN"`},
		"encrypted":    {func(_, file map[string]any) { file["key_metadata"] = []byte("k") }, "the encrypted file"},
		"no rows":      {func(_, file map[string]any) { file["record_count"] = -1 }, "with a file of path "},
		"other format": {func(_, file map[string]any) { file["file_format"] = "ORC" }, `a delete file of format "ORC"`},
	} {
		t.Run(name, func(t *testing.T) {
			d, files := deleting(t, 3)
			first := true
			onEntry(d, "deletes 2.puffin", func(e, file map[string]any) {
				if first {
					c.edit(e, file)
				}
				first = false
			})
			without(d, files, []int64{0, 3}, []int64{4})
			check(t, d.Name(), c.want)
		})
	}
	d, files := deleting(t, 2)
	without(d, files, []int64{0, 3}, []int64{4})
	d.Format, d.Keep = 3, true
	without(d, files, []int64{0, 1, 3}, []int64{4})
	check(t, d.Name(), fileA+" without [0 1 3]; "+fileB+" without [4]"+filesCD)
	without(d, files, []int64{0, 1, 2, 3})
	check(t, d.Name(), `a second deletion vector of "file:`+d.Dir+`/a.parquet"`)
	// One that is a file of its own begins with it.
	d, files = deleting(t, 3)
	onEntry(d, "deletes 2.puffin", func(_, file map[string]any) { file["content_offset"] = 0 })
	without(d, files, []int64{0, 3})
	b, err := os.ReadFile(filepath.Join(d.Dir, "deletes 2.puffin"))
	if err != nil {
		t.Fatal(err)
	}
	d.Put("deletes 2.puffin", string(b[4:48]))
	check(t, d.Name(), fileA+" without [0 3]; "+fileB+filesCD)
	// That of a file that is gone says nothing.
	d, files = deleting(t, 3)
	d.Keep = true
	without(d, files, []int64{0, 3}, []int64{4})
	d.Commit(laketest.Remove(files[0]))
	check(t, d.Name(), "7000000003: "+fileB+" without [4]"+filesCD)
}

// A byte of a vector that is another is noticed.
func TestDamagedVectors(t *testing.T) {
	for at, want := range map[int]string{4: "bytes of a deletion vector", 8: "the checksum", 20: "the checksum", -1: "the checksum"} {
		d, files := deleting(t, 3)
		without(d, files, []int64{0, 3})
		b, err := os.ReadFile(filepath.Join(d.Dir, "deletes 2.puffin"))
		if err != nil {
			t.Fatal(err)
		}
		if at < 0 {
			at = bytes.LastIndex(b, []byte("PFA1{}")) - 1
		}
		b[at] ^= 1
		d.Put("deletes 2.puffin", string(b))
		check(t, d.Name(), want)
	}
}

// Keys delete rows of older files of the partition, or of all older files if the delete file is of no partition.
func TestEquality(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(e, file map[string]any)
		by   string
		than []string
	}{
		"partition":    {func(_, _ map[string]any) {}, "id", []string{"a", "b"}},
		"other":        {func(_, file map[string]any) { file["partition"] = map[string]any{"by 0": 5} }, "id", nil},
		"second":       {func(_, file map[string]any) { file["partition"] = map[string]any{"by 0": 1} }, "id", []string{"c"}},
		"same age":     {func(e, _ map[string]any) { e["status"], e["sequence_number"] = 0, 1 }, "id", nil},
		"older":        {func(e, _ map[string]any) { e["status"], e["sequence_number"] = 0, 0 }, "id", nil},
		"no partition": {func(_, _ map[string]any) {}, "", []string{"a", "b", "c"}},
		"void":         {func(_, _ map[string]any) {}, "void(id)", []string{"a", "b", "c"}},
		"all same age": {func(e, _ map[string]any) { e["status"], e["sequence_number"] = 0, 1 }, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			for _, of := range []string{"a", "b", "c"} {
				d, files := deleting(t, 2)
				d.Commit(laketest.Remove(files[3]))
				for i, f := range files[:3] {
					if f.Name != of+".parquet" {
						d.Commit(laketest.Remove(files[i]))
					}
				}
				if c.by != "id" {
					d.By = d.By[:0]
				}
				if c.by == "void(id)" {
					d.By = []laketest.By{{Source: 1, ID: 1000, Transform: "void", Name: "by 0"}}
				}
				var values []any
				if len(d.By) > 0 {
					values = []any{0}
				}
				if c.by == "void(id)" {
					values[0] = nil
				}
				moved(d, func(e, file map[string]any) {
					file["content"], file["equality_ids"] = 2, []any{1}
					c.edit(e, file)
				})
				d.Commit(d.Add("k.parquet", "K", nil, values...))
				want := fmt.Sprintf("%s.parquet id=%d\n", of, map[string]int{"c": 1}[of])
				if slices.Contains(c.than, of) {
					want = strings.TrimSuffix(want, "\n") + " without keys [1] of k.parquet\n"
				}
				check(t, d.Name(), want)
			}
		})
	}
}

// Keys delete no rows of files whose values are elsewhere, unless both may have NULLs.
func TestKeysApart(t *testing.T) {
	integers := func(lo, hi int) [2][]byte {
		return [2][]byte{laketest.SingleValue("long", lo), laketest.SingleValue("long", hi)}
	}
	for name, c := range map[string]struct {
		bounds [2][]byte
		nulls  any // of the data file
		keys   *laketest.IcebergKeys
		apart  bool
	}{
		"below":       {integers(10, 20), 0, &laketest.IcebergKeys{IDs: []int{1}, Bounds: map[int][2][]byte{1: integers(0, 9)}}, true},
		"above":       {integers(10, 20), 0, &laketest.IcebergKeys{IDs: []int{1}, Bounds: map[int][2][]byte{1: integers(21, 30)}}, true},
		"least":       {integers(10, 20), 0, &laketest.IcebergKeys{IDs: []int{1}, Bounds: map[int][2][]byte{1: integers(0, 10)}}, false},
		"most":        {integers(10, 20), 0, &laketest.IcebergKeys{IDs: []int{1}, Bounds: map[int][2][]byte{1: integers(20, 30)}}, false},
		"an int":      {[2][]byte{laketest.SingleValue("int", -5), laketest.SingleValue("int", -1)}, 0, &laketest.IcebergKeys{IDs: []int{1}, Bounds: map[int][2][]byte{1: integers(0, 10)}}, true},
		"one of two":  {integers(10, 20), 0, &laketest.IcebergKeys{IDs: []int{2, 1}, Bounds: map[int][2][]byte{1: integers(0, 9)}}, true},
		"NULLs here":  {integers(10, 20), 1, &laketest.IcebergKeys{IDs: []int{1}, Bounds: map[int][2][]byte{1: integers(0, 9)}}, true},
		"NULLs":       {integers(10, 20), 1, &laketest.IcebergKeys{IDs: []int{1}, Bounds: map[int][2][]byte{1: integers(0, 9)}, Nulls: 1}, false},
		"NULLs there": {integers(10, 20), nil, &laketest.IcebergKeys{IDs: []int{1}}, false},
		"swapped":     {integers(20, 10), 0, &laketest.IcebergKeys{IDs: []int{1}, Bounds: map[int][2][]byte{1: integers(0, 9)}}, false},
		"texts":       {[2][]byte{[]byte("a"), []byte("b")}, 0, &laketest.IcebergKeys{IDs: []int{2}, Bounds: map[int][2][]byte{2: {[]byte("c"), []byte("d")}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := laketest.NewIceberg(t, 2, schema)
			id := slices.Min(c.keys.IDs)
			onEntry(d, "a.parquet", func(_, file map[string]any) {
				file["lower_bounds"], file["upper_bounds"] = []any{map[string]any{"key": id, "value": c.bounds[0]}}, []any{map[string]any{"key": id, "value": c.bounds[1]}}
				if c.nulls != nil {
					file["null_value_counts"] = []any{map[string]any{"key": id, "value": c.nulls}}
				}
			})
			d.Commit(d.Add("a.parquet", "A", nil))
			d.Edit = nil
			c.keys.Name, c.keys.Spec = "k.parquet", -1
			d.Commit(c.keys)
			want := "a.parquet\n"
			if !c.apart {
				want = fmt.Sprintf("a.parquet without keys %v of k.parquet\n", slices.Sorted(slices.Values(c.keys.IDs)))
			}
			check(t, d.Name(), want)
		})
	}
}

// Files of keys have the same identity wherever the table is, and another one in another directory of it, whatever
// their last parts are, and with another size.
func TestKeysNamed(t *testing.T) {
	named := func(k laketest.IcebergKeys) (is string) {
		d := laketest.NewIceberg(t, 2, schema)
		d.Commit(d.Add("a.parquet", "A", nil))
		k.IDs, k.Spec = []int{1}, -1
		d.Commit(&k)
		n, err := lake.ParseName(d.Name())
		if err != nil {
			t.Fatal(err)
		}
		s, err := iceberg.Open(t.Context(), storage.Local(), n, false)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Files(t.Context(), nil, func(f *lake.File) error {
			is = f.Deleted.Named
			return nil
		})
		if err != nil || is == "" {
			t.Fatal(is, err)
		}
		return is
	}
	one := laketest.IcebergKeys{Name: "one/k.parquet", Size: 5, Rows: 2}
	if a, b := named(one), named(one); a != b {
		t.Errorf("%s and %s are the same files of two tables", a, b)
	}
	for _, other := range []laketest.IcebergKeys{{Name: "two/k.parquet", Size: 5, Rows: 2}, {Name: "one/k.parquet", Size: 6, Rows: 2}, {Name: "one/k.parquet", Size: 5, Rows: 3}} {
		if named(one) == named(other) {
			t.Errorf("%+v and %+v are the same", one, other)
		}
	}
}

// moved makes the data file k.parquet of the next snapshot a delete file.
func moved(d *laketest.Iceberg, change func(e, file map[string]any)) {
	version := -1
	d.Edit = func(what string, of map[string]any) {
		switch what {
		case "entry":
			if file := of["data_file"].(map[string]any); strings.HasSuffix(file["file_path"].(string), "/k.parquet") {
				version = 0
				change(of, file)
			}
		case "list":
			if version == 0 && of["added_files_count"] == 1 {
				of["content"] = 1
			}
		}
	}
}

// Random deletions in files of several partitions are those that are read.
func TestRandomDeletes(t *testing.T) {
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 9))
		d, files := deleting(t, 2+int(seed%2))
		for range 8 {
			if d.Keep = r.IntN(2) == 0 && d.Format == 2; r.IntN(8) == 0 && d.Format == 2 {
				d.Format, d.Keep = 3, false
			}
			want := ""
			var rows [][]int64
			for i, f := range files {
				var now []int64
				if d.Keep {
					now = slices.Clone(f.Deleted)
				}
				for range r.IntN(5) {
					now = append(now, r.Int64N(20)<<(r.IntN(3)*16))
				}
				slices.Sort(now)
				now = slices.Compact(now)
				files[i].Deleted = now
				rows = append(rows, now)
				want += fmt.Sprintf("; %s id=%d", f.Name, i/2)
				if len(now) > 0 {
					want += fmt.Sprint(" without ", now)
				}
			}
			without(d, files, rows...)
			got, err := described(t.Context(), storage.Local(), d.Name(), nil, false)
			if _, got, _ := strings.Cut(strings.ReplaceAll(got, " without []", ""), ": "); err != nil || "; "+got != want {
				t.Fatalf("seed %d: got  %s, %v\nwant %s", seed, got, err, want)
			}
		}
	}
}
