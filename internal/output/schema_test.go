package output

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	v15 "github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/compress"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/options"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
)

// Files here are written by arrow/go, and the expected rows are listed by hand.

// nullable returns a schema of nullable columns.
func nullable(fields ...arrow.Field) *arrow.Schema {
	for i := range fields {
		fields[i].Nullable = true
	}
	return arrow.NewSchema(fields, nil)
}

var (
	int8Type, int16Type, int32Type, int64Type = arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64
	textType                                  = arrow.BinaryTypes.String
)

// grown writes a log whose columns changed over time, and returns the directory.
func grown(t testing.TB) string {
	dir := t.TempDir()
	roomtest.Foreign(t, filepath.Join(dir, "2001.parquet"), nullable(
		arrow.Field{Name: "user", Type: int32Type}, arrow.Field{Name: "n", Type: int8Type}, arrow.Field{Name: "old", Type: textType},
	), `{"user":1,"n":10,"old":"x"},{"user":2,"n":20,"old":"y"},{"user":3,"old":null}`)
	roomtest.Foreign(t, filepath.Join(dir, "2002.parquet"), nullable(
		arrow.Field{Name: "new", Type: arrow.ListOf(int64Type)}, arrow.Field{Name: "user", Type: int64Type}, arrow.Field{Name: "n", Type: int16Type},
	), `{"user":1,"n":300,"new":[1,null]},{"user":5000000000,"n":-1,"new":[]},{"user":4,"n":5}`)
	roomtest.Foreign(t, filepath.Join(dir, "2003.parquet"), nullable(
		arrow.Field{Name: "at", Type: arrow.StructOf(arrow.Field{Name: "x", Type: int32Type, Nullable: true})}, arrow.Field{Name: "user", Type: int64Type},
	), `{"user":3,"at":{"x":7}},{"user":1,"at":{"x":null}},{"user":3,"at":null}`)
	return dir
}

// grownRows are the rows of grown with user 1, 3 or 5000000000, under the union's
// schema.
var grownRows = map[string][]string{
	"2001.parquet": {"1|10|x|(null)|(null)", "3|(null)|(null)|(null)|(null)"},
	"2002.parquet": {"1|300|(null)|[1,null]|(null)", "5000000000|-1|(null)|[]|(null)"},
	"2003.parquet": {"3|(null)|(null)|(null)|{\"x\":7}", "1|(null)|(null)|(null)|{\"x\":null}", "3|(null)|(null)|(null)|(null)"},
}

var grownFilter = roomtest.ExactOf("user", 1, 3, 5_000_000_000)

// writeScan scans the named files into the output.
func writeScan(t testing.TB, out Destination, opts keyscan.Options, names ...string) (dataset.Written, error) {
	t.Helper()
	if opts.Match == nil {
		opts.Match = []dataset.Match{{Filter: (*codec.Filter)(grownFilter)}}
	}
	if out.Result == "" {
		out.Result, out.Run = source.ResultExact, runOf(1)
	}
	logs := roomtest.Open(t, source.Opening{}, names...)
	s, err := keyscan.New(opts)
	if err != nil {
		return dataset.Written{}, err
	}
	for _, f := range logs {
		if err := s.Check(f); err != nil {
			return dataset.Written{}, err
		}
	}
	early := out.CheckSchemas(t.Context(), opts, logs)
	w, err := out.WriteScan(t.Context(), s, source.Split(logs, out.Shard), logs, nil)
	if early != nil && (err == nil || early.Error() != err.Error()) {
		t.Errorf("CheckSchemas: %v, WriteScan: %v", early, err)
	}
	return w, err
}

// typesOf renders the columns of a file.
func typesOf(s *arrow.Schema) string {
	var cols []string
	for _, f := range s.Fields() {
		cols = append(cols, f.Name+" "+f.Type.String())
	}
	return strings.Join(cols, ", ")
}

const grownTypes = "user int64, n int16, old utf8, " +
	"new list<element: int64, nullable>, at struct<x: int32>"

// plainTypes gives list elements their most common name.
func plainTypes(s *arrow.Schema) string {
	return strings.ReplaceAll(typesOf(s), "list: ", "element: ")
}

