package tables_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/leaves"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/rowfilter"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
	"github.com/bloomjoin/bloomjoin/internal/tables"
)

// leafRows renders the entries of each row of a leaf.
type leafRows struct {
	leaf *meta.Leaf
	rows []string
}

// add adds the entries of a page whose definition levels grow by shift.
func (r *leafRows) add(t testing.TB, p *parquet.Page, dict *parquet.Dictionary, shift int) {
	t.Helper()
	width := r.leaf.Width()
	plain := p.Plain
	if p.Coded {
		plain, _ = dict.AppendValues(nil, p.Indices[:p.NonNull], width, math.MaxInt)
	}
	next := 0
	value := func() string {
		i := next
		next++
		switch {
		case r.leaf.Type == format.Boolean:
			return fmt.Sprint(plain[i/8] >> (i % 8) & 1)
		case width > 0:
			return fmt.Sprintf("%x", plain[i*width:(i+1)*width])
		}
		n := 4 + int(binary.LittleEndian.Uint32(plain))
		v := plain[4:n]
		plain = plain[n:]
		return fmt.Sprintf("%q", v)
	}
	full := r.leaf.MaxDef - shift
	for i := range p.Values {
		rep, def := 0, full
		if p.Rep != nil {
			rep = int(p.Rep[i])
		}
		if p.Def != nil {
			def = int(p.Def[i])
		}
		cell := fmt.Sprintf(" %d:%d", rep, def+shift)
		if def == full {
			cell += "=" + value()
		}
		if rep == 0 {
			r.rows = append(r.rows, "")
		}
		r.rows[len(r.rows)-1] += cell
	}
	if next != p.NonNull {
		t.Fatalf("a page of %d values with %d", p.NonNull, next)
	}
}

// directly reads the leaves of the columns from the pages of Parquet files, and
// returns the rendered rows that keep lets through, or the first error.
func directly(t testing.TB, c *tables.Columns, files []*source.File, keep func(f *source.File, row int) bool) ([]string, error) {
	t.Helper()
	var out []string
	for _, f := range files {
		src, file := c.Sources[f], f.Parquet().File()
		shapes := make([]map[int]meta.Shape, f.NumGroups())
		if src.Leaves == nil {
			t.Fatalf("%s: pages are not read", f.Name())
		}
		all := make([]leafRows, len(src.Leaves))
		for i, leaf := range src.Leaves {
			all[i].leaf = &c.Leaves[i]
			for g := range f.NumGroups() {
				chunk := file.Chunk(g, leaf)
				for {
					p, err := chunk.Next(t.Context())
					if errors.Is(err, io.EOF) {
						break
					}
					if err != nil {
						chunk.Close()
						return nil, err
					}
					all[i].add(t, p, chunk.Dictionary(), c.Leaves[i].MaxDef-file.Leaves[leaf].MaxDef)
				}
				chunk.Close()
				if shapes[g] == nil {
					shapes[g] = map[int]meta.Shape{}
				}
				shapes[g][leaf] = chunk.Shape()
			}
		}
		for g, s := range shapes {
			if err := file.CheckShapes(g, s); err != nil {
				return nil, err
			}
		}
		for row := range int(f.Rows()) {
			if keep(f, row) {
				out = append(out, across(all, row))
			}
		}
	}
	return out, nil
}

func across(all []leafRows, row int) string {
	var cells []string
	for i := range all {
		cells = append(cells, all[i].rows[row])
	}
	return strings.Join(cells, " |")
}

// rendered returns the rows of a table.
func rendered(t testing.TB, c *tables.Columns, table *tables.Table) []string {
	t.Helper()
	all := make([]leafRows, len(c.Leaves))
	for i := range c.Leaves {
		all[i].leaf = &c.Leaves[i]
		for p, err := range table.Store.Pages(i, tables.UpTo32(table.Len()), leaves.Shape{MaxDef: c.Leaves[i].MaxDef}) {
			if err != nil {
				t.Fatal(err)
			}
			all[i].add(t, p, nil, 0)
		}
	}
	out := make([]string, table.Len())
	for row := range out {
		out[row] = across(all, row)
	}
	return out
}

