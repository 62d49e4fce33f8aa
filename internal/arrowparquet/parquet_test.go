package arrowparquet

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	v15 "github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/file"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	pq "github.com/parquet-go/parquet-go"
)

func checked(t testing.TB) *memory.CheckedAllocator {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	if t, ok := t.(*testing.T); ok {
		t.Cleanup(func() { mem.AssertSize(t, 0) })
	}
	return mem
}

func TestRoundTrip(t *testing.T) {
	for _, codec := range []string{"snappy", "zstd", "gzip", "brotli", "none"} {
		t.Run(codec, func(t *testing.T) {
			mem := checked(t)
			rec := record(t, mem, everything(), rowsJSON(101))
			defer rec.Release()
			b := written(t, rec, 1000, WriterOptions{Codec: codec, RowGroupRows: 30})
			p := open(t, b, mem)
			if got := p.Codec(); got != codec {
				t.Errorf("codec %q", got)
			}
			if p.NumGroups() != 4 || p.GroupRows(0) != 30 || p.GroupRows(3) != 11 {
				t.Fatalf("%d row groups", p.NumGroups())
			}
			for i, f := range p.Schema().Fields() {
				want := rec.Schema().Field(i)
				if !arrow.TypeEqual(f.Type, want.Type, arrow.CheckMetadata()) || f.Nullable != want.Nullable {
					t.Errorf("%s: %v, want %v", f.Name, f.Type, want.Type)
				}
				for k, v := range want.Metadata.ToMap() {
					if value(f.Metadata, k) != v {
						t.Errorf("%s: metadata %v, want %v", f.Name, f.Metadata, want.Metadata)
					}
				}
			}
			if md := p.Schema().Metadata(); value(md, "owner") != "somebody" || md.FindKey(SchemaKey) >= 0 {
				t.Errorf("schema metadata %v", md)
			}
			tbl := all(t, p, nil)
			defer tbl.Release()
			for i := range int(tbl.NumCols()) {
				if !same(tbl.Column(i), rec.Column(i), mem) {
					t.Errorf("column %s differs", tbl.Column(i).Name())
				}
			}
		})
	}
}

// The bytes do not depend on how the rows are divided into records.
func TestBytesDependOnRowsAlone(t *testing.T) {
	mem := checked(t)
	rec := record(t, mem, everything(), rowsJSON(500))
	defer rec.Release()
	opts := WriterOptions{RowGroupRows: 128, Codec: "zstd", Metadata: map[string]string{"b": "2", "a": "1", "owner": "other"}}
	want := written(t, rec, 1000, opts)
	for _, step := range []int64{1, 7, 128, 129} {
		if !bytes.Equal(written(t, rec, step, opts), want) {
			t.Errorf("records of %d rows give other bytes", step)
		}
	}
	md := open(t, want, mem).Schema().Metadata()
	if value(md, "owner") != "other" || value(md, "a") != "1" || value(md, "b") != "2" {
		t.Errorf("metadata %v", md)
	}
}

// parquet-go reads what was written.
func TestParquetGoReads(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "tags", Type: arrow.ListOfField(arrow.Field{Name: "element", Type: arrow.PrimitiveTypes.Int32, Nullable: true})},
		{Name: "set", Type: arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64)},
	}, nil)
	rec := record(t, memory.NewGoAllocator(), sc, `[
		{"id":1,"name":"a","tags":[1,null],"set":[{"key":"x","value":5}]},
		{"id":2,"name":null,"tags":[],"set":[]},
		{"id":3,"name":"","tags":[2],"set":[{"key":"y","value":6},{"key":"z","value":7}]}]`)
	defer rec.Release()
	b := written(t, rec, 2, WriterOptions{})
	f, err := pq.OpenFile(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	rows := f.RowGroups()[0].Rows()
	defer rows.Close()
	buf := make([]pq.Row, 8)
	n, err := rows.ReadRows(buf)
	if err != nil && err != io.EOF {
		t.Fatal(err)
	}
	for _, r := range buf[:n] {
		got = append(got, fmt.Sprintf("%+v", r))
	}
	want := []string{
		"[C:0 D:0 R:0 V:1 C:1 D:1 R:0 V:a C:2 D:2 R:0 V:1 C:2 D:1 R:1 V:<null> C:3 D:1 R:0 V:x C:4 D:2 R:0 V:5]",
		"[C:0 D:0 R:0 V:2 C:1 D:0 R:0 V:<null> C:2 D:0 R:0 V:<null> C:3 D:0 R:0 V:<null> C:4 D:0 R:0 V:<null>]",
		"[C:0 D:0 R:0 V:3 C:1 D:1 R:0 V: C:2 D:2 R:0 V:2 C:3 D:1 R:0 V:y C:3 D:1 R:1 V:z C:4 D:2 R:0 V:6 C:4 D:2 R:1 V:7]",
	}
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			t.Errorf("row %d: got %v\nwant %v", i, got, want[i])
		}
	}
}