func TestUnionInOneFile(t *testing.T) {
	dir := grown(t)
	want := slices.Concat(grownRows["2001.parquet"], grownRows["2002.parquet"], grownRows["2003.parquet"])
	for _, threads := range []int{1, 4} {
		out := filepath.Join(t.TempDir(), "o.parquet")
		w, err := writeScan(t, Destination{Output: Output{Name: out}}, keyscan.Options{ScanOptions: keyscan.ScanOptions{Schema: dataset.UnionByName, Threads: threads}}, dir)
		if err != nil {
			t.Fatal(err)
		}
		sourcetest.Equal(t, "rows", w.Rows, 7)
		rows, schema := sourcetest.Contents(t, out)
		sourcetest.Equal(t, "columns", plainTypes(schema), grownTypes)
		sourcetest.Equal(t, "rows", strings.Join(rows, "\n"), strings.Join(want, "\n"))
		if sourcetest.Metadata(schema, "ARROW:schema") != "" {
			t.Error("the first file's Arrow schema describes all")
		}
	}
}

func TestUnionInADirectory(t *testing.T) {
	dir, out := grown(t), filepath.Join(t.TempDir(), "o")+"/"
	if _, err := writeScan(t, Destination{Output: Output{Name: out}}, keyscan.Options{ScanOptions: keyscan.ScanOptions{Schema: dataset.UnionByName}}, dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range grownRows {
		rows, schema := sourcetest.Contents(t, out+name)
		sourcetest.Equal(t, name, plainTypes(schema), grownTypes)
		sourcetest.Equal(t, name, strings.Join(rows, "\n"), strings.Join(want, "\n"))
	}
	// The output has one schema, so it can be scanned into one file.
	whole := filepath.Join(t.TempDir(), "whole.parquet")
	if _, err := writeScan(t, Destination{Output: Output{Name: whole}}, keyscan.Options{}, out); err != nil {
		t.Error(err)
	}
}

func TestUnionOfShardsAgrees(t *testing.T) {
	dir, out := grown(t), t.TempDir()
	const shards = 5 // of three row groups: some have nothing
	var parts []string
	for i := range uint32(shards) {
		name := filepath.Join(out, fmt.Sprint(i, ".parquet"))
		if _, err := writeScan(t, Destination{Output: Output{Name: name, Shard: dataset.Shard{Index: i, Of: shards}}}, keyscan.Options{ScanOptions: keyscan.ScanOptions{Schema: dataset.UnionByName}}, dir); err != nil {
			t.Fatal(err)
		}
		parts = append(parts, name)
		_, schema := sourcetest.Contents(t, name)
		sourcetest.Equal(t, name, plainTypes(schema), grownTypes)
	}
	whole := filepath.Join(t.TempDir(), "whole.parquet")
	if _, err := writeScan(t, Destination{Output: Output{Name: whole}}, keyscan.Options{ScanOptions: keyscan.ScanOptions{Schema: dataset.Strict}}, parts...); err != nil {
		t.Fatal(err)
	}
	rows, _ := sourcetest.Contents(t, whole)
	sourcetest.Equal(t, "rows", len(rows), 7)
}

func TestUnionOfSomeColumns(t *testing.T) {
	dir, out := grown(t), filepath.Join(t.TempDir(), "o.parquet")
	opts := keyscan.Options{ScanOptions: keyscan.ScanOptions{Schema: dataset.UnionByName, Columns: []string{"new", "n"}}}
	if _, err := writeScan(t, Destination{Output: Output{Name: out}}, opts, dir); err != nil {
		t.Fatal(err)
	}
	rows, schema := sourcetest.Contents(t, out)
	sourcetest.Equal(t, "columns", plainTypes(schema), "new list<element: int64, nullable>, n int16")
	sourcetest.Equal(t, "rows", strings.Join(rows, " "), "(null)|10 (null)|(null) [1,null]|300 []|-1 (null)|(null) (null)|(null) (null)|(null)")

	_, err := writeScan(t, Destination{Output: Output{Name: out, Force: true}}, keyscan.Options{ScanOptions: keyscan.ScanOptions{Schema: dataset.UnionByName, Columns: []string{"n", "nobody"}}}, dir)
	sourcetest.Says(t, "a column that no file has", err, fault.ErrNoColumn, "nobody", "there are user, n, old")
	_, err = writeScan(t, Destination{Output: Output{Name: out + "/"}}, keyscan.Options{ScanOptions: keyscan.ScanOptions{Columns: []string{"n"}}}, dir)
	sourcetest.Says(t, "a column that a file lacks, per file", err, nil, "2003.parquet", `"n"`)
}

func TestSchemaModes(t *testing.T) {
	dir := grown(t)
	for _, mode := range []dataset.SchemaMode{"", dataset.PerFile} {
		out := filepath.Join(t.TempDir(), "o") + "/"
		if _, err := writeScan(t, Destination{Output: Output{Name: out}}, keyscan.Options{ScanOptions: keyscan.ScanOptions{Schema: mode}}, dir); err != nil {
			t.Fatal(err)
		}
		rows, schema := sourcetest.Contents(t, out+"2002.parquet")
		sourcetest.Equal(t, "its own columns", plainTypes(schema), "new list<element: int64, nullable>, user int64, n int16")
		sourcetest.Equal(t, "its own rows", strings.Join(rows, " "), "[1,null]|1|300 []|5000000000|-1")
		if sourcetest.Metadata(schema, "ARROW:schema") == "" {
			t.Error("the file's Arrow schema is lost")
		}
	}
	for _, name := range []string{"o.parquet", "o/", "o.arrow", "-"} {
		for _, mode := range []dataset.SchemaMode{"", dataset.PerFile, dataset.Strict} {
			if name == "o/" && mode != dataset.Strict {
				continue
			}
			out := Destination{Output: Output{Name: name, Stdout: io.Discard, Shard: dataset.Shard{Index: 0, Of: 3}}} // a shard of one file
			if name != "-" {
				out.Name = filepath.Join(t.TempDir(), "x") + name
			}
			_, err := writeScan(t, out, keyscan.Options{ScanOptions: keyscan.ScanOptions{Schema: mode}}, dir)
			sourcetest.Says(t, name+" "+string(mode), err, fault.ErrMismatch, "schema", "2001.parquet", "2002.parquet", "Schema union")
		}
	}
	_, err := keyscan.New(keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(grownFilter)}}, Schema: "loose"}})
	sourcetest.Says(t, "an unknown mode", err, nil, "loose", "union")
}