// heldRows is what Read has read.
type heldRows struct {
	table       *tables.Table
	keys        []string // by row: the bytes of the key, or "NULL"
	batches     int
	rows, nulls int64
}

// keyText renders the key of each row of a batch.
func keyText(k *keys.Batch) []string {
	out := slices.Repeat([]string{"NULL"}, k.Len)
	for i, row := range k.Rows {
		out[row] = string(k.Append(nil, i))
	}
	return out
}

// hold reads rows into a table: as they come, or by way of their stored form, in two
// parts.
func hold(t testing.TB, c *tables.Columns, files []*source.File, o tables.ReadOptions, stored bool) (h heldRows, err error) {
	t.Helper()
	h.table = c.NewTable(nil)
	h.rows, h.nulls, err = tables.Read(t.Context(), source.Split(files, dataset.Shard{}), c, o, func(b *tables.Batch) error {
		h.batches++
		if !stored {
			h.keys = append(h.keys, keyText(b.Keys)...)
			return h.table.Append(b, nil)
		}
		all := tables.UpTo32(b.Keys.Len)
		for _, some := range [][]uint32{all[:len(all)/3], all[len(all)/3:]} {
			bytes, err := b.AppendTo([]byte("before"), some)
			if err != nil {
				return err
			}
			back, err := c.Parse(bytes[len("before"):])
			if err != nil {
				return err
			}
			h.keys = append(h.keys, keyText(back.Keys)...)
			if err := h.table.Append(back, nil); err != nil {
				return err
			}
		}
		return nil
	})
	return h, err
}

// keysIn returns the keys of all rows of the files, from Arrow records.
func keysIn(t testing.TB, files []*source.File, columns string, o keys.Options) (added []string) {
	t.Helper()
	parsed, err := keys.ParseColumns(columns)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		for g := range f.NumGroups() {
			for rec, err := range rowfilter.Read(t.Context(), f, g, nil) {
				if err != nil {
					t.Fatal(err)
				}
				enc, err := keys.NewEncoder(rec.Schema(), parsed, o)
				if err != nil {
					t.Fatal(err)
				}
				var b keys.Batch
				if err := enc.Encode(rec, &b); err != nil {
					t.Fatal(err)
				}
				added = append(added, keyText(&b)...)
			}
		}
	}
	return added
}

