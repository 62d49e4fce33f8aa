package arrowparquet

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/decimal128"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/internal/parquet"
)

// everything returns a schema of the types that survive a round trip.
func everything() *arrow.Schema {
	meta := func(kv ...string) arrow.Metadata {
		var k, v []string
		for i := 0; i < len(kv); i += 2 {
			k, v = append(k, kv[i]), append(v, kv[i+1])
		}
		return arrow.NewMetadata(k, v)
	}
	f := func(name string, dt arrow.DataType, kv ...string) arrow.Field {
		return arrow.Field{Name: name, Type: dt, Nullable: true, Metadata: meta(kv...)}
	}
	inner := arrow.StructOf(f("a", arrow.PrimitiveTypes.Int32), f("b", arrow.ListOf(arrow.BinaryTypes.String)))
	fields := []arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64, Metadata: meta(fieldIDKey, "0")},
		f("bool", arrow.FixedWidthTypes.Boolean, fieldIDKey, "7"),
		f("i8", arrow.PrimitiveTypes.Int8), f("i16", arrow.PrimitiveTypes.Int16), f("i32", arrow.PrimitiveTypes.Int32),
		f("u8", arrow.PrimitiveTypes.Uint8), f("u16", arrow.PrimitiveTypes.Uint16),
		f("u32", arrow.PrimitiveTypes.Uint32), f("u64", arrow.PrimitiveTypes.Uint64),
		f("f16", arrow.FixedWidthTypes.Float16), f("f32", arrow.PrimitiveTypes.Float32), f("f64", arrow.PrimitiveTypes.Float64),
		f("s", arrow.BinaryTypes.String, "note", "kept"), f("ls", arrow.BinaryTypes.LargeString),
		f("bin", arrow.BinaryTypes.Binary), f("lbin", arrow.BinaryTypes.LargeBinary),
		f("uuid", &arrow.FixedSizeBinaryType{ByteWidth: 16}, extensionKey, "arrow.uuid"),
		f("json", arrow.BinaryTypes.String, extensionKey, "arrow.json"),
		f("enum", arrow.BinaryTypes.String, logicalKey, "ENUM"),
		f("d", &arrow.Decimal128Type{Precision: 9, Scale: 2}), f("d38", &arrow.Decimal128Type{Precision: 38, Scale: 4}),
		f("date", arrow.FixedWidthTypes.Date32),
		f("t32", arrow.FixedWidthTypes.Time32ms), f("t64", arrow.FixedWidthTypes.Time64ns),
		f("ts", &arrow.TimestampType{Unit: arrow.Microsecond}),
		f("tsz", &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "UTC"}),
		f("tsp", &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "Europe/Paris"}),
		f("dur", arrow.FixedWidthTypes.Duration_us),
		f("null", arrow.Null),
		f("list", arrow.ListOf(arrow.PrimitiveTypes.Int32)),
		f("llist", arrow.LargeListOf(arrow.PrimitiveTypes.Float64)),
		f("deep", arrow.ListOf(arrow.ListOf(inner))),
		f("st", inner, fieldIDKey, "9"),
		f("map", arrow.MapOf(arrow.BinaryTypes.String, arrow.ListOf(arrow.PrimitiveTypes.Int8))),
	}
	m := meta("owner", "somebody")
	return arrow.NewSchema(fields, &m)
}

// rowsJSON returns n rows of everything; every third column value is missing.
func rowsJSON(n int) string {
	shapes := []string{
		`{"id":%d,"bool":true,"i8":-128,"i16":-300,"i32":-2147483648,"u8":255,"u16":65535,"u32":4294967295,"u64":18446744073709551615,
		 "f16":1.5,"f32":-0.25,"f64":1e300,"s":"one","ls":"L","bin":"AAE=","lbin":"AA==","uuid":"AAECAwQFBgcICQoLDA0ODw==","json":"{}","enum":"A",
		 "d":"-1234567.89","d38":"1234567890123456789012345678901234.5678","date":"1969-12-31","t32":"01:02:03.004","t64":"23:59:59.999999999",
		 "ts":"1960-01-02 03:04:05.678901","tsz":"2024-02-29 12:00:00.123456789","tsp":"2024-02-29 12:00:00.123","dur":-5,"null":null,
		 "list":[1,null,3],"llist":[],"deep":[[{"a":1,"b":["x",null]},null],[],null],"st":{"a":null,"b":[]},"map":[{"key":"k","value":[1]},{"key":"","value":null}]}`,
		`{"id":%d}`,
		`{"id":%d,"bool":false,"s":"","list":[],"deep":[],"st":{"a":5,"b":null},"map":[],"i8":1,"u64":0,"d":"0.01","llist":[1.5,null]}`,
		`{"id":%d,"s":"a longer text that is not the same as others","list":[7],"deep":[[{"a":null,"b":null}]],"map":[{"key":"z","value":[]}]}`,
	}
	rows := make([]string, n)
	for i := range rows {
		rows[i] = strings.Replace(shapes[i%len(shapes)], "%d", itoa(i), 1)
	}
	return "[" + strings.Join(rows, ",") + "]"
}

func itoa(i int) string { return strconv.Itoa(i) }

func record(t testing.TB, mem memory.Allocator, sc *arrow.Schema, json string) arrow.Record {
	rec, _, err := array.RecordFromJSON(mem, sc, strings.NewReader(json))
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// written returns the file of rec, divided into records of at most step rows.
func written(t testing.TB, rec arrow.Record, step int64, opts WriterOptions) []byte {
	var b bytes.Buffer
	w, err := NewParquetWriter(&b, rec.Schema(), opts)
	if err != nil {
		t.Fatal(err)
	}
	for i := int64(0); i < rec.NumRows(); i += step {
		part := rec.NewSlice(i, min(i+step, rec.NumRows()))
		if err := w.Write(part); err != nil {
			t.Fatal(err)
		}
		part.Release()
	}
	rows, n, err := w.Close()
	if err != nil || rows != rec.NumRows() || n != int64(b.Len()) {
		t.Fatalf("%d rows, %d bytes, %v", rows, n, err)
	}
	return b.Bytes()
}

func open(t testing.TB, b []byte, mem memory.Allocator) *Parquet {
	p, err := OpenParquet(bytes.NewReader(b), int64(len(b)), "x.parquet", ParquetOptions{Mem: mem})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// openIn is open for a file whose pages are charged to the room.
func openIn(t testing.TB, b []byte, room *parquet.PageBudget) *Parquet {
	p, err := OpenParquet(bytes.NewReader(b), int64(len(b)), "x.parquet", ParquetOptions{Room: room})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// all reads the file into one table.
func all(t testing.TB, p *Parquet, columns []int) arrow.Table {
	var recs []arrow.Record
	var sc *arrow.Schema
	for g := range p.NumGroups() {
		for rec, err := range p.Read(context.Background(), g, columns) {
			if err != nil {
				t.Fatal(err)
			}
			rec.Retain()
			recs = append(recs, rec)
			sc = rec.Schema()
		}
	}
	defer func() {
		for _, r := range recs {
			r.Release()
		}
	}()
	if sc == nil {
		sc = p.Schema()
	}
	return array.NewTableFromRecords(sc, recs)
}

// same compares a column with an array, both values and validity.
func same(c *arrow.Column, want arrow.Array, mem memory.Allocator) bool {
	got, err := array.Concatenate(c.Data().Chunks(), mem)
	if err != nil {
		return false
	}
	defer got.Release()
	return array.Equal(got, want)
}

func decimal(n int64) decimal128.Num { return decimal128.FromI64(n) }