// Output of parquet-go can be read: V2 pages, delta encodings, several pages.
func TestParquetGoWrites(t *testing.T) {
	type row struct {
		ID    int64    `parquet:"id,delta"`
		Name  string   `parquet:"name,delta"`
		Score float64  `parquet:"score,split"`
		Tags  []string `parquet:"tags,list,dict"`
	}
	var b bytes.Buffer
	w := pq.NewGenericWriter[row](&b, pq.PageBufferSize(4000), pq.DataPageVersion(2), pq.Compression(&pq.Lz4Raw))
	rng := rand.New(rand.NewPCG(1, 1))
	var want []row
	for i := range 70000 {
		r := row{ID: rng.Int64(), Name: fmt.Sprintf("user-%d", i/3), Score: rng.Float64()}
		for range rng.IntN(4) {
			r.Tags = append(r.Tags, fmt.Sprint(rng.IntN(50)))
		}
		want = append(want, r)
	}
	if _, err := w.Write(want); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	mem := checked(t)
	at, records := 0, 0
	p := open(t, b.Bytes(), mem)
	for g := range p.NumGroups() {
		for rec, err := range p.Read(context.Background(), g, nil) {
			if err != nil {
				t.Fatal(err)
			}
			records++
			ids, names := rec.Column(0).(*array.Int64), rec.Column(1).(*array.String)
			scores, tags := rec.Column(2).(*array.Float64), rec.Column(3).(*array.List)
			words := tags.ListValues().(*array.String)
			for i := range int(rec.NumRows()) {
				r := want[at]
				from, to := tags.ValueOffsets(i)
				var got []string
				for k := from; k < to; k++ {
					got = append(got, words.Value(int(k)))
				}
				if ids.Value(i) != r.ID || names.Value(i) != r.Name || scores.Value(i) != r.Score ||
					strings.Join(got, ",") != strings.Join(r.Tags, ",") {
					t.Fatalf("row %d differs", at)
				}
				at++
			}
		}
	}
	if at != len(want) || records < 2 {
		t.Errorf("%d rows in %d records", at, records)
	}
}

func TestColumns(t *testing.T) {
	mem := checked(t)
	rec := record(t, mem, everything(), rowsJSON(40))
	defer rec.Release()
	p := open(t, written(t, rec, 40, WriterOptions{RowGroupRows: 25}), mem)
	index := func(name string) int { return p.Schema().FieldIndices(name)[0] }
	wanted := []int{index("st"), index("id"), index("st")}
	tbl := all(t, p, wanted)
	defer tbl.Release()
	for i, c := range wanted {
		if tbl.Column(i).Name() != rec.ColumnName(c) || !same(tbl.Column(i), rec.Column(c), mem) {
			t.Errorf("column %d is not %s", i, rec.ColumnName(c))
		}
	}
	rows := int64(0)
	for g := range p.NumGroups() {
		for r, err := range p.Read(context.Background(), g, []int{}) {
			if err != nil || r.NumCols() != 0 {
				t.Fatal(err, r.NumCols())
			}
			rows += r.NumRows()
		}
	}
	if rows != 40 {
		t.Errorf("%d rows without columns", rows)
	}
	for _, bad := range [][]int{{-1}, {99}} {
		for _, err := range p.Read(context.Background(), 0, bad) {
			if err == nil {
				t.Errorf("columns %v exist", bad)
			}
		}
	}
}

func TestBreakAndCancel(t *testing.T) {
	mem := checked(t)
	bld := array.NewInt64Builder(mem)
	for i := range 200000 {
		bld.Append(int64(i))
	}
	arr := bld.NewArray()
	bld.Release()
	sc := arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Int64}}, nil)
	rec := array.NewRecord(sc, []arrow.Array{arr}, -1)
	arr.Release()
	defer rec.Release()
	p := open(t, written(t, rec, 50000, WriterOptions{RowGroupRows: 200000}), mem)
	for r, err := range p.Read(context.Background(), 0, nil) {
		if err != nil || r.NumRows() != 64<<10 {
			t.Fatal(err)
		}
		break
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var last error
	n := 0
	for _, err := range p.Read(ctx, 0, nil) {
		cancel()
		last = err
		n++
	}
	if !errors.Is(last, context.Canceled) || n != 2 {
		t.Errorf("%v after %d yields", last, n)
	}
}

