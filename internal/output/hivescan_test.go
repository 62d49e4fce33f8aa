package output

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	v15 "github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/rowfilter"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
)

// days writes a log of two days, of 20 rows each, and returns its directory.
func days(t *testing.T, ext string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "log")
	for i, day := range []string{"dt=2024-01-01/c=NO", "dt=2024-01-02/c=__HIVE_DEFAULT_PARTITION__"} {
		var ids []int64
		for n := range 20 {
			ids = append(ids, int64(20*i+n))
		}
		sourcetest.Write(t, filepath.Join(dir, day, "a"+ext), 10, sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "id", Values: ids}))
	}
	return dir
}

// hiveRows renders the rows of files with their columns.
func hiveRows(t *testing.T, files []*source.File, columns []int) (rows []string) {
	t.Helper()
	for _, f := range files {
		for g := range f.NumGroups() {
			for rec, err := range rowfilter.Read(t.Context(), f, g, columns) {
				if err != nil {
					t.Fatal(err)
				}
				rows = append(rows, sourcetest.Rows(rec)...)
			}
		}
	}
	return rows
}

// TestHiveColumns: every format has the columns of its path after its own, in any
// selection and order.
func TestHiveColumns(t *testing.T) {
	for _, ext := range []string{".parquet", ".arrow", ".csv"} {
		dir := days(t, ".parquet")
		if ext != ".parquet" {
			dir = t.TempDir()
		}
		switch ext {
		case ".arrow":
			dir = days(t, ext)
		case ".csv":
			for i, day := range []string{"dt=2024-01-01/c=NO", "dt=2024-01-02/c=__HIVE_DEFAULT_PARTITION__"} {
				text := "id\n"
				for n := range 20 {
					text += fmt.Sprintln(20*i + n)
				}
				path := filepath.Join(dir, day, "a.csv")
				if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
					t.Fatal(err)
				}
				sourcetest.Put(t, path, text)
			}
		}
		files := roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Hive: dataset.HiveAuto, Text: true, Types: map[string]arrow.DataType{"id": arrow.PrimitiveTypes.Int64}}}, dir)
		sourcetest.Equal(t, ext+" types", fmt.Sprint(files[0].Schema().Field(0).Type, files[0].Schema().Field(1), files[0].Schema().Field(2)), "int64 dt: type=date32, nullable c: type=utf8, nullable")
		sourcetest.Equal(t, ext+" stored", files[0].StoredColumns(), 1)
		rows := hiveRows(t, files, nil)
		if len(rows) != 40 || !strings.Contains(rows[3], "3") || !strings.Contains(rows[3], "2024-01-01") || !strings.Contains(rows[3], "NO") || strings.Contains(rows[23], "NO") {
			t.Errorf("%s: %d rows, %v", ext, len(rows), rows)
		}
		some := hiveRows(t, files, []int{2, 0})
		if len(some) != 40 || strings.Contains(some[3], "2024") || !strings.HasPrefix(some[3], "NO") {
			t.Errorf("%s: %v", ext, some[3])
		}
		if only := hiveRows(t, files, []int{1}); len(only) != 40 {
			t.Errorf("%s: %d rows of a constant", ext, len(only))
		}
		off := roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Hive: dataset.HiveOff, Text: true}}, dir)
		sourcetest.Equal(t, ext+" off", off[0].Schema().NumFields(), 1)
	}
}