// manyTypes is a record with a column of each type that matters.
func manyTypes(t testing.TB, rng *rand.Rand, n int) arrow.Record {
	t.Helper()
	opt := func(name string, dt arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: dt, Nullable: true}
	}
	inner := arrow.StructOf(opt("a", arrow.PrimitiveTypes.Int32), opt("b", arrow.ListOf(arrow.BinaryTypes.String)))
	schema := arrow.NewSchema([]arrow.Field{
		opt("id", arrow.PrimitiveTypes.Int64), {Name: "row", Type: arrow.PrimitiveTypes.Int64}, opt("name", arrow.BinaryTypes.String), opt("flag", arrow.FixedWidthTypes.Boolean),
		{Name: "must", Type: arrow.FixedWidthTypes.Boolean}, opt("f", arrow.PrimitiveTypes.Float64), opt("i8", arrow.PrimitiveTypes.Int8),
		opt("u64", arrow.PrimitiveTypes.Uint64), opt("d", &arrow.Decimal128Type{Precision: 9, Scale: 2}),
		opt("u", &arrow.FixedSizeBinaryType{ByteWidth: 16}), opt("ts", &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}),
		opt("none", arrow.Null), opt("list", arrow.ListOf(arrow.PrimitiveTypes.Int32)), opt("deep", arrow.ListOf(arrow.ListOf(inner))), opt("st", inner),
		opt("map", arrow.MapOf(arrow.BinaryTypes.String, arrow.ListOf(arrow.PrimitiveTypes.Int8))), {Name: "who", Type: arrow.StructOf(opt("id", arrow.PrimitiveTypes.Int64)), Nullable: true},
	}, nil)
	var rows []string
	for i := range n {
		row := fmt.Sprintf(`"row":%d,"must":%t`, i, i%2 == 0)
		if rng.IntN(8) > 0 {
			row += fmt.Sprintf(`,"id":%d,"name":"n%d"`, rng.IntN(100), rng.IntN(40))
		}
		switch rng.IntN(4) {
		case 0:
			row += `,"flag":true,"f":1.5,"i8":-5,"u64":18446744073709551615,"d":"-1234567.89","u":"AAECAwQFBgcICQoLDA0ODw==","ts":"1960-01-02 03:04:05.678901"`
		case 1:
			row += fmt.Sprintf(`,"list":[1,null,%d],"deep":[[{"a":1,"b":["x",null]},null],[],null],"st":{"a":null,"b":[]},"map":[{"key":"k","value":[1]},{"key":"","value":null}]`, i)
		case 2:
			row += fmt.Sprintf(`,"list":[],"deep":[],"map":[],"who":{"id":%d},"flag":false`, rng.IntN(50))
		}
		rows = append(rows, "{"+row+"}")
	}
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader("["+strings.Join(rows, ",")+"]"))
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// Rows of Parquet files are held as their pages have them, with the keys that Arrow
// records give, whichever rows are read and however they are divided.
func TestReadRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 16))
	dir := t.TempDir()
	names := []string{sourcetest.Write(t, filepath.Join(dir, "types.parquet"), 700, manyTypes(t, rng, 1600))}
	for i, l := range roomtest.Layouts {
		names = append(names, roomtest.WriteClicks(t, filepath.Join(dir, fmt.Sprint(i, ".parquet")), roomtest.Clicks(rng, 1500, 1000*i), l))
	}
	members := roomtest.ExactOf("id", 3, 5, 8, 13, 21, 34, 55, 89)
	for _, name := range names {
		for _, inFlight := range []int64{0, 1} {
			if inFlight > 0 && name != names[0] {
				continue
			}
			files := roomtest.Open(t, source.Opening{InFlight: inFlight}, name)
			c, err := tables.NewColumns(files, nil, false)
			if err != nil {
				t.Fatal(err)
			}
			keys := keysIn(t, files, "id", keys.Options{})
			for _, match := range []bool{false, true} {
				keep := func(_ *source.File, row int) bool { return true }
				var m *keyscan.Predicate
				if match {
					m = &keyscan.Predicate{Match: dataset.Match{Filter: (*codec.Filter)(members), Key: "id"}}
					of := map[string]bool{}
					for _, id := range []int64{3, 5, 8, 13, 21, 34, 55, 89} {
						of[roomtest.IntegerKey(id)] = true
					}
					keep = func(_ *source.File, row int) bool { return of[keys[row]] }
				}
				want, err := directly(t, c, files, keep)
				if err != nil {
					t.Fatal(err)
				}
				for _, threads := range []int{1, 4} {
					what := fmt.Sprintf("%s, in flight %d, match %t, threads %d", filepath.Base(name), inFlight, match, threads)
					h, err := hold(t, c, files, tables.ReadOptions{Key: "id", Match: m, Threads: threads}, threads == 4)
					if err != nil {
						t.Fatalf("%s: %v", what, err)
					}
					sameRows(t, what, rendered(t, c, h.table), want)
					var wantKeys []string
					nulls := 0
					for row, k := range keys {
						if keep(nil, row) {
							wantKeys = append(wantKeys, k)
						}
						if k == "NULL" {
							nulls++
						}
					}
					sameRows(t, what+": keys", h.keys, wantKeys)
					sourcetest.Equal(t, what+": rows and NULLs", []int64{h.rows, h.nulls}, []int64{files[0].Rows(), int64(nulls)})
				}
			}
		}
	}
}

