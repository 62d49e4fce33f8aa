package parquet_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	arrowparquet "github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/adapt"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// The oracle: arrow/go writes the rows of a file under the union's schema; its
// entries must equal those of the file's adapted pages. Rows are JSON, where a
// missing column is NULL.

func writeArrow(t testing.TB, name string, schema *arrow.Schema, rows []string, options ...arrowparquet.WriterProperty) *parquet.File {
	t.Helper()
	if strconv.IntSize < 64 {
		t.Skip("arrow/go's Parquet writer panics on a count that is not aligned to 64 bits")
	}
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader("["+strings.Join(rows, ",")+"]"))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	defer rec.Release()
	var out bytes.Buffer
	options = append(options, arrowparquet.WithMaxRowGroupLength(7))
	w, err := pqarrow.NewFileWriter(schema, &out, arrowparquet.NewWriterProperties(options...), pqarrow.DefaultWriterProps())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(rec); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := open(out.Bytes(), name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// entries is the contents of a column chunk, one text per entry.
type entries []string

func (e *entries) add(p *parquet.Page, dict *parquet.Dictionary, l *meta.Leaf) {
	value := 0
	for i := range p.Values {
		var rep, def uint8
		if p.Rep != nil {
			rep = p.Rep[i]
		}
		if p.Def != nil {
			def = p.Def[i]
		}
		text := ""
		if int(def) == l.MaxDef {
			text = fmt.Sprintf("%x", plainValue(p, dict, l, value))
			value++
		}
		*e = append(*e, fmt.Sprintf("%d/%d %s", rep, def, text))
	}
}

func plainValue(p *parquet.Page, dict *parquet.Dictionary, l *meta.Leaf, i int) []byte {
	if l.Type == format.ByteArray {
		return p.Bytes(i, dict)
	}
	plain := p.Plain
	if p.Coded {
		plain, i = dict.Plain, int(p.Indices[i])
	}
	width := map[format.Type]int{format.Int32: 4, format.Float: 4, format.Int64: 8, format.Double: 8, format.FixedLenByteArray: l.TypeLength}[l.Type]
	if width == 0 {
		return []byte{plain[i/8] >> (i % 8) & 1}
	}
	return plain[i*width : (i+1)*width]
}

// chunkEntries reads a chunk, or its selected rows, through s if that is not nil.
func chunkEntries(t testing.TB, f *parquet.File, g, leaf int, selected []uint32, s *adapt.LeafSource, l *meta.Leaf) (e entries) {
	t.Helper()
	var pages *adapt.Pages
	if s != nil {
		if pages = s.Pages(g); s.Missing {
			n := int(f.RowGroups[g].Rows)
			if selected != nil {
				n = len(selected)
			}
			e.add(pages.Nulls(n), nil, l)
			return e
		}
		leaf = s.Leaf
	}
	c := f.Chunk(g, leaf)
	defer c.Close()
	if selected != nil {
		c.Select(selected)
	}
	for {
		p, err := c.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return e
		}
		if err != nil {
			t.Fatal(err)
		}
		dict := c.Dictionary()
		if s != nil {
			if p, dict, err = pages.Adapt(p, dict); err != nil {
				t.Fatal(err)
			}
		}
		e.add(p, dict, l)
	}
}

func field(name string, typ arrow.DataType, nullable bool) arrow.Field {
	return arrow.Field{Name: name, Type: typ, Nullable: nullable}
}