func TestUnionRefusals(t *testing.T) {
	dir := grown(t)
	for _, name := range []string{"-", "o.arrow"} {
		out := Destination{Output: Output{Name: name, Stdout: io.Discard}}
		if name != "-" {
			out.Name = filepath.Join(t.TempDir(), name)
		}
		_, err := writeScan(t, out, keyscan.Options{ScanOptions: keyscan.ScanOptions{Schema: dataset.UnionByName}}, dir)
		sourcetest.Says(t, name, err, fault.ErrUnsupported, "unsupported", "Parquet")
	}
	out := Destination{Output: Output{Name: filepath.Join(t.TempDir(), "o.parquet")}}
	arrowFile := sourcetest.Write(t, filepath.Join(dir, "2004.arrow"), 10, sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "user", Values: []int64{1}}))
	_, err := writeScan(t, out, keyscan.Options{ScanOptions: keyscan.ScanOptions{Schema: dataset.UnionByName}}, dir)
	sourcetest.Says(t, "an Arrow file", err, fault.ErrUnsupported, "unsupported", "2004.arrow")
	if err := os.Remove(arrowFile); err != nil {
		t.Fatal(err)
	}
	roomtest.Foreign(t, filepath.Join(dir, "2004.parquet"), nullable(arrow.Field{Name: "user", Type: int64Type}, arrow.Field{Name: "n", Type: textType}), `{"user":1,"n":"1"}`)
	_, err = writeScan(t, out, keyscan.Options{ScanOptions: keyscan.ScanOptions{Schema: dataset.UnionByName}}, dir)
	sourcetest.Says(t, "text and numbers", err, fault.ErrMismatch, "2004.parquet", "column n", "2001.parquet")
	if _, err := writeScan(t, out, keyscan.Options{ScanOptions: keyscan.ScanOptions{Schema: dataset.UnionByName, Columns: []string{"user", "old"}}}, dir); err != nil {
		t.Errorf("columns that agree: %v", err)
	}
	sourcetest.Equal(t, "files left", sourcetest.Tree(t, filepath.Dir(out.Name)), []string{"o.parquet"})
}

func TestColumnsOfAnyCase(t *testing.T) {
	dir := t.TempDir()
	roomtest.Foreign(t, filepath.Join(dir, "1.parquet"), nullable(arrow.Field{Name: "user", Type: int64Type}, arrow.Field{Name: "n", Type: int64Type}), `{"user":1,"n":1}`)
	roomtest.Foreign(t, filepath.Join(dir, "2.parquet"), nullable(arrow.Field{Name: "user", Type: int64Type}, arrow.Field{Name: "N", Type: int64Type}), `{"user":1,"N":2}`)
	out := Destination{Output: Output{Name: filepath.Join(t.TempDir(), "o.parquet")}}
	_, err := writeScan(t, out, keyscan.Options{ScanOptions: keyscan.ScanOptions{Schema: dataset.UnionByName, IgnoreCase: true}}, dir)
	sourcetest.Says(t, "two spellings of a column", err, fault.ErrMismatch, "2.parquet", "column N", "n as in", "Schema per-file")
	_, err = writeScan(t, out, keyscan.Options{ScanOptions: keyscan.ScanOptions{Schema: dataset.UnionByName, IgnoreCase: true, Columns: []string{"USER", "User"}}}, dir)
	sourcetest.Says(t, "one column under two names", err, nil, "USER and User are the same column")
	_, err = writeScan(t, out, keyscan.Options{ScanOptions: keyscan.ScanOptions{IgnoreCase: true, Columns: []string{"USER", "User"}}}, dir)
	sourcetest.Says(t, "the same without a union", err, nil, "1.parquet", "USER and User are the same column")
	if _, err := writeScan(t, out, keyscan.Options{ScanOptions: keyscan.ScanOptions{Schema: dataset.UnionByName, IgnoreCase: true, Columns: []string{"USER"}}}, dir); err != nil {
		t.Fatal(err)
	}
	_, schema := sourcetest.Contents(t, out.Name)
	sourcetest.Equal(t, "columns", plainTypes(schema), "user int64")
}