// Dictionaries make rows far larger than they are on disk; records stay small.
func TestWideRows(t *testing.T) {
	mem := checked(t)
	sc := arrow.NewSchema([]arrow.Field{{Name: "s", Type: arrow.BinaryTypes.String}}, nil)
	bld := array.NewRecordBuilder(mem, sc)
	long := strings.Repeat("x", 100<<10)
	for range 900 {
		bld.Field(0).(*array.StringBuilder).Append(long)
	}
	rec := bld.NewRecord()
	bld.Release()
	b := written(t, rec, 900, WriterOptions{RowGroupBytes: 1 << 30})
	rec.Release()
	rows := int64(0)
	for r, err := range open(t, b, mem).Read(context.Background(), 0, nil) {
		if err != nil {
			t.Fatal(err)
		}
		if n := r.Column(0).(*array.String).ValueOffset(int(r.NumRows())); n > 34<<20 {
			t.Errorf("a record of %d bytes", n)
		}
		rows += r.NumRows()
	}
	if rows != 900 || len(b) > 1<<20 {
		t.Errorf("%d rows, file of %d bytes", rows, len(b))
	}
}

// Mutated files give typed errors or none, leak nothing and terminate.
func TestMutations(t *testing.T) {
	paths, _ := filepath.Glob("../parquet/testdata/*.parquet")
	if len(paths) < 10 {
		t.Fatal("the test files are missing")
	}
	files := map[string][]byte{}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(p)] = b
	}
	rec := record(t, memory.NewGoAllocator(), everything(), rowsJSON(20))
	files["everything"] = written(t, rec, 20, WriterOptions{})
	rec.Release()
	rng := rand.New(rand.NewPCG(7, 8))
	for name, whole := range files {
		footer := len(whole) - 8 - int(binary.LittleEndian.Uint32(whole[len(whole)-8:]))
		for i := range cases.Count(100, 300, 600) {
			b := bytes.Clone(whole)
			part := b[:footer]
			if i%3 == 0 {
				part = b
			}
			for range 1 + rng.IntN(3) {
				part[rng.IntN(len(part))] ^= 1 << rng.IntN(8)
			}
			start := time.Now()
			mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
			if err := readAll(b, mem); err != nil && !errors.Is(err, fault.ErrCorrupt) && !errors.Is(err, fault.ErrUnsupported) {
				t.Fatalf("%s: %v", name, err)
			}
			mem.AssertSize(t, 0)
			if d := time.Since(start); d > 10*time.Second {
				t.Fatalf("%s: %v", name, d)
			}
		}
	}
}

func readAll(b []byte, mem memory.Allocator) error {
	p, err := OpenParquet(bytes.NewReader(b), int64(len(b)), "x.parquet", ParquetOptions{Mem: mem})
	if err != nil {
		return err
	}
	for g := range p.NumGroups() {
		rows := int64(0)
		for rec, err := range p.Read(context.Background(), g, nil) {
			if err != nil {
				return err
			}
			rows += rec.NumRows()
		}
		if rows != p.GroupRows(g) {
			return fmt.Errorf("%d rows of %d", rows, p.GroupRows(g))
		}
	}
	return nil
}

func shared(t *testing.T) string {
	dir := os.Getenv("BLOOMJOIN_SHARED")
	if dir == "" {
		t.Skip("BLOOMJOIN_SHARED is not set: the corpora are not at hand")
	}
	return filepath.Join(dir, "corpora")
}