// scanTo writes the rows with even ids of a log.
func scanTo(t *testing.T, out Destination, opts keyscan.Options, files []*source.File) dataset.Written {
	t.Helper()
	var even []int64
	for i := range int64(20) {
		even = append(even, 2*i)
	}
	opts.Match = []dataset.Match{{Filter: (*codec.Filter)(roomtest.ExactOf("id", even...))}}
	s, err := keyscan.New(opts, files...)
	if err != nil {
		t.Fatal(err)
	}
	out.Run = &Run{Options: []string{"a"}, Log: files}
	out.Result, out.WriteEmpty = source.ResultCandidates, true
	w, err := out.WriteScan(t.Context(), s, source.Split(files, dataset.Shard{}), files, nil)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestHiveOutputs: one file has the columns of paths; a directory mirrors the paths
// instead, unless they are chosen or Base takes them away, and reads the same.
func TestHiveOutputs(t *testing.T) {
	for _, in := range []string{".parquet", ".arrow"} {
		dir := days(t, in)
		for _, c := range []struct {
			name    string
			out     string
			base    string
			columns []string
			schema  dataset.SchemaMode
			want    string
		}{
			{"a file", "o.parquet", "", nil, "", "id dt c"},
			{"an Arrow file", "o.arrow", "", nil, "", "id dt c"},
			{"chosen", "o.parquet", "", []string{"c", "id"}, "", "c id"},
			{"a directory", "o/", "", nil, "", "id"},
			{"a directory, chosen", "o/", "", []string{"id", "dt"}, "", "id dt"},
			{"a directory of one schema", "o/", "", nil, dataset.UnionByName, "id"},
			{"a union in a file", "o.parquet", "", nil, dataset.UnionByName, "id dt c"},
			{"a strict directory", "o/", "", nil, dataset.Strict, "id"},
			{"Arrow files", "o/", "", nil, "", "id"},
			{"from the base", "o/", dir + "/dt=2024-01-01", nil, "", "id dt"},
		} {
			if in == ".arrow" && c.schema == dataset.UnionByName {
				continue
			}
			name := dir
			if c.base != "" {
				name = c.base
			}
			files := roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Hive: dataset.HiveAuto, Base: c.base}}, name)
			out := Destination{Output: Output{Name: filepath.Join(t.TempDir(), filepath.Base(c.out))}}
			if strings.HasSuffix(c.out, "/") {
				out.Name += "/"
			}
			if c.name == "Arrow files" {
				out.Format = dataset.ArrowFile
			}
			w := scanTo(t, out, keyscan.Options{ScanOptions: keyscan.ScanOptions{Columns: c.columns, Schema: c.schema}}, files)
			written := out.Name
			if strings.HasSuffix(out.Name, "/") {
				written += w.Files[0].Name
			}
			var got []string
			for _, f := range roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Hive: dataset.HiveOff}}, written)[0].Schema().Fields() {
				got = append(got, f.Name)
			}
			sourcetest.Equal(t, in+", "+c.name, strings.Join(got, " "), c.want)
			sourcetest.Equal(t, in+", "+c.name+": rows", w.Rows, int64(len(files)*10))
			if c.columns != nil || c.base != "" {
				continue
			}
			var want []string
			for i, r := range hiveRows(t, files, nil) {
				if i%2 == 0 {
					want = append(want, r)
				}
			}
			again := roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Hive: dataset.HiveAuto}}, out.Name)
			sourcetest.Equal(t, in+", "+c.name+" read again", hiveRows(t, again, nil), want)
		}
	}
}

// TestHiveMetadata: what describes a file's columns holds for an output that mirrors
// its path, but not for one with further columns.
func TestHiveMetadata(t *testing.T) {
	dir := t.TempDir()
	kv := []meta.KeyValue{{Key: "pandas", Value: "{}"}, {Key: "owner", Value: "me"}}
	from := emptyFile(t, schemaOf(t, "required int64 id\n"), nil, kv).Name()
	to := filepath.Join(dir, "a=1", "x.parquet")
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		t.Fatal(err)
	}
	sourcetest.Put(t, to, sourcetest.Get(t, from))
	files := roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Hive: dataset.HiveAuto}}, dir)
	for name, want := range map[string]string{"o/": "{} me", "o.parquet": " me"} {
		out := Destination{Output: Output{Name: filepath.Join(t.TempDir(), filepath.Base(name))}}
		if name == "o/" {
			out.Name += "/"
		}
		w := scanTo(t, out, keyscan.Options{}, files)
		written := out.Name
		if name == "o/" {
			written += w.Files[0].Name
		}
		s := roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Hive: dataset.HiveOff}}, written)[0].Schema()
		sourcetest.Equal(t, name, sourcetest.Metadata(s, "pandas")+" "+sourcetest.Metadata(s, "owner"), want)
		sourcetest.Equal(t, name, sourcetest.Metadata(s, source.MetaHive), `["a:int64"]`)
	}
}

