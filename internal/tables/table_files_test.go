package tables_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/rowfilter"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
	"github.com/bloomjoin/bloomjoin/internal/tables"
)

// Rows of text, Arrow files and a program's records are held as those of a Parquet file
// with the same values.
func TestRowsOfOtherFormats(t *testing.T) {
	const n = 70_000 // more than one batch
	dir := t.TempDir()
	id := func(i int) int64 { return int64(i*7919%1000 - 500) }
	rec := func() arrow.Record {
		return sourcetest.Record(t, memory.DefaultAllocator,
			sourcetest.Col{Name: "id", Values: sourcetest.Numbers(n, func(i int) any {
				if i%10 == 3 {
					return nil
				}
				return int(id(i))
			})},
			sourcetest.Col{Name: "name", Values: sourcetest.Numbers(n, func(i int) string { return fmt.Sprint("n", i) })})
	}
	var csv, json strings.Builder
	csv.WriteString("id,name\n")
	for i := range n {
		if v := fmt.Sprint(id(i)); i%10 == 3 {
			fmt.Fprintf(&csv, ",n%d\n", i)
			fmt.Fprintf(&json, "{\"id\":null,\"name\":\"n%d\"}\n", i)
		} else {
			fmt.Fprintf(&csv, "%s,n%d\n", v, i)
			fmt.Fprintf(&json, "{\"id\":%s,\"name\":\"n%d\"}\n", v, i)
		}
	}
	pattern := sourcetest.Write(t, filepath.Join(dir, "ids.parquet"), 30_000, rec())
	want := roomtest.Open(t, source.Opening{}, pattern)
	stream := rec()
	defer stream.Release()
	own := source.Records("records", stream.Schema(), func(context.Context) iter.Seq2[arrow.Record, error] {
		return func(yield func(arrow.Record, error) bool) { yield(stream, nil) }
	}, source.RecordsOptions{})
	text := source.Opening{OpenOptions: source.OpenOptions{Text: true, Types: map[string]arrow.DataType{"id": arrow.PrimitiveTypes.Int64}}}
	others := [][]*source.File{
		roomtest.Open(t, text, sourcetest.Put(t, filepath.Join(dir, "ids.csv"), csv.String())),
		roomtest.Open(t, text, sourcetest.Put(t, filepath.Join(dir, "ids.ndjson"), json.String())),
		roomtest.Open(t, source.Opening{}, sourcetest.Write(t, filepath.Join(dir, "ids.arrow"), 30_000, rec())),
		{own},
	}
	members := roomtest.ExactOf("id", -500, -1, 0, 7, 400)
	for i, m := range []*keyscan.Predicate{nil, {Match: dataset.Match{Filter: (*codec.Filter)(members), Key: "id"}}} {
		for l, k := range []string{"id", "id,name", "name"} {
			if m != nil && k != "id" {
				continue
			}
			for _, names := range [][]string{nil, {}} {
				if names != nil && k != "id" {
					continue
				}
				o := tables.ReadOptions{Key: k, Match: m, Threads: 2}
				c := roomtest.ColumnsOf(t, want, names...)
				first, err := hold(t, c, want, o, false)
				if err != nil {
					t.Fatal(err)
				}
				rows := rendered(t, c, first.table)
				for n, files := range others {
					if (i+l+n)%cases.Count(2, 1, 1) != 0 {
						continue
					}
					what := fmt.Sprintf("%s, match %t, key %s, columns %v", files[0].Name(), m != nil, k, names)
					c := roomtest.ColumnsOf(t, files, names...)
					h, err := hold(t, c, files, o, false)
					if err != nil {
						t.Fatalf("%s: %v", what, err)
					}
					sameRows(t, what, rendered(t, c, h.table), rows)
					sameRows(t, what+": keys", h.keys, first.keys)
					sourcetest.Equal(t, what+": rows and NULLs", []int64{h.rows, h.nulls}, []int64{first.rows, first.nulls})
				}
			}
		}
	}
}