func TestAdaptedFilesAgainstArrow(t *testing.T) {
	i8, i32, i64, u32 := arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Uint32
	f32, f64, str := arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64, arrow.BinaryTypes.String
	ms, us := &arrow.TimestampType{Unit: arrow.Millisecond}, &arrow.TimestampType{Unit: arrow.Microsecond}
	schemas := []*arrow.Schema{
		arrow.NewSchema([]arrow.Field{
			field("k", i64, false), field("n", i8, true), field("f", f32, true), field("at", ms, true),
			field("d", &arrow.Decimal128Type{Precision: 7, Scale: 2}, true),
			field("s", arrow.StructOf(field("a", i32, true), field("b", str, false)), true),
			field("list", arrow.ListOf(arrow.StructOf(field("x", i32, false), field("tags", arrow.ListOf(str), true))), true),
			field("m", arrow.MapOf(str, i32), true),
		}, nil),
		arrow.NewSchema([]arrow.Field{
			field("k", i64, true), field("n", u32, true), field("f", f64, true), field("at", us, true), field("new", str, true),
			field("d", &arrow.Decimal128Type{Precision: 20, Scale: 2}, true),
			field("s", arrow.StructOf(field("a", i64, true), field("c", arrow.StructOf(field("z", i32, true)), true)), true),
			field("list", arrow.ListOf(arrow.StructOf(field("x", i64, true), field("y", arrow.ListOf(i32), true))), true),
			field("m", arrow.MapOf(str, i64), true), field("deep", arrow.ListOf(arrow.ListOf(i32)), true),
		}, nil),
		arrow.NewSchema([]arrow.Field{field("k", i64, false)}, nil),
	}
	union := arrow.NewSchema([]arrow.Field{
		field("k", i64, true), field("n", i64, true), field("f", f64, true), field("at", us, true),
		field("d", &arrow.Decimal128Type{Precision: 20, Scale: 2}, true),
		field("s", arrow.StructOf(field("a", i64, true), field("b", str, true), field("c", arrow.StructOf(field("z", i32, true)), true)), true),
		field("list", arrow.ListOf(arrow.StructOf(field("x", i64, true), field("tags", arrow.ListOf(str), true), field("y", arrow.ListOf(i32), true))), true),
		field("m", arrow.MapOf(str, i64), true),
		field("new", str, true), field("deep", arrow.ListOf(arrow.ListOf(i32)), true),
	}, nil)
	rows := [][]string{{
		`{"k":1,"n":-7,"f":0.5,"at":"2024-02-29T12:34:56.789","d":"-12345.67","s":{"a":5,"b":"x"},"list":[{"x":1,"tags":["p","q","r"]},{"x":2},{"x":3,"tags":[]}],"m":[{"key":"one","value":1},{"key":"none","value":null}]}`,
		`{"k":2,"n":null,"f":null,"at":null,"d":null,"s":null,"list":null,"m":null}`,
		`{"k":3,"n":127,"f":-1.5e9,"at":"1901-01-01T00:00:00.001","d":"0.01","s":{"a":null,"b":""},"list":[],"m":[]}`,
		`{"k":4,"n":-128,"f":1,"at":null,"d":"99999.99","s":{"a":-1,"b":"yy"},"list":[{"x":9,"tags":[null,"u",null]},null,{"x":8}],"m":[{"key":"k","value":-2147483648}]}`,
	}, {
		`{"k":null,"n":4294967295,"f":1e300,"at":"2024-02-29T12:34:56.789012","new":"neu","d":"123456789012345678.91","s":{"a":9007199254740993,"c":{"z":3}},"list":[{"x":1,"y":[1,2,3]},{"x":null,"y":null}],"m":[{"key":"a","value":1099511627776}],"deep":[[1,2],[],[3]]}`,
		`{"k":-1,"n":0,"f":null,"at":null,"new":null,"d":null,"s":{"a":null,"c":null},"list":[],"m":null,"deep":null}`,
		`{"k":5,"n":null,"f":0,"at":null,"new":"","d":null,"s":{"a":1,"c":{"z":null}},"list":[{"x":3,"y":[]}],"m":[],"deep":[[null],[4]]}`,
		`{"k":6,"s":null,"list":null,"deep":[]}`,
	}, {`{"k":10}`, `{"k":11}`}}
	for name, options := range map[string][]arrowparquet.WriterProperty{
		"dictionaries": {arrowparquet.WithDataPageSize(64)},
		"plain, zstd":  {arrowparquet.WithDictionaryDefault(false), arrowparquet.WithDataPageSize(40), arrowparquet.WithCompression(compress.Codecs.Zstd)},
	} {
		t.Run(name, func(t *testing.T) {
			var files []*parquet.File
			var all [][]string
			for i, s := range schemas {
				var more []string
				for k := range 25 { // several row groups and pages
					more = append(more, rows[i][k*(k+1)/2%len(rows[i])])
				}
				all = append(all, more)
				files = append(files, writeArrow(t, fmt.Sprintf("%d.parquet", i), s, more, options...))
			}
			got, err := adapt.Union(files, nil)
			if err != nil {
				t.Fatal(err)
			}
			// arrow/go assigns field ids in each file separately.
			want := writeArrow(t, "union", union, nil)
			for i := range want.Metadata.Schema {
				want.Metadata.Schema[i].FieldID.Reset()
			}
			if diff, same := adapt.SameSchema(got, want.Metadata.Schema); !same {
				t.Fatal(diff)
			}
			for i, f := range files {
				compareWithArrow(t, f, got, writeArrow(t, "oracle", union, all[i], options...))
			}
		})
	}
}

func compareWithArrow(t *testing.T, f *parquet.File, schema []meta.Element, oracle *parquet.File) {
	a, err := adapt.New(f, schema)
	if err != nil {
		t.Fatal(err)
	}
	for g := range f.RowGroups {
		for leaf := range oracle.Leaves {
			l := &oracle.Leaves[leaf]
			for _, selected := range [][]uint32{nil, {0}, {1, 3}, {2, 3, 6}} {
				if n := len(selected); n > 0 && int64(selected[n-1]) >= f.RowGroups[g].Rows {
					continue
				}
				want := chunkEntries(t, oracle, g, leaf, selected, nil, l)
				got := chunkEntries(t, f, g, leaf, selected, &a.Leaves[leaf], l)
				if !slices.Equal(got, want) {
					t.Errorf("%s: row group %d, %s, rows %v:\n%q, want\n%q", f.Name, g, l.Dotted, selected, got, want)
				}
			}
		}
	}
}

// Real files of many writers: a schema is its own union, and pages pass unchanged.
func TestUnionOfOneSchema(t *testing.T) {
	check := func(t *testing.T, b []byte, name string) {
		f, err := open(b, name)
		if err != nil {
			return
		}
		twice, err := adapt.Union([]*parquet.File{f, f}, nil)
		if errors.Is(err, fault.ErrUnsupported) { // two columns with one name, or unknown annotations
			t.Log(err)
			return
		}
		if err != nil {
			t.Error(err)
			return
		}
		if diff, same := adapt.SameSchema(twice, f.Metadata.Schema); !same {
			t.Errorf("%s: %s", name, diff)
		}
		if err := adapt.Covers(twice, f, nil); err != nil {
			t.Error(err)
		}
		a, err := adapt.New(f, twice)
		if err != nil {
			t.Fatal(err)
		}
		for i := range a.Leaves {
			if s := &a.Leaves[i]; !s.Identity() || s.Leaf != i {
				t.Errorf("%s: leaf %d does not pass as it is", name, i)
			}
		}
	}
	for name, b := range small(t) {
		check(t, b, name)
	}
	t.Run("corpora", func(t *testing.T) {
		for _, path := range corpus(t) {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			check(t, b, filepath.Base(path))
		}
	})
}