// Every file of the corpora is read or refused with a reason.
func TestCorpus(t *testing.T) {
	root := shared(t)
	read, refused := 0, 0
	for _, dir := range []string{"parquet-testing", "arrow-testing/data/parquet"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(path, ".md") || strings.HasSuffix(path, ".csv") {
				return err
			}
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			start := time.Now()
			mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
			err = readAll(b, mem)
			mem.AssertSize(t, 0)
			switch {
			case err == nil:
				read++
			case errors.Is(err, fault.ErrCorrupt), errors.Is(err, fault.ErrUnsupported):
				refused++
				if bytes.HasPrefix(b, []byte("PAR1")) {
					t.Logf("%s: %v", strings.TrimPrefix(path, root), err)
				}
			default:
				t.Errorf("%s: %v", path, err)
			}
			if d := time.Since(start); d > 10*time.Second {
				t.Errorf("%s took %v", path, d)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("read %d, refused %d", read, refused)
	if read < 200 || refused < 150 {
		t.Errorf("read %d, refused %d", read, refused)
	}
}

// The tables that accompany the delta files have their expected contents.
func TestDeltaOracles(t *testing.T) {
	dir := filepath.Join(shared(t), "parquet-testing/data")
	for _, name := range []string{"delta_binary_packed", "delta_byte_array", "delta_encoding_optional_column", "delta_encoding_required_column"} {
		f, err := os.Open(filepath.Join(dir, name+"_expect.csv"))
		if err != nil {
			t.Fatal(err)
		}
		want, err := csv.NewReader(f).ReadAll()
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(dir, name+".parquet"))
		if err != nil {
			t.Fatal(err)
		}
		mem := checked(t)
		p := open(t, b, mem)
		rows := 0
		for rec, err := range p.Read(context.Background(), 0, nil) {
			if err != nil {
				t.Fatal(err)
			}
			for i := range int(rec.NumRows()) {
				rows++
				for c := range int(rec.NumCols()) {
					got := ""
					if col := rec.Column(c); col.IsValid(i) {
						got = col.ValueStr(i)
					}
					if w := want[rows][c]; got != w {
						t.Fatalf("%s row %d %s: got %q, want %q", name, rows, rec.ColumnName(c), got, w)
					}
				}
			}
		}
		if rows != len(want)-1 {
			t.Errorf("%s: %d rows, want %d", name, rows, len(want)-1)
		}
	}
}

// Where v15 reads a flat column correctly, the result is the same.
func TestAgainstV15(t *testing.T) {
	dir := filepath.Join(shared(t), "parquet-testing/data")
	compared := 0
	for _, name := range []string{"alltypes_dictionary", "alltypes_plain", "alltypes_plain.snappy", "alltypes_tiny_pages",
		"alltypes_tiny_pages_plain", "binary", "data_index_bloom_encoding_stats", "delta_binary_packed", "delta_byte_array",
		"delta_encoding_optional_column", "delta_length_byte_array", "fixed_length_decimal", "fixed_length_decimal_legacy",
		"int32_decimal", "int64_decimal", "int32_with_null_pages", "list_columns", "nested_lists.snappy", "null_list",
		"overflow_i16_page_cnt", "rle_boolean_encoding", "single_nan", "sort_columns", "float16_nonzeros_and_nans"} {
		b, err := os.ReadFile(filepath.Join(dir, name+".parquet"))
		if err != nil {
			t.Fatal(err)
		}
		mem := memory.NewGoAllocator()
		props := v15.NewReaderProperties(mem)
		rd, err := file.NewParquetReader(bytes.NewReader(b), file.WithReadProps(props))
		if err != nil {
			t.Fatal(err)
		}
		fr, err := pqarrow.NewFileReader(rd, pqarrow.ArrowReadProperties{}, mem)
		if err != nil {
			t.Fatal(err)
		}
		want, err := fr.ReadTable(context.Background())
		if err != nil {
			t.Fatal(name, err)
		}
		got := all(t, open(t, b, mem), nil)
		if got.NumRows() != want.NumRows() || got.NumCols() != want.NumCols() {
			t.Errorf("%s: %d rows of %d", name, got.NumRows(), want.NumRows())
			continue
		}
		for i := range int(got.NumCols()) {
			g, _ := array.Concatenate(got.Column(i).Data().Chunks(), mem)
			w, _ := array.Concatenate(want.Column(i).Data().Chunks(), mem)
			for k := range g.Len() {
				if g.IsNull(k) != w.IsNull(k) || g.IsValid(k) && strings.TrimSuffix(g.ValueStr(k), "Z") != strings.TrimSuffix(w.ValueStr(k), "Z") {
					t.Errorf("%s %s row %d: %s, v15 has %s", name, got.Column(i).Name(), k, g.ValueStr(k), w.ValueStr(k))
					break
				}
				compared++
			}
		}
	}
	if compared < 100000 {
		t.Errorf("only %d values compared", compared)
	}
}