// Files may differ in whether values are optional and in how they store them; the rows
// come in the order of the files.
func TestRowsOfSeveralFiles(t *testing.T) {
	dir := t.TempDir()
	schema := func(nullable bool) *arrow.Schema {
		return arrow.NewSchema([]arrow.Field{
			{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: nullable}, {Name: "list", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: nullable},
			{Name: "d", Type: &arrow.Decimal128Type{Precision: 9, Scale: 2}, Nullable: nullable},
		}, nil)
	}
	required := roomtest.Foreign(t, filepath.Join(dir, "a.parquet"), schema(false), `{"id":1,"list":[1,2],"d":"1.50"},{"id":2,"list":[],"d":"-2.00"}`)
	optional := roomtest.Foreign(t, filepath.Join(dir, "b.parquet"), schema(true), `{"id":3,"list":[null],"d":null},{"id":null,"list":null,"d":"0.25"}`)
	arrowFile := filepath.Join(dir, "c.arrow")
	recordFile := roomtest.Open(t, source.Opening{}, optional)[0]
	for rec, err := range rowfilter.Read(t.Context(), recordFile, 0, nil) {
		if err != nil {
			t.Fatal(err)
		}
		rec.Retain()
		sourcetest.Write(t, arrowFile, 10, rec)
	}
	const d150, d200, d025 = "00000096", "ffffff38", "00000019"
	both := []string{
		"0:1=0100000000000000 | 0:3=01000000 1:3=02000000 | 0:1=" + d150,
		"0:1=0200000000000000 | 0:1 | 0:1=" + d200,
	}
	nulls := []string{"0:1=0300000000000000 | 0:2 | 0:0", "0:0 | 0:0 | 0:1=" + d025}
	for _, c := range []struct {
		names []string
		want  []string
	}{
		{[]string{required, optional}, slices.Concat(both, nulls)},
		{[]string{optional, required}, slices.Concat(nulls, both)},
		{[]string{required, optional, arrowFile}, slices.Concat(both, nulls, nulls)},
		{[]string{arrowFile, required}, slices.Concat(nulls, both)},
	} {
		var files []*source.File
		for _, name := range c.names {
			files = append(files, roomtest.Open(t, source.Opening{}, name)...)
		}
		columns := roomtest.ColumnsOf(t, files)
		h, err := hold(t, columns, files, tables.ReadOptions{Key: "id", Threads: 3}, true)
		if err != nil {
			t.Fatal(err)
		}
		got := rendered(t, columns, h.table)
		for i := range got {
			got[i] = strings.TrimSpace(got[i])
		}
		sameRows(t, fmt.Sprint(c.names), got, c.want)
	}
}

// Files that store one Arrow type in different ways are held alike.
func TestRowsStoredOtherwise(t *testing.T) {
	const int96 = "../../testdata/vectors/pyarrow_int96.parquet"
	stored := roomtest.Open(t, source.Opening{}, int96)
	path := filepath.Join(t.TempDir(), "micros.parquet")
	for rec, err := range rowfilter.Read(t.Context(), stored[0], 0, nil) {
		if err != nil {
			t.Fatal(err)
		}
		rec.Retain()
		sourcetest.Write(t, path, 10, rec)
	}
	files := append(stored, roomtest.Open(t, source.Opening{}, path)...)
	c := roomtest.ColumnsOf(t, files)
	if c.Leaves[1].Type != format.Int64 || c.Sources[files[0]].Leaves != nil || c.Sources[files[1]].Leaves == nil {
		t.Fatalf("leaves %+v, of the files %v and %v", c.Leaves, c.Sources[files[0]].Leaves, c.Sources[files[1]].Leaves)
	}
	want := []string{ // microseconds, as the vector lists them
		"0:0=0000000000000000 | 0:1=" + micros(253402214400000000), "0:0=0100000000000000 | 0:1=" + micros(-62135596800000000),
		"0:0=0200000000000000 | 0:0", "0:0=0300000000000000 | 0:1=" + micros(-1),
	}
	for i := range want {
		if c.Leaves[0].MaxDef > 0 {
			want[i] = strings.Replace(want[i], "0:0=", "0:1=", 1)
		}
	}
	want = slices.Concat(want, want)
	h, err := hold(t, c, files, tables.ReadOptions{Key: "t", Threads: 2}, true)
	if err != nil {
		t.Fatal(err)
	}
	got := rendered(t, c, h.table)
	for i := range got {
		got[i] = strings.TrimSpace(got[i])
	}
	sameRows(t, "both", got, want)
	if h.keys[0] != h.keys[4] || h.keys[2] != "NULL" || h.nulls != 2 {
		t.Errorf("keys %q, %d NULLs", h.keys, h.nulls)
	}
}

func micros(v int64) string {
	return fmt.Sprintf("%x", binary.LittleEndian.AppendUint64(nil, uint64(v)))
}