func sameRows(t testing.TB, what string, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d rows, want %d", what, len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("%s: row %d:\n got %s\nwant %s", what, i, got[i], want[i])
		}
	}
}

// all lets every row through.
func all(*source.File, int) bool { return true }

// compareRows reads rows with and without their stored form, and compares them with
// those of the pages.
func compareRows(t testing.TB, what string, c *tables.Columns, files []*source.File, o tables.ReadOptions, keep func(*source.File, int) bool) heldRows {
	t.Helper()
	want, err := directly(t, c, files, keep)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	var h heldRows
	for _, stored := range []bool{true, false} {
		if h, err = hold(t, c, files, o, stored); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		sameRows(t, what, rendered(t, c, h.table), want)
	}
	return h
}

// A row group is read in blocks of bounded size if memory is limited, for keys of each
// kind: of the table's own leaf, of another leaf, and those that need records.
func TestRowsInBlocks(t *testing.T) {
	const n = 6000
	rng := rand.New(rand.NewPCG(2, 16))
	path := sourcetest.Write(t, filepath.Join(t.TempDir(), "ids.parquet"), n, sourcetest.Record(t, memory.DefaultAllocator,
		sourcetest.Col{Name: "id", Values: sourcetest.Numbers(n, func(i int) any {
			if rng.IntN(9) == 0 {
				return nil
			}
			return rng.IntN(n)
		})},
		sourcetest.Col{Name: "name", Values: sourcetest.Numbers(n, func(i int) string { return strings.Repeat("x", i/20) })},
		sourcetest.Col{Name: "row", Values: sourcetest.Numbers(n, func(i int) int64 { return int64(i) })},
		sourcetest.Col{Name: "small", Values: sourcetest.Numbers(n, func(i int) int32 { return int32(i) - n/2 })},
	))
	for i, columns := range [][]string{nil, {"row", "name"}, {"name"}, {}} {
		for l, k := range []string{"id", "name", "small", "id,name", "row::string"} {
			if columns != nil && k != "id" && k != "id,name" {
				continue
			}
			if (i+l)%cases.Count(2, 1, 1) != 0 {
				continue
			}
			var batches int
			for _, inFlight := range []int64{0, 1 << 20} {
				files := roomtest.Open(t, source.Opening{InFlight: inFlight}, path)
				c := roomtest.ColumnsOf(t, files, columns...)
				what := fmt.Sprintf("columns %v, key %s, in flight %d", columns, k, inFlight)
				h := compareRows(t, what, c, files, tables.ReadOptions{Key: k, Threads: 2}, all)
				sameRows(t, what+": keys", h.keys, keysIn(t, files, k, keys.Options{}))
				if columns == nil && inFlight > 0 && h.batches <= max(batches, 2) {
					t.Errorf("%s: %d batches, %d without a limit", what, h.batches, batches)
				}
				batches = h.batches
			}
		}
	}
}