func TestUnionOfDurations(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, typ arrow.DataType) string {
		d, _, err := array.FromJSON(memory.DefaultAllocator, typ, strings.NewReader("[5]"))
		if err != nil {
			t.Fatal(err)
		}
		defer d.Release()
		return sourcetest.Write(t, filepath.Join(dir, name), 1, sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "user", Values: []int64{1}}, sourcetest.Col{Name: "d", Values: d}))
	}
	// Parquet has integers for both; the Arrow schema says what they mean.
	a, b := file("a.parquet", arrow.FixedWidthTypes.Duration_s), file("b.parquet", arrow.FixedWidthTypes.Duration_ms)
	c, same := file("c.parquet", int64Type), file("d.parquet", arrow.FixedWidthTypes.Duration_s)
	out := Destination{Output: Output{Name: filepath.Join(t.TempDir(), "o.parquet")}}
	for _, other := range []string{b, c} {
		_, err := writeScan(t, out, keyscan.Options{ScanOptions: keyscan.ScanOptions{Schema: dataset.UnionByName}}, a, other)
		sourcetest.Says(t, "durations of two units", err, fault.ErrMismatch, "column d", "duration[s]")
	}
	if _, err := writeScan(t, out, keyscan.Options{ScanOptions: keyscan.ScanOptions{Schema: dataset.UnionByName}}, a, same); err != nil {
		t.Fatal(err)
	}
	pf := roomtest.Open(t, source.Opening{}, out.Name)
	sourcetest.Equal(t, "the description that all share", pf[0].Schema().Field(1).Type.String(), "duration[s]")
}

// TestStrictWhicheverDiffers: of files that should be alike, the one that differs is found wherever
// it stands, by its types alone or its order of columns alone.
func TestStrictWhicheverDiffers(t *testing.T) {
	schemas := map[string]*arrow.Schema{
		"int64":   nullable(arrow.Field{Name: "user", Type: int64Type}, arrow.Field{Name: "n", Type: int64Type}),
		"int32":   nullable(arrow.Field{Name: "user", Type: int64Type}, arrow.Field{Name: "n", Type: int32Type}),
		"swapped": nullable(arrow.Field{Name: "n", Type: int64Type}, arrow.Field{Name: "user", Type: int64Type}),
	}
	for _, c := range []struct {
		kinds, differs string // a file that is not like the first
	}{
		{"int64 int64 int64", ""}, {"int32 int32", ""}, {"swapped swapped", ""},
		{"int32 int64 int64", "1.parquet"}, {"int64 int32 int64", "1.parquet"}, {"int64 int64 int32", "2.parquet"},
		{"int64 int64 int64 swapped", "3.parquet"}, {"swapped swapped int64", "2.parquet"},
	} {
		dir := t.TempDir()
		for i, kind := range strings.Fields(c.kinds) {
			roomtest.Foreign(t, filepath.Join(dir, fmt.Sprint(i, ".parquet")), schemas[kind], `{"user":1,"n":2}`)
		}
		for _, name := range []string{"o.parquet", "o.arrow"} {
			out := Destination{Output: Output{Name: filepath.Join(t.TempDir(), name)}}
			_, err := writeScan(t, out, keyscan.Options{ScanOptions: keyscan.ScanOptions{Schema: dataset.Strict}}, dir)
			if c.differs == "" {
				sourcetest.Equal(t, c.kinds+" into "+name, err, nil)
				continue
			}
			sourcetest.Says(t, c.kinds+" into "+name, err, fault.ErrMismatch, "schema", c.differs, "0.parquet")
		}
	}
}