// Files whose columns differ are refused with both lists of columns.
func TestTableColumnsDiffer(t *testing.T) {
	dir := t.TempDir()
	a := sourcetest.Write(t, filepath.Join(dir, "a.parquet"), 10, sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "id", Values: []int64{1}}, sourcetest.Col{Name: "n", Values: []int32{1}}))
	b := sourcetest.Write(t, filepath.Join(dir, "b.parquet"), 10, sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "id", Values: []int64{1}}, sourcetest.Col{Name: "n", Values: []string{"x"}}))
	c := sourcetest.Write(t, filepath.Join(dir, "c.arrow"), 10, sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "ID", Values: []int64{1}}, sourcetest.Col{Name: "m", Values: []int32{1}}))
	files := roomtest.Open(t, source.Opening{}, a, b, c)
	_, err := tables.NewColumns(files[:2], nil, false)
	sourcetest.Says(t, "types", err, fault.ErrMismatch, "b.parquet", "columns of the ID files", "as in "+a, "int32", "utf8", "give the files the same columns")
	_, err = tables.NewColumns([]*source.File{files[0], files[2]}, []string{"id", "n"}, true)
	var missing *keys.NotFoundError
	if !errors.As(err, &missing) || !strings.Contains(err.Error(), "c.arrow") {
		t.Errorf("a missing column: %v", err)
	}
	for _, names := range [][]string{{"id"}, {}} {
		if _, err := tables.NewColumns(files, names, true); err != nil {
			t.Errorf("columns %v: %v", names, err)
		}
	}
	if _, err := tables.NewColumns(files, []string{"id"}, false); err == nil {
		t.Error("ID is id although case matters")
	}
	columns := roomtest.ColumnsOf(t, files[:1])
	_, _, err = tables.Read(t.Context(), source.Split(files[1:2], dataset.Shard{}), columns, tables.ReadOptions{Key: "id"}, func(*tables.Batch) error { return nil })
	sourcetest.Says(t, "another file", err, nil, b, "not one of the files")
}