// TestHiveAgrees: a column that is in the file and in its path must have one value.
func TestHiveAgrees(t *testing.T) {
	for _, ext := range []string{".parquet", ".arrow"} {
		for _, c := range []struct {
			dir    string
			values any
			want   string // of the error
		}{
			{"k=5", []int64{5, 5}, ""},
			{"k=5", []string{"5", "5"}, ""},
			{"k=05", []string{"05", "05"}, ""},
			{"k=5", []int64{5, 6}, `column k: mismatch: the file's column and the directory of that name: want "5" in all rows, got "6" (use Hive off`},
			{"k=5", []int64{4, 6}, `got "4"`},
			{"k=__HIVE_DEFAULT_PARTITION__", []int64{5, 5}, `want NULL in all rows, got "5"`},
			{"k=x", []int64{5, 5}, "values of type int64"},
			{"k=5", []any{5, nil}, `want "5" in all rows, got "(null)"`},
			{"k=__HIVE_DEFAULT_PARTITION__", []any{nil, nil}, ""},
			{"k=__HIVE_DEFAULT_PARTITION__", []any{nil, 5}, `want NULL in all rows, got "5"`},
			{"K=5", []int64{6, 6}, ""},
		} {
			dir := t.TempDir()
			sourcetest.Write(t, filepath.Join(dir, c.dir, "a"+ext), 2, sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "k", Values: c.values}))
			files, err := source.Open(t.Context(), []string{dir}, source.Opening{OpenOptions: source.OpenOptions{Mem: sourcetest.Checked(t)}})
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s %v: %v, want %q", c.dir, c.values, err, c.want)
			}
			if err != nil {
				continue
			}
			want := []string{"k"}
			if c.dir[0] == 'K' {
				want = append(want, "K")
				_, err := source.Open(t.Context(), []string{dir}, source.Opening{OpenOptions: source.OpenOptions{IgnoreCase: true}})
				sourcetest.Says(t, "another case", err, nil, `want "5"`)
			}
			var got []string
			for _, f := range files[0].Schema().Fields() {
				got = append(got, f.Name)
			}
			sourcetest.Equal(t, c.dir, got, want)
			if err := source.Close(files); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestHiveStoredType: a condition leaves files out by a column that they store, too, if
// it means the same for the types of the file and of the path.
func TestHiveStoredType(t *testing.T) {
	for _, c := range []struct {
		values func(n int) any
		names  [2]string
		where  string
		want   string // of the error
	}{
		{func(n int) any { return []int32{int32(n)} }, [2]string{"k=5", "k=6"}, "k = 5", ""},
		{func(n int) any { return []string{fmt.Sprint(n)} }, [2]string{"k=5", "k=6"}, "k = '5'", "want int64 as in the path, got utf8"},
	} {
		dir := t.TempDir()
		for i, name := range c.names {
			sourcetest.Write(t, filepath.Join(dir, name, "a.parquet"), 1, sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "k", Values: c.values(5 + i)}))
		}
		excluded := 0
		files, err := source.Open(t.Context(), []string{dir}, source.Opening{OpenOptions: source.OpenOptions{Where: c.where}, Excluded: func(string) { excluded++ }})
		if c.want != "" {
			sourcetest.Says(t, c.where, err, fault.ErrMismatch, c.want)
		} else if err != nil || excluded != 1 || len(files) != 1 {
			t.Errorf("%s: %d files, %d excluded, %v", c.where, len(files), excluded, err)
		}
		if err := source.Close(files); err != nil {
			t.Error(err)
		}
	}
}