// TestUnionOfDescriptions: what programs say of the columns is kept if the files of the log agree
// on it, whichever of them differs, since the columns of all come under one schema.
func TestUnionOfDescriptions(t *testing.T) {
	const unsaid = "none" // no stored schema
	dict := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int16, ValueType: textType}
	types := map[string]arrow.DataType{"string": textType, "large": arrow.BinaryTypes.LargeString, "dict": dict, unsaid: textType}
	file := func(path, kind string, user int64) {
		t.Helper()
		word, _, err := array.FromJSON(memory.DefaultAllocator, types[kind], strings.NewReader(`["x"]`))
		if err != nil {
			t.Fatal(err)
		}
		defer word.Release()
		rec := sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "user", Values: []int64{user}}, sourcetest.Col{Name: "s", Values: word})
		defer rec.Release()
		var b bytes.Buffer
		w, err := arrowparquet.NewParquetWriter(&b, rec.Schema(), arrowparquet.WriterOptions{Metadata: map[string]string{"pandas": "{}", "owner": "me"}})
		if err != nil {
			t.Fatal(err)
		}
		err = w.Write(rec)
		if _, _, bad := w.Close(); errors.Join(err, bad) != nil {
			t.Fatal(err, bad)
		}
		content := b.String()
		if kind == unsaid { // under another key, no reader knows it
			if strings.Count(content, arrowparquet.SchemaKey) != 1 {
				t.Fatal("not one stored schema")
			}
			content = strings.Replace(content, arrowparquet.SchemaKey, strings.ToLower(arrowparquet.SchemaKey), 1)
		}
		sourcetest.Put(t, path, content)
	}
	for _, c := range []struct {
		kinds string
		typ   string // that readers find
		kept  bool
	}{
		{"large", "large_utf8", true},
		{"large large", "large_utf8", true},
		{"large large large", "large_utf8", true},
		{"dict dict", "dictionary<values=utf8, indices=int16, ordered=false>", true},
		{"large string", "utf8", false},
		{"string large", "utf8", false},
		{"large large string", "utf8", false},
		{"large string large", "utf8", false},
		{"string large large", "utf8", false},
		{"large large none", "utf8", false},
		{"none large large", "utf8", false},
		{"dict dict dict string", "utf8", false},
		{"large dict", "utf8", false},
		{"none none", "utf8", true},
	} {
		dir, want := t.TempDir(), 0
		for i, kind := range strings.Fields(c.kinds) {
			file(filepath.Join(dir, fmt.Sprint(i, ".parquet")), kind, []int64{1, 3}[i%2])
			want++
		}
		check := func(what, name string) int {
			f := roomtest.Open(t, source.Opening{}, name)[0]
			p, ok := f.Table().(*arrowparquet.Parquet)
			if !ok {
				t.Fatalf("%s is not read as Parquet", name)
			}
			sourcetest.Equal(t, what+": type", p.CodedSchema().Field(1).Type.String(), c.typ)
			sourcetest.Equal(t, what+": a stored schema", f.StoredSchema() != "", c.kept && !strings.Contains(c.kinds, unsaid))
			kv := keyNames(p.File().Metadata.KeyValueMetadata)
			sourcetest.Equal(t, what+": pandas", strings.Contains(kv, "pandas"), c.kept)
			sourcetest.Equal(t, what+": owner", strings.Contains(kv, "owner"), true)
			return int(f.Rows())
		}
		one := filepath.Join(t.TempDir(), "o.parquet")
		if _, err := writeScan(t, Destination{Output: Output{Name: one}}, keyscan.Options{ScanOptions: keyscan.ScanOptions{Schema: dataset.UnionByName}}, dir); err != nil {
			t.Fatal(err)
		}
		sourcetest.Equal(t, c.kinds+": rows of one file", check(c.kinds+" in one file", one), want)
		parts := filepath.Join(t.TempDir(), "out") + "/"
		if _, err := writeScan(t, Destination{Output: Output{Name: parts}}, keyscan.Options{ScanOptions: keyscan.ScanOptions{Schema: dataset.UnionByName}}, dir); err != nil {
			t.Fatal(err)
		}
		rows := 0
		for i := range want {
			name := fmt.Sprint(i, ".parquet")
			rows += check(c.kinds+" in "+name, parts+name)
		}
		sourcetest.Equal(t, c.kinds+": rows of a directory", rows, want)
	}
}