// unfamiliar writes a file with INT96 values that no Arrow type holds, and a column
// with an annotation that is not known.
func unfamiliar(t testing.TB, path string) string {
	t.Helper()
	element := func(name string, of format.Type) meta.Element {
		return meta.Element{Name: name, Type: thrift.New(of), RepetitionType: thrift.New(format.Required)}
	}
	odd := element("odd", format.ByteArray)
	if err := odd.SetAnnotation([]byte{0x0c, 0x7e, 0x00, 0x00}); err != nil { // field 63 of the union
		t.Fatal(err)
	}
	schema := []meta.Element{
		{Name: "root", NumChildren: thrift.New(int32(3))}, element("id", format.Int64), element("t", format.Int96), odd,
	}
	var b bytes.Buffer
	w, err := parquet.NewWriter(&b, schema, nil, parquet.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const n = 3
	plain := [][]byte{make([]byte, 8*n), bytes.Repeat([]byte{0xff}, 12*n), bytes.Repeat([]byte{1, 0, 0, 0, 'x'}, n)}
	var chunks []*parquet.EncodedChunk
	for i := range plain {
		c := w.Chunk(i)
		if err := c.Add(&parquet.Page{Values: n, Rows: n, NonNull: n, Plain: plain[i]}, nil); err != nil {
			t.Fatal(err)
		}
		e, err := c.Finish()
		if err != nil {
			t.Fatal(err)
		}
		chunks = append(chunks, e)
	}
	if err := w.RowGroup(n, chunks); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return sourcetest.Put(t, path, b.String())
}

// Columns keep types that Arrow does not have.
func TestRowsBeyondArrow(t *testing.T) {
	files := roomtest.Open(t, source.Opening{}, unfamiliar(t, filepath.Join(t.TempDir(), "a.parquet")))
	for _, err := range rowfilter.Read(t.Context(), files[0], 0, nil) {
		if err == nil {
			t.Fatal("Arrow has the values")
		}
	}
	c := roomtest.ColumnsOf(t, files, "t", "odd")
	compareRows(t, "beyond Arrow", c, files, tables.ReadOptions{Key: "id"}, all)
	was, err := files[0].Parquet().File().Metadata.Schema[3].Annotation()
	is, err2 := c.Elements[2].Annotation()
	if err != nil || err2 != nil || len(was) == 0 || !bytes.Equal(was, is) {
		t.Errorf("annotation %x of the file, %x of the table, %v, %v", was, is, err, err2)
	}
}

// Values that are not IDs are errors that give the place, but not the value; with a
// Match, whether their rows pass or not.
func TestRowsThatAreNoIDs(t *testing.T) {
	const id = "123e4567-e89b-12d3-a456-426614174000"
	dir := t.TempDir()
	values := []string{id, id, strings.ToUpper(id), "secret", id}
	rec := func() arrow.Record {
		return sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "k", Values: values}, sourcetest.Col{Name: "n", Values: []int64{1, 2, 3, 4, 5}})
	}
	uuids := roomtest.RuledFilter(t, "uuid", []string{"k"}, []keys.Class{"fixed[16]"}, map[string][]string{})
	for _, c := range []struct {
		name, column string
		words        []string
	}{
		{sourcetest.Write(t, filepath.Join(dir, "a.parquet"), 2, rec()), "k", []string{"a.parquet: row group 2: column k"}},
		{sourcetest.Write(t, filepath.Join(dir, "b.arrow"), 2, rec()), "k", []string{"b.arrow: row group 2: column k"}},
		{sourcetest.Write(t, filepath.Join(dir, "c.parquet"), 3, rec()), "k,n", []string{"c.parquet: row group 2: column k,n"}},
		{sourcetest.Put(t, filepath.Join(dir, "d.csv"), "n,k\n1,\""+id+"\"\n\n2,secret\n"), "k", []string{"d.csv: line 4: column k"}},
		{sourcetest.Put(t, filepath.Join(dir, "e.csv"), "n,k\n1,x"+id+"\n"), "n,k", []string{"e.csv", "column n,k"}},
	} {
		for _, match := range []bool{false, true} {
			if match && c.column != "k" {
				continue
			}
			files := roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Text: true, Types: map[string]arrow.DataType{"n": arrow.PrimitiveTypes.Int64}}}, c.name)
			if strings.Contains(c.name, "d.csv") {
				paths, err := keys.ParseColumns(c.column)
				if err != nil {
					t.Fatal(err)
				}
				files[0] = files[0].WithIDs(paths, keys.Options{Rule: keys.UUID}) // as a plan does
			}
			o := tables.ReadOptions{Key: c.column, Options: keys.Options{Rule: keys.UUID}, Threads: 2}
			if match {
				o.Match = &keyscan.Predicate{Match: dataset.Match{Filter: (*codec.Filter)(uuids), Key: c.column}}
			}
			_, err := hold(t, roomtest.ColumnsOf(t, files, "n"), files, o, false)
			sourcetest.Says(t, fmt.Sprintf("%s, match %t", c.name, match), err, fault.ErrMismatch, c.words...)
			if err != nil && (strings.Contains(err.Error(), "secret") || strings.Count(err.Error(), c.name) != 1) {
				t.Errorf("%v", err)
			}
		}
	}
	misfit := roomtest.Open(t, source.Opening{}, sourcetest.Write(t, filepath.Join(dir, "m.parquet"), 2, rec()))
	_, err := hold(t, roomtest.ColumnsOf(t, misfit), misfit, tables.ReadOptions{Key: "k::int64"}, false)
	sourcetest.Says(t, "a misfit", err, keys.ErrMisfit, "m.parquet: row group 1: column k")
}

