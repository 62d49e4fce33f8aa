package spill_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"go.uber.org/goleak"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arrowtest"
	"github.com/bloomjoin/bloomjoin/internal/spill"
	"github.com/bloomjoin/bloomjoin/internal/take"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// samples maps the JSON of five values to the types that they are valid for.
func samples() map[string][]arrow.DataType {
	f, p, b := arrow.FixedWidthTypes, arrow.PrimitiveTypes, arrow.BinaryTypes
	nullable := func(name string, dt arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: dt, Nullable: true}
	}
	pair := arrow.StructOf(nullable("a", p.Int32), nullable("b", b.String))
	return map[string][]arrow.DataType{
		`[true, null, false, true, true]`:                                                           {f.Boolean},
		`[1, null, 3, 0, 127]`:                                                                      {p.Int8, p.Int64, p.Uint16, p.Uint64, f.Float16, p.Float32, p.Float64, f.Duration_s, arrowtest.ExtensionOf(p.Int64)},
		`["1.50", null, "-3.25", "0.00", "0.01"]`:                                                   {&arrow.Decimal128Type{Precision: 20, Scale: 2}, &arrow.Decimal256Type{Precision: 60, Scale: 2}},
		`["1970-01-02", null, "1969-12-31", "2024-02-29", "2001-01-01"]`:                            {f.Date32, f.Date64, f.Timestamp_ns, &arrow.TimestampType{Unit: arrow.Second}},
		`["YWJj", null, "AAAA", "////", "eHl6"]`:                                                    {&arrow.FixedSizeBinaryType{ByteWidth: 3}, b.Binary, b.LargeBinary, b.BinaryView},
		`["one", null, "", "a longer text that goes on", "\u0000"]`:                                 {b.String, b.LargeString, b.StringView},
		`[null, null, null, null, null]`:                                                            {arrow.Null, p.Int32, b.String, pair},
		`[[1,2,3], null, [], [null], [4,null]]`:                                                     {arrow.ListOf(p.Int16), arrow.LargeListOf(p.Int64)},
		`[["a","b"], null, ["c",null], [null,null], ["",""]]`:                                       {arrow.FixedSizeListOf(2, b.String), arrow.ListOf(b.LargeString)},
		`[[{"key":"a","value":1},{"key":"b","value":null}], null, [], [{"key":"c","value":3}], []]`: {arrow.MapOf(b.String, p.Int32)},
		`[{"a":1,"b":"x"}, null, {"a":null,"b":""}, {}, {"a":7,"b":"y"}]`:                           {pair},
		`[[{"a":1,"b":"x"}], null, [], [null], [{"a":2,"b":null},{}]]`:                              {arrow.ListOf(pair)},
		`[{}, null, {}, {}, {}]`:                                                                    {arrow.StructOf()},
	}
}

// A record of every type reads back the same, at any position.
func TestRecords(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	var fields []arrow.Field
	var cols []arrow.Array
	for json, types := range samples() {
		for _, dt := range types {
			storage := dt
			if e, ok := dt.(arrow.ExtensionType); ok {
				storage = e.StorageType()
			}
			a, _, err := array.FromJSON(mem, storage, strings.NewReader(json))
			if err != nil {
				t.Fatalf("%s: %v", dt, err)
			}
			if storage != dt {
				d := array.NewData(dt, a.Len(), a.Data().Buffers(), nil, a.NullN(), 0)
				a.Release()
				a = array.MakeFromData(d)
				d.Release()
			}
			fields = append(fields, arrow.Field{Name: dt.String(), Type: dt, Nullable: true})
			cols = append(cols, a)
		}
	}
	schema := arrow.NewSchema(fields, nil)
	whole := array.NewRecord(schema, cols, 5)
	defer whole.Release()
	for _, c := range cols {
		c.Release()
	}
	for _, rows := range [][]int{{0, 1, 2, 3, 4}, {4}, {}, {-1, 3, 3, 0, -1, 2, 1, 4, 0}} {
		want, err := take.Record(mem, whole, rows)
		if err != nil {
			t.Fatal(err)
		}
		for before := range 9 {
			b, err := spill.AppendRecord(make([]byte, before), want)
			if err != nil {
				t.Fatal(err)
			}
			got, err := spill.Record(schema, b, before)
			if err != nil {
				t.Fatal(err)
			}
			if !array.RecordEqual(got, want) {
				t.Fatalf("rows %v: %v, want %v", rows, got, want)
			}
			for i, c := range got.Columns() {
				if c.NullN() != want.Column(i).NullN() {
					t.Errorf("%s: %d NULLs, want %d", fields[i].Name, c.NullN(), want.Column(i).NullN())
				}
			}
			got.Release()
			if len(rows) > 0 {
				other := arrow.NewSchema(append([]arrow.Field{{Name: "x", Type: arrow.ListOf(arrow.Null)}}, fields...), nil)
				if rec, err := spill.Record(other, b, before); err == nil {
					rec.Release()
					t.Fatal("read by another schema")
				}
			}
		}
		want.Release()
	}
}

// AppendRecord refuses what it cannot encode.
func TestRecordsRefused(t *testing.T) {
	ints, _, err := array.FromJSON(memory.DefaultAllocator, arrow.PrimitiveTypes.Int8, strings.NewReader(`[0, 1]`))
	if err != nil {
		t.Fatal(err)
	}
	dict := array.NewDictionaryArray(&arrow.DictionaryType{IndexType: ints.DataType(), ValueType: ints.DataType()}, ints, ints)
	tail := array.NewSlice(ints, 1, 2)
	for _, a := range []arrow.Array{dict, tail} {
		rec := array.NewRecord(arrow.NewSchema([]arrow.Field{{Name: "c", Type: a.DataType()}}, nil), []arrow.Array{a}, int64(a.Len()))
		_, err := spill.AppendRecord(nil, rec)
		if err == nil || !strings.Contains(err.Error(), "column c") {
			t.Errorf("%s: %v", a.DataType(), err)
		}
		if a == dict && !errors.Is(err, fault.ErrUnsupported) {
			t.Errorf("a dictionary: %v", err)
		}
	}
}