func TestPinnedSchema(t *testing.T) {
	dir := grown(t)
	pin := func(fields ...arrow.Field) *dataset.PinnedSchema {
		t.Helper()
		p, err := ReadSchema(t.Context(), roomtest.Foreign(t, filepath.Join(t.TempDir(), "pin.parquet"), nullable(fields...), ""), source.Opening{})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	list := arrow.Field{Name: "new", Type: arrow.ListOf(int64Type)}
	at := arrow.Field{Name: "at", Type: arrow.StructOf(arrow.Field{Name: "x", Type: int64Type, Nullable: true})}
	user, n := arrow.Field{Name: "user", Type: int64Type}, arrow.Field{Name: "n", Type: int32Type}
	old, later := arrow.Field{Name: "old", Type: textType}, arrow.Field{Name: "later", Type: textType}
	full := pin(later, at, user, list, n, old)
	out := filepath.Join(t.TempDir(), "o.parquet")
	do := func(p *dataset.PinnedSchema, columns ...string) error {
		_, err := writeScan(t, Destination{Output: Output{Name: out, Force: true}}, keyscan.Options{ScanOptions: keyscan.ScanOptions{Schema: dataset.UnionByName, Pinned: p, Columns: columns}}, dir)
		return err
	}
	if err := do(full); err != nil {
		t.Fatal(err)
	}
	rows, schema := sourcetest.Contents(t, out)
	sourcetest.Equal(t, "columns", plainTypes(schema), "later utf8, at struct<x: int64>, user int64, new list<element: int64, nullable>, n int32, old utf8")
	sourcetest.Equal(t, "a row", rows[2], "(null)|(null)|1|[1,null]|300|(null)")
	sourcetest.Equal(t, "a row", rows[4], "(null)|{\"x\":7}|3|(null)|(null)|(null)")
	if err := do(full, "later", "n"); err != nil {
		t.Fatal(err)
	}
	rows, _ = sourcetest.Contents(t, out)
	sourcetest.Equal(t, "rows", strings.Join(rows, " "), "(null)|10 (null)|(null) (null)|300 (null)|-1 (null)|(null) (null)|(null) (null)|(null)")

	sourcetest.Says(t, "a column that is not in it", do(pin(user, n, list, at)), fault.ErrMismatch, "2001.parquet", "column old")
	sourcetest.Says(t, "a type too narrow", do(pin(user, arrow.Field{Name: "n", Type: int8Type}, old, list, at)), fault.ErrMismatch, "2002.parquet", "column n")
	sourcetest.Says(t, "a column to keep that is not in it", do(pin(user, list, n), "user", "old"), fault.ErrNoColumn, `no column "old"`, "the given schema")
	if err := do(pin(user, n), "user", "n"); err != nil {
		t.Errorf("a schema of the columns to keep: %v", err)
	}
	footer := func(p *dataset.PinnedSchema) []byte { _, b := (*options.Schema)(p).Of(); return b }
	if b := footer(full); len(b) == 0 || bytes.Equal(b, footer(pin(user, n))) {
		t.Errorf("two schemas are told by the same %d bytes", len(b))
	}
	_, err := ReadSchema(t.Context(), sourcetest.Write(t, filepath.Join(t.TempDir(), "x.arrow"), 1, sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "user", Values: []int64{1}})), source.Opening{})
	sourcetest.Says(t, "a schema of an Arrow file", err, fault.ErrUnsupported, "x.arrow")
	_, err = keyscan.New(keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(grownFilter)}}, Schema: dataset.Strict, Pinned: full}})
	sourcetest.Says(t, "a schema given, and strict", err, nil, "union")
}