// The rows end at the first error, with the rows before it, and nothing is left behind.
func TestReadRowsStops(t *testing.T) {
	boom := errors.New("boom")
	for _, c := range []struct {
		what  string
		edit  func(f *sourcetest.Table)
		fn    func() error
		kind  error
		words []string
	}{
		{"an error in Read", func(f *sourcetest.Table) { f.Groups[5].Err = boom }, nil, boom, nil},
		{"a panic in Read", func(f *sourcetest.Table) { f.Groups[5].Panics = true }, nil, nil, []string{"some: row group 6", "internal error", "a page that nobody expected"}},
		{"an error of the function", nil, func() error { return boom }, boom, nil},
	} {
		table := &sourcetest.Table{Mem: sourcetest.Checked(t)}
		f := roomtest.Some(table, 30, 3)
		if c.edit != nil {
			c.edit(table)
		}
		rows := 0
		_, _, err := tables.Read(t.Context(), []source.Piece{{File: f, Lo: 0, Hi: 30}}, roomtest.ColumnsOf(t, []*source.File{f}), tables.ReadOptions{Key: "id", Threads: 3}, func(b *tables.Batch) error {
			if rows += b.Keys.Len; rows == 18 && c.fn != nil {
				return c.fn()
			}
			return nil
		})
		sourcetest.Says(t, c.what, err, c.kind, c.words...)
		sourcetest.Equal(t, c.what+": rows", rows, 18)
	}
	why := errors.New("called off")
	for _, after := range []int{0, 1, 10} {
		ctx, cancel := context.WithCancelCause(t.Context())
		if after == 0 {
			cancel(why)
		}
		f := roomtest.Some(&sourcetest.Table{Mem: sourcetest.Checked(t)}, 50, 3)
		rows := 0
		_, _, err := tables.Read(ctx, []source.Piece{{File: f, Lo: 0, Hi: 50}}, roomtest.ColumnsOf(t, []*source.File{f}), tables.ReadOptions{Key: "id", Threads: 3}, func(b *tables.Batch) error {
			if rows += b.Keys.Len; rows == after {
				cancel(why)
			}
			return nil
		})
		if !errors.Is(err, why) || rows == 150 {
			t.Errorf("cancelled after %d: %v after %d rows", after, err, rows)
		}
		cancel(nil)
	}
	name := roomtest.WriteClicks(t, filepath.Join(t.TempDir(), "a.parquet"), roomtest.Clicks(rand.New(rand.NewPCG(3, 3)), 3000, 0), roomtest.Layouts[1])
	content := sourcetest.Get(t, name)
	damaged := []byte(content)
	for i := len(damaged) / 3; i < len(damaged)/3+2000; i++ {
		damaged[i] ^= 0x55
	}
	if err := os.WriteFile(name, damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	files := roomtest.Open(t, source.Opening{}, name)
	_, err := hold(t, roomtest.ColumnsOf(t, files), files, tables.ReadOptions{Key: "id", Threads: 2}, false)
	sourcetest.Says(t, "a damaged page", err, fault.ErrCorrupt, name, "row group")
}

// What AppendTo has written is read again, for keys of each kind, and nothing else is.
func TestParseRows(t *testing.T) {
	if bits.UintSize < 64 {
		t.Skip("arrow/go refuses decimals of 20 digits on 32 bits")
	}
	dir := t.TempDir()
	wide := &arrow.Decimal128Type{Precision: 20}
	schema := arrow.NewSchema([]arrow.Field{{Name: "d", Type: wide, Nullable: true}, {Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, {Name: "s", Type: arrow.BinaryTypes.String}}, nil)
	path := roomtest.Foreign(t, filepath.Join(dir, "a.parquet"), schema, `{"d":"-1","n":-1,"s":""},{"d":"18446744073709551615","n":5,"s":"x"},{"d":null,"n":null,"s":"y"},{"d":"7","n":9223372036854775807,"s":"zz"}`)
	files := roomtest.Open(t, source.Opening{}, path)
	integer := keys.Options{Classes: []keys.Class{keys.Integer}}
	for _, c := range []struct {
		key string
		o   keys.Options
	}{{"d", integer}, {"n", keys.Options{}}, {"s", keys.Options{}}, {"d,s", keys.Options{}}} {
		columns := roomtest.ColumnsOf(t, files, "n", "s")
		compareRows(t, c.key, columns, files, tables.ReadOptions{Key: c.key, Options: c.o}, all)
		_, _, err := tables.Read(t.Context(), source.Split(files, dataset.Shard{}), columns, tables.ReadOptions{Key: c.key, Options: c.o}, func(b *tables.Batch) error {
			stored, err := b.AppendTo(nil, nil)
			if err != nil {
				return err
			}
			back, err := columns.Parse(stored)
			if err != nil {
				return err
			}
			sameRows(t, c.key, keyText(back.Keys), keyText(b.Keys))
			if c.key == "d" {
				sameRows(t, "d", keyText(b.Keys), []string{"\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\xff\xff\xff\xff\xff\xff\xff\xff\x00", "NULL", "\x07\x00\x00\x00\x00\x00\x00\x00\x00"})
			}
			for cut := range stored {
				if _, err := columns.Parse(stored[:cut:cut]); err == nil {
					t.Errorf("key %s: %d bytes of %d are taken for a batch", c.key, cut, len(stored))
				}
			}
			if _, err := columns.Parse(append(slices.Clone(stored), 0)); err == nil {
				t.Errorf("key %s: a byte too many is ignored", c.key)
			}
			for i := range stored {
				for _, x := range []byte{1, 0x80, 0xff} {
					other := slices.Clone(stored)
					other[i] ^= x
					if b, err := columns.Parse(other); err == nil {
						keyText(b.Keys) // must not panic
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