// A reader of rows passes on the rows of a leaf in any portions, and wherever its pages
// are dropped in between.
func TestPortionsOfLeaves(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 16))
	dir := t.TempDir()
	files := roomtest.Open(t, source.Opening{}, sourcetest.Write(t, filepath.Join(dir, "types.parquet"), 700, manyTypes(t, rng, 1000)))
	for i, l := range roomtest.Layouts[:3] {
		files = append(files, roomtest.Open(t, source.Opening{}, roomtest.WriteClicks(t, filepath.Join(dir, fmt.Sprint(i, ".parquet")), roomtest.Clicks(rng, 1000, 0), l))...)
	}
	for _, f := range files {
		c := roomtest.ColumnsOf(t, []*source.File{f})
		file := f.Parquet().File()
		for try := range 4 {
			var all []leafRows
			chosen := map[int]bool{}
			for i := range file.Leaves {
				all = append(all, leafRows{leaf: &c.Leaves[i]})
			}
			first := 0
			for g := range f.NumGroups() {
				rows := tables.UpTo32(int(f.GroupRows(g)))
				if try%2 == 1 {
					rows = slices.DeleteFunc(rows, func(uint32) bool { return rng.IntN(3) > 0 })
				}
				for _, row := range rows {
					chosen[first+int(row)] = true
				}
				first += int(f.GroupRows(g))
				for i := range file.Leaves {
					r := file.NewRowReader(t.Context(), g, []int{i}, rows)
					r.Bytes, r.Again, r.Keep = 1<<30, 1<<30, 1<<30
					for r.Left() > 0 {
						r.Rows = 1 + rng.IntN(300)
						if _, err := r.Next(func(int) error {
							return r.Pages(t.Context(), func(_ int, p *parquet.Page, dict *parquet.Dictionary) error {
								all[i].add(t, p, dict, 0)
								return nil
							})
						}); err != nil {
							t.Fatal(err)
						}
						if rng.IntN(4) == 0 {
							r.Rest()
						}
					}
					r.Close()
				}
			}
			rows, err := directly(t, c, []*source.File{f}, func(_ *source.File, row int) bool { return chosen[row] })
			if err != nil {
				t.Fatal(err)
			}
			got := make([]string, len(rows))
			for row := range got {
				got[row] = across(all, row)
			}
			sameRows(t, fmt.Sprintf("%s, try %d", f.Name(), try), got, rows)
		}
	}
}

// Values of a dictionary are cut by their size after expansion.
func TestLongRowsAreCut(t *testing.T) {
	f := roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Memory: 64 << 20}}, roomtest.LongWords)
	c := roomtest.ColumnsOf(t, f)
	stop := errors.New("enough")
	rows := 0
	_, _, err := tables.Read(t.Context(), source.Split(f, dataset.Shard{}), c, tables.ReadOptions{Key: c.Schema.Field(0).Name, Threads: 2}, func(b *tables.Batch) error {
		if n := b.Block.Bytes(); n > 8<<20 {
			t.Fatalf("a block of %d bytes", n)
		}
		if rows += b.Keys.Len; rows > 100 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) || rows > 1000 {
		t.Fatalf("%v after %d rows", err, rows)
	}
	f = roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Memory: 64 << 20}}, roomtest.LongList)
	c = roomtest.ColumnsOf(t, f)
	_, _, err = tables.Read(t.Context(), source.Split(f, dataset.Shard{}), c, tables.ReadOptions{Key: "user", Threads: 2}, func(b *tables.Batch) error { return nil })
	sourcetest.Says(t, "a long list", err, fault.ErrMemory, roomtest.LongList, "row group 1", "column l.list.element")
}

// Every file of the vectors that can be read is held as its pages have it.
func TestRowsOfVectors(t *testing.T) {
	paths, err := filepath.Glob("../../testdata/vectors/*.parquet")
	if err != nil || len(paths) < 10 {
		t.Fatal(paths, err)
	}
	held := 0
	for _, path := range paths {
		files, err := source.Open(t.Context(), []string{path}, source.Opening{OpenOptions: source.OpenOptions{}})
		if err != nil {
			continue // which others test
		}
		c := roomtest.ColumnsOf(t, files)
		want, wantErr := directly(t, c, files, all)
		for _, f := range c.Schema.Fields() {
			if _, err := keys.ClassOf(f.Type); err != nil {
				continue
			}
			k := keys.Path{f.Name}.String()
			h, err := hold(t, c, files, tables.ReadOptions{Key: k}, false)
			if (wantErr == nil) != (err == nil) {
				t.Errorf("%s: key %s: %v; directly: %v", path, k, err, wantErr)
			}
			if err != nil {
				continue
			}
			held++
			sameRows(t, path, rendered(t, c, h.table), want)
			sameRows(t, path+": keys", h.keys, keysIn(t, files, k, keys.Options{}))
		}
		if err := source.Close(files); err != nil {
			t.Error(err)
		}
	}
	if held < 20 {
		t.Errorf("only %d tables", held)
	}
}