// TestUnionOfManyPages compares the union with each file alone, over many pages,
// dictionaries that end, and several row groups.
func TestUnionOfManyPages(t *testing.T) {
	dir := t.TempDir()
	var want []string
	for i := range 4 {
		n := 5000 + 777*i
		fields := []arrow.Field{{Name: "user", Type: []arrow.DataType{int32Type, int64Type}[i%2]}, {Name: "s", Type: textType}}
		if i != 2 {
			fields = append(fields, arrow.Field{Name: "n", Type: []arrow.DataType{int8Type, int16Type, nil, int32Type}[i]})
		}
		var rows []string
		for r := range n {
			user, num := (r*7+i)%101, fmt.Sprint(r%100)
			s := fmt.Sprintf(`"v%d"`, r%(37*(i+1)))
			if i == 3 {
				s = fmt.Sprintf(`"long value %d of many"`, r)
			}
			switch {
			case i == 2:
				num = "(null)"
				rows = append(rows, fmt.Sprintf(`{"user":%d,"s":%s}`, user, s))
			case r%5 == 0:
				num = "(null)"
				rows = append(rows, fmt.Sprintf(`{"user":%d,"s":%s,"n":null}`, user, s))
			default:
				rows = append(rows, fmt.Sprintf(`{"user":%d,"s":%s,"n":%s}`, user, s, num))
			}
			if user%2 == 0 {
				want = append(want, fmt.Sprintf("%d|%s|%s", user, strings.Trim(s, `"`), num))
			}
		}
		roomtest.Foreign(t, filepath.Join(dir, fmt.Sprint(i, ".parquet")), nullable(fields...), strings.Join(rows, ","),
			v15.WithDataPageSize(1000), v15.WithMaxRowGroupLength(3000), v15.WithDictionaryPageSizeLimit(2000), v15.WithCompression(compress.Codecs.Snappy))
	}
	var even []int64
	for id := int64(0); id < 101; id += 2 {
		even = append(even, id)
	}
	opts := keyscan.Options{ScanOptions: keyscan.ScanOptions{Schema: dataset.UnionByName, Match: []dataset.Match{{Filter: (*codec.Filter)(roomtest.ExactOf("user", even...))}}}}
	first := ""
	for _, threads := range []int{1, 3, 8} {
		out := filepath.Join(t.TempDir(), "o.parquet")
		opts.Threads = threads
		if _, err := writeScan(t, Destination{Output: Output{Name: out}}, opts, dir); err != nil {
			t.Fatal(err)
		}
		if first == "" {
			rows, schema := sourcetest.Contents(t, out)
			sourcetest.Equal(t, "columns", plainTypes(schema), "user int64, s utf8, n int32")
			if !slices.Equal(rows, want) {
				t.Errorf("%d rows, want %d", len(rows), len(want))
				for i := range min(len(rows), len(want)) {
					if rows[i] != want[i] {
						t.Fatalf("row %d: %s, want %s", i, rows[i], want[i])
					}
				}
			}
			first = sourcetest.Get(t, out)
		} else if sourcetest.Get(t, out) != first {
			t.Errorf("%d threads give other bytes", threads)
		}
	}
}

func TestHaveKeys(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, fields ...arrow.Field) *source.File {
		return roomtest.Open(t, source.Opening{}, roomtest.Foreign(t, filepath.Join(dir, name), nullable(fields...), ""))[0]
	}
	a, b := arrow.Field{Name: "a", Type: int64Type}, arrow.Field{Name: "b", Type: int64Type}
	in := func(f arrow.Field) arrow.Field { return arrow.Field{Name: "s", Type: arrow.StructOf(f)} }
	both, onlyA, onlyB := file("both", a, b), file("onlyA", a), file("onlyB", b)
	deep, other, flat := file("deep", in(a), b), file("other", in(b), a), file("flat", arrow.Field{Name: "s.a", Type: int64Type})
	name := func(key string) dataset.Match { return dataset.Match{Key: key} }
	except := func(key string) dataset.Match { return dataset.Match{Key: key, NoMatch: true} }
	for _, c := range []struct {
		match   []dataset.Match
		any     bool
		files   []*source.File
		without []*source.File
	}{
		{[]dataset.Match{name("a")}, false, []*source.File{both, onlyA, onlyB}, []*source.File{onlyB}},
		{[]dataset.Match{name("a,b")}, false, []*source.File{both, onlyA, onlyB}, []*source.File{onlyA, onlyB}},
		{[]dataset.Match{name("a"), name("b")}, false, []*source.File{both, onlyA, onlyB}, []*source.File{onlyA, onlyB}},
		{[]dataset.Match{name("a"), name("b")}, true, []*source.File{both, onlyA, deep}, nil},
		{[]dataset.Match{name("a"), name("a")}, true, []*source.File{both, onlyB}, []*source.File{onlyB}},
		{[]dataset.Match{except("a")}, false, []*source.File{both, onlyB}, nil},
		{[]dataset.Match{name("b"), except("a")}, false, []*source.File{both, onlyA, onlyB}, []*source.File{onlyA}},
		// There is a column s.a, which needs quotes: this is a mistake, not a missing
		// column.
		{[]dataset.Match{name("s.a")}, false, []*source.File{deep, other, onlyA, flat}, []*source.File{other, onlyA}},
	} {
		var got []*source.File
		with, err := keyscan.HaveKeys(c.files, c.match, c.any, func(f *source.File, why string) {
			got = append(got, f)
			if !strings.Contains(why, "no key column") {
				t.Errorf("%s: %s", f.Name(), why)
			}
		})
		if err != nil {
			t.Error(err)
			continue
		}
		if !slices.Equal(got, c.without) || len(with)+len(got) != len(c.files) {
			t.Errorf("%v, any %v: %d files without the key, want %d", c.match, c.any, len(got), len(c.without))
		}
	}
	_, err := keyscan.HaveKeys([]*source.File{onlyA, both}, []dataset.Match{name("c")}, false, func(*source.File, string) {})
	sourcetest.Says(t, "a column that no file has", err, fault.ErrMismatch, "no key column c")
}