// TestHiveProof: bounds alone prove a value only if the writer counts empty strings
// among them. Arrow's Go writer is not known to.
func TestHiveProof(t *testing.T) {
	if bits.UintSize < 64 {
		t.Skip("arrow/go's Parquet writer panics, because of an unaligned counter")
	}
	dir := t.TempDir()
	rec := sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "c", Values: []string{"NO", "NO"}})
	var b bytes.Buffer
	w, err := pqarrow.NewFileWriter(rec.Schema(), &b, v15.NewWriterProperties(), pqarrow.DefaultWriterProps())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Write(rec), w.Close()); err != nil {
		t.Fatal(err)
	}
	value := rec.NewSlice(0, 1)
	defer value.Release()
	for name, want := range map[string]bool{
		sourcetest.Put(t, filepath.Join(dir, "arrow.parquet"), b.String()):      false,
		sourcetest.Write(t, filepath.Join(dir, "own", "own.parquet"), 100, rec): true,
	} {
		if got := roomtest.Open(t, source.Opening{}, name)[0].Parquet().Holds(0, 0, value.Column(0)); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestHiveDigest: types and values of columns that come from paths identify a run.
func TestHiveDigest(t *testing.T) {
	dir := hiveTree(t, "a/dt=1/x.parquet", "b/dt=2/x.parquet")
	seen := map[string]string{}
	for _, c := range []source.Opening{
		{OpenOptions: source.OpenOptions{Hive: dataset.HiveOff}}, {}, {OpenOptions: source.OpenOptions{HiveTypes: "dt:string"}}, {OpenOptions: source.OpenOptions{Base: filepath.Join(dir, "a", "dt=1")}},
	} {
		for _, name := range []string{"a/dt=1", "b/dt=2"} {
			if c.Base != "" {
				c.Base = filepath.Join(dir, name)
			}
			files, err := source.Open(t.Context(), []string{filepath.Join(dir, name)}, c)
			if err != nil {
				t.Fatal(err)
			}
			defer source.Close(files)
			sum, known, err := (&Run{Options: []string{"a"}, Log: files}).Digest()
			if err != nil || !known {
				t.Fatal(err)
			}
			what := fmt.Sprint(c.Hive, c.HiveTypes, c.Base, name)
			if other, ok := seen[string(sum[:])]; ok {
				t.Errorf("%s and %s have one digest", what, other)
			}
			seen[string(sum[:])] = what
		}
	}
}

// TestHiveTypesChange: the error about an output that was written with other types names
// these, and the option that keeps them.
func TestHiveTypesChange(t *testing.T) {
	dir := hiveTree(t, "hour=10/x.parquet")
	for _, name := range []string{"o.parquet", "o/"} {
		out := Destination{Output: Output{Name: filepath.Join(t.TempDir(), filepath.Base(name))}, Result: source.ResultCandidates}
		if name == "o/" {
			out.Name += "/"
		}
		scanTo(t, out, keyscan.Options{}, roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Hive: dataset.HiveAuto}}, dir))
		sourcetest.Write(t, filepath.Join(dir, "hour=08", "x.parquet"), 1, sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "id", Values: []int64{1}}))
		files := roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Hive: dataset.HiveAuto}}, dir)
		out.Run = &Run{Options: []string{"a"}, Log: files}
		_, err := out.Pending(t.Context())
		sourcetest.Says(t, name, err, ErrExists, "column hour", "want int64, with which the output was written, got string", "HiveTypes hour:int64")
		out.Force, out.owner = true, nil
		if _, err := out.Pending(t.Context()); err != nil {
			t.Errorf("%s, Force: %v", name, err)
		}
		if name == "o/" {
			out.Run.Log = roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Hive: dataset.HiveAuto}}, filepath.Join(dir, "hour=08"))
			_, err := out.Pending(t.Context())
			sourcetest.Says(t, "another file beside it", err, ErrExists, "hour:int64")
		}
		if err := os.RemoveAll(filepath.Join(dir, "hour=08")); err != nil {
			t.Fatal(err)
		}
	}
}

// TestHiveSelection: constants are read for chosen rows like other columns.
func TestHiveSelection(t *testing.T) {
	f := roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Hive: dataset.HiveAuto}}, days(t, ".parquet"))[0]
	p := f.Parquet()
	for _, rows := range [][]uint32{{0}, {2, 3, 9}} {
		for rec, err := range p.ReadRows(t.Context(), 1, []int{1, 0}, rows) {
			if err != nil {
				t.Fatal(err)
			}
			ids := rec.Column(1).(*array.Int64).Int64Values()
			if int(rec.NumRows()) != len(rows) || ids[0] != 10+int64(rows[0]) || rec.Column(0).ValueStr(0) != "2024-01-01" {
				t.Errorf("%v", rec)
			}
		}
	}
	if !slices.Equal(p.Below([]int{2}), []int{2}) {
		t.Error(p.Below([]int{2}))
	}
}