func TestCompression(t *testing.T) {
	dir := t.TempDir()
	in := roomtest.Foreign(t, filepath.Join(dir, "in.parquet"), nullable(arrow.Field{Name: "user", Type: int64Type}), `{"user":1}`, v15.WithCompression(compress.Codecs.Gzip))
	for text, want := range map[string]string{
		"": "gzip", "snappy": "snappy", "zstd": "zstd", "zstd:19": "zstd", "gzip:9": "gzip", "brotli:2": "brotli", "lz4": "lz4", "lz4:5": "lz4", "none": "none",
	} {
		out := Destination{Output: Output{Name: filepath.Join(dir, "out"+text+".parquet")}}
		if text != "" {
			if err := CheckCompression(text); err != nil {
				t.Fatal(err)
			}
			out.Compression = text
		}
		if _, err := writeScan(t, out, keyscan.Options{}, in); err != nil {
			t.Fatal(err)
		}
		f := roomtest.Open(t, source.Opening{}, out.Name)[0]
		sourcetest.Equal(t, text, f.Codec(), want)
		sourcetest.Equal(t, text, f.Rows(), 1)
		if text == "lz4" {
			sourcetest.Equal(t, "the format's name", f.Parquet().File().Codec(0, 0).String(), "LZ4_RAW")
		}
	}
	_, err := writeScan(t, Destination{Output: Output{Name: filepath.Join(dir, "lzo.parquet"), Compression: "lzo"}}, keyscan.Options{}, in)
	sourcetest.Says(t, "a codec that is not written", err, fault.ErrUnsupported, `"lzo"`)
	for _, text := range []string{"", "lzo", "ZSTD", "zstd:", "zstd:0", "zstd:23", "zstd:x", "snappy:1", "none:1", "gzip:10", "brotli:12", "zstd:-1"} {
		if err := CheckCompression(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// TestKeyClassesOfAUnion: each file's key is read with its own type, whatever type the
// output has.
func TestKeyClassesOfAUnion(t *testing.T) {
	dir := t.TempDir()
	roomtest.Foreign(t, filepath.Join(dir, "a.parquet"), nullable(arrow.Field{Name: "user", Type: arrow.PrimitiveTypes.Uint32}), `{"user":1},{"user":4294967295}`)
	roomtest.Foreign(t, filepath.Join(dir, "b.parquet"), nullable(arrow.Field{Name: "user", Type: int8Type}), `{"user":1},{"user":-1}`)
	roomtest.Foreign(t, filepath.Join(dir, "c.parquet"), nullable(arrow.Field{Name: "user", Type: int64Type}), `{"user":-1},{"user":1},{"user":4294967295}`)
	out := Destination{Output: Output{Name: filepath.Join(t.TempDir(), "o.parquet")}}
	opts := keyscan.Options{ScanOptions: keyscan.ScanOptions{Schema: dataset.UnionByName, Match: []dataset.Match{{Filter: (*codec.Filter)(roomtest.ExactOf("user", -1, 4294967295))}}}}
	if _, err := writeScan(t, out, opts, dir); err != nil {
		t.Fatal(err)
	}
	rows, schema := sourcetest.Contents(t, out.Name)
	sourcetest.Equal(t, "columns", typesOf(schema), "user int64")
	sourcetest.Equal(t, "rows", rows, []string{"4294967295", "-1", "-1", "4294967295"})

	roomtest.Foreign(t, filepath.Join(dir, "d.parquet"), nullable(arrow.Field{Name: "user", Type: textType}), `{"user":"1"}`)
	_, err := writeScan(t, out, opts, dir)
	sourcetest.Says(t, "a key of another class", err, fault.ErrMismatch, "d.parquet", "user")
}

// TestUnionIsWhole: adapted pages keep everything from the file, so for a log whose
// files agree the union makes no difference.
func TestUnionIsWhole(t *testing.T) {
	dir := grown(t)
	in := filepath.Join(dir, "2002.parquet")
	var got [2]string
	for i, mode := range []dataset.SchemaMode{dataset.Strict, dataset.UnionByName} {
		out := filepath.Join(t.TempDir(), "o.parquet")
		if _, err := writeScan(t, Destination{Output: Output{Name: out}}, keyscan.Options{ScanOptions: keyscan.ScanOptions{Schema: mode}}, in); err != nil {
			t.Fatal(err)
		}
		got[i] = sourcetest.Get(t, out)
	}
	if got[0] != got[1] {
		t.Error("the union of one file has other bytes than the file")
	}
}
