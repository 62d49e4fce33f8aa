package arrow18_test

import (
	"errors"
	"testing"

	v18 "github.com/apache/arrow-go/v18/arrow"
	v15 "github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/arrow18"
)

// sample is a type of both sides, and values of it that both sides read from
// JSON by themselves.
type sample struct {
	name string
	v15  v15.DataType
	v18  v18.DataType
	json string
	// noIPC means that v15 cannot write such arrays: they are compared in memory alone.
	noIPC bool
}

var (
	md15 = v15.NewMetadata([]string{"unit", "empty"}, []string{"km", ""})
	md18 = v18.NewMetadata([]string{"unit", "empty"}, []string{"km", ""})

	item15 = v15.Field{Name: "entry", Type: v15.PrimitiveTypes.Int16, Nullable: true, Metadata: md15}
	item18 = v18.Field{Name: "entry", Type: v18.PrimitiveTypes.Int16, Nullable: true, Metadata: md18}
	name15 = v15.Field{Name: "name", Type: v15.BinaryTypes.String, Nullable: true}
	name18 = v18.Field{Name: "name", Type: v18.BinaryTypes.String, Nullable: true}
)

func map15(sorted, nullable bool) *v15.MapType {
	m := v15.MapOfWithMetadata(v15.BinaryTypes.String, md15, v15.PrimitiveTypes.Int32, v15.Metadata{})
	m.KeysSorted = sorted
	m.SetItemNullable(nullable)
	return m
}

func map18(sorted, nullable bool) *v18.MapType {
	m := v18.MapOfFields(v18.Field{Type: v18.BinaryTypes.String, Metadata: md18}, v18.Field{Type: v18.PrimitiveTypes.Int32, Nullable: nullable})
	m.KeysSorted = sorted
	return m
}

const (
	integers = `[1, null, 0, 100, 7, 7, null, 12]`
	reals    = `[1.5, null, 0, -0.25, 7, 7, null, 12]`
	words    = `["a", null, "", "bcdefghijklmnopqrstuvw", "é", "x", null, "a longer one than a view holds inline"]`
	lists    = `[[1, 2], null, [], [3, null], [4], [5, 6, 7], null, [8]]`
	maps     = `[[{"key": "a", "value": 1}], null, [], [{"key": "b", "value": 2}, {"key": "c", "value": 3}], null, [{"key": "z", "value": 9}], [], []]`
	unions   = `[[5, 1], [5, null], [9, "a"], [9, ""], [5, 7], [9, null], [9, "bcd"], [5, 3]]`
)

var samples = []sample{
	{name: "null", v15: v15.Null, v18: v18.Null, json: `[null, null, null, null, null, null, null, null]`},
	{name: "bool", v15: v15.FixedWidthTypes.Boolean, v18: v18.FixedWidthTypes.Boolean, json: `[true, null, false, true, true, false, null, true]`},
	{name: "int8", v15: v15.PrimitiveTypes.Int8, v18: v18.PrimitiveTypes.Int8, json: integers},
	{name: "int16", v15: v15.PrimitiveTypes.Int16, v18: v18.PrimitiveTypes.Int16, json: integers},
	{name: "int32", v15: v15.PrimitiveTypes.Int32, v18: v18.PrimitiveTypes.Int32, json: integers},
	{name: "int64", v15: v15.PrimitiveTypes.Int64, v18: v18.PrimitiveTypes.Int64, json: integers},
	{name: "uint8", v15: v15.PrimitiveTypes.Uint8, v18: v18.PrimitiveTypes.Uint8, json: integers},
	{name: "uint16", v15: v15.PrimitiveTypes.Uint16, v18: v18.PrimitiveTypes.Uint16, json: integers},
	{name: "uint32", v15: v15.PrimitiveTypes.Uint32, v18: v18.PrimitiveTypes.Uint32, json: integers},
	{name: "uint64", v15: v15.PrimitiveTypes.Uint64, v18: v18.PrimitiveTypes.Uint64, json: integers},
	{name: "float16", v15: v15.FixedWidthTypes.Float16, v18: v18.FixedWidthTypes.Float16, json: reals},
	{name: "float32", v15: v15.PrimitiveTypes.Float32, v18: v18.PrimitiveTypes.Float32, json: reals},
	{name: "float64", v15: v15.PrimitiveTypes.Float64, v18: v18.PrimitiveTypes.Float64, json: reals},
	{name: "string", v15: v15.BinaryTypes.String, v18: v18.BinaryTypes.String, json: words},
	{name: "large string", v15: v15.BinaryTypes.LargeString, v18: v18.BinaryTypes.LargeString, json: words},
	{name: "binary", v15: v15.BinaryTypes.Binary, v18: v18.BinaryTypes.Binary, json: `["YQ==", null, "", "/////w==", "AA==", "YWJj", null, "eA=="]`},
	{name: "large binary", v15: v15.BinaryTypes.LargeBinary, v18: v18.BinaryTypes.LargeBinary, json: `["YQ==", null, "", "/////w==", "AA==", "YWJj", null, "eA=="]`},
	{name: "fixed size binary", v15: &v15.FixedSizeBinaryType{ByteWidth: 3}, v18: &v18.FixedSizeBinaryType{ByteWidth: 3}, json: `["YWJj", null, "AAAA", "////", "YWJj", "YWJj", null, "YWJk"]`},
	{name: "string view", v15: v15.BinaryTypes.StringView, v18: v18.BinaryTypes.StringView, json: words},
	{name: "binary view", v15: v15.BinaryTypes.BinaryView, v18: v18.BinaryTypes.BinaryView, json: `["YQ==", null, "", "/////w==", "AA==", "YWJj", null, "YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXo="]`},
	{name: "date32", v15: v15.FixedWidthTypes.Date32, v18: v18.FixedWidthTypes.Date32, json: `["2024-02-29", null, "1970-01-01", "1900-01-01", "9999-12-31", "2000-01-01", null, "2001-01-01"]`},
	{name: "date64", v15: v15.FixedWidthTypes.Date64, v18: v18.FixedWidthTypes.Date64, json: `["2024-02-29", null, "1970-01-01", "1900-01-01", "9999-12-31", "2000-01-01", null, "2001-01-01"]`},
	{name: "timestamp s", v15: &v15.TimestampType{Unit: v15.Second}, v18: &v18.TimestampType{Unit: v18.Second}, json: integers},
	{name: "timestamp ns zone", v15: &v15.TimestampType{Unit: v15.Nanosecond, TimeZone: "Europe/Berlin"}, v18: &v18.TimestampType{Unit: v18.Nanosecond, TimeZone: "Europe/Berlin"}, json: integers},
	{name: "time32", v15: &v15.Time32Type{Unit: v15.Millisecond}, v18: &v18.Time32Type{Unit: v18.Millisecond}, json: integers},
	{name: "time64", v15: &v15.Time64Type{Unit: v15.Microsecond}, v18: &v18.Time64Type{Unit: v18.Microsecond}, json: integers},
	{name: "duration", v15: &v15.DurationType{Unit: v15.Microsecond}, v18: &v18.DurationType{Unit: v18.Microsecond}, json: integers},
	{name: "months", v15: v15.FixedWidthTypes.MonthInterval, v18: v18.FixedWidthTypes.MonthInterval, json: `[{"months": 1}, null, {"months": -3}, {"months": 0}, {"months": 5}, {"months": 5}, null, {"months": 6}]`},
	{name: "days and times", v15: v15.FixedWidthTypes.DayTimeInterval, v18: v18.FixedWidthTypes.DayTimeInterval, json: `[{"days": 1, "milliseconds": 2}, null, {"days": -3, "milliseconds": 0}, {"days": 1, "milliseconds": 2}, null, null, {"days": 1, "milliseconds": 3}, null]`},
	{name: "months, days and nanoseconds", v15: v15.FixedWidthTypes.MonthDayNanoInterval, v18: v18.FixedWidthTypes.MonthDayNanoInterval, json: `[{"months": 1, "days": 2, "nanoseconds": 3}, null, {"months": -1, "days": 2, "nanoseconds": 3}, null, null, {"months": 0, "days": 0, "nanoseconds": 0}, null, null]`},
	{name: "decimal128", v15: &v15.Decimal128Type{Precision: 38, Scale: 2}, v18: &v18.Decimal128Type{Precision: 38, Scale: 2}, json: `["1.25", null, "-7.00", "0", "123456789012345678901234567890.12", "1", null, "2"]`},
	{name: "decimal256", v15: &v15.Decimal256Type{Precision: 70, Scale: 3}, v18: &v18.Decimal256Type{Precision: 70, Scale: 3}, json: `["1.25", null, "-7.00", "0", "1234567890123456789012345678901234567890.125", "1", null, "2"]`},
	{name: "list", v15: v15.ListOfField(item15), v18: v18.ListOfField(item18), json: lists},
	{name: "large list", v15: v15.LargeListOfField(item15), v18: v18.LargeListOfField(item18), json: lists},
	{name: "list view", v15: v15.ListViewOfField(item15), v18: v18.ListViewOfField(item18), json: lists, noIPC: true},
	{name: "large list view", v15: v15.LargeListViewOfField(item15), v18: v18.LargeListViewOfField(item18), json: lists, noIPC: true},
	{name: "fixed size list", v15: v15.FixedSizeListOfField(2, item15), v18: v18.FixedSizeListOfField(2, item18), json: `[[1, 2], null, [3, null], [4, 5], [6, 7], [8, 9], null, [10, 11]]`},
	{name: "struct", v15: v15.StructOf(item15, name15), v18: v18.StructOf(item18, name18), json: `[{"entry": 1, "name": "a"}, null, {"entry": null, "name": "b"}, {"entry": 3, "name": null}, {"entry": 4, "name": "dd"}, null, {"entry": 6, "name": ""}, {"entry": 7, "name": "g"}]`},
	{name: "struct without fields", v15: v15.StructOf(), v18: v18.StructOf(), json: `[{}, null, {}, {}, {}, {}, null, {}]`},
	{name: "map", v15: map15(false, true), v18: map18(false, true), json: maps},
	{name: "map, sorted, without NULLs", v15: map15(true, false), v18: map18(true, false), json: maps},
	{name: "sparse union", v15: v15.SparseUnionOf([]v15.Field{item15, name15}, []int8{5, 9}), v18: v18.SparseUnionOf([]v18.Field{item18, name18}, []int8{5, 9}), json: unions},
	{name: "dense union", v15: v15.DenseUnionOf([]v15.Field{item15, name15}, []int8{5, 9}), v18: v18.DenseUnionOf([]v18.Field{item18, name18}, []int8{5, 9}), json: unions},
	{name: "dictionary", v15: &v15.DictionaryType{IndexType: v15.PrimitiveTypes.Uint16, ValueType: v15.BinaryTypes.String, Ordered: true}, v18: &v18.DictionaryType{IndexType: v18.PrimitiveTypes.Uint16, ValueType: v18.BinaryTypes.String, Ordered: true}, json: words},
	{name: "list of dictionaries", v15: v15.ListOf(&v15.DictionaryType{IndexType: v15.PrimitiveTypes.Int8, ValueType: v15.PrimitiveTypes.Int64}), v18: v18.ListOf(&v18.DictionaryType{IndexType: v18.PrimitiveTypes.Int8, ValueType: v18.PrimitiveTypes.Int64}), json: lists},
	{name: "run end encoded", v15: v15.RunEndEncodedOf(v15.PrimitiveTypes.Int32, v15.BinaryTypes.String), v18: v18.RunEndEncodedOf(v18.PrimitiveTypes.Int32, v18.BinaryTypes.String), json: `["a", "a", "a", null, null, "b", "b", "c"]`},
	{
		name: "struct of lists of maps",
		v15:  v15.StructOf(v15.Field{Name: "l", Type: v15.ListOf(map15(false, true)), Nullable: true, Metadata: md15}, name15),
		v18:  v18.StructOf(v18.Field{Name: "l", Type: v18.ListOf(map18(false, true)), Nullable: true, Metadata: md18}, name18),
		json: `[{"l": [[{"key": "a", "value": 1}], []], "name": "a"}, null, {"l": null, "name": "b"}, {"l": [null, []], "name": "c"}, {"l": [], "name": null}, null, {"l": [[{"key": "k", "value": null}]], "name": ""}, {"l": [], "name": "x"}]`,
	},
	{name: "extension", v15: newPoint15("WGS84"), v18: newPoint18("WGS84"), json: `[[1, 2], null, [3, 4], [4, 5], [6, 7], [8, 9], null, [10, 11]]`},
}

func init() {
	// Registered for the whole test binary; tests of unregistered types use others.
	if err := errors.Join(v15.RegisterExtensionType(newPoint15("")), v18.RegisterExtensionType(newPoint18(""))); err != nil {
		panic(err)
	}
}

// Every type ID of both sides is covered, but the ones that only v18 has.
func TestSamplesCoverEveryType(t *testing.T) {
	have15, have18 := map[v15.Type]bool{}, map[v18.Type]bool{}
	for _, s := range samples {
		have15[s.v15.ID()], have18[s.v18.ID()] = true, true
	}
	for id := v15.NULL; id <= v15.LARGE_LIST_VIEW; id++ {
		if !have15[id] {
			t.Errorf("v15 type %s has no sample", id)
		}
		if id.String() != v18.Type(id).String() {
			t.Errorf("type %d is %s in v15 and %s in v18", id, id, v18.Type(id))
		}
	}
	for id := v18.NULL; id < v18.DECIMAL32; id++ {
		if !have18[id] {
			t.Errorf("v18 type %s has no sample", id)
		}
	}
}

func TestTypes(t *testing.T) {
	for _, s := range samples {
		got15, err := arrow18.Type15(s.v18)
		if err != nil || !v15.TypeEqual(got15, s.v15, v15.CheckMetadata()) {
			t.Errorf("%s: Type15: want %s, got %s, %v", s.name, s.v15, got15, err)
		}
		got18, err := arrow18.Type18(s.v15)
		if err != nil || !v18.TypeEqual(got18, s.v18, v18.CheckMetadata()) {
			t.Errorf("%s: Type18: want %s, got %s, %v", s.name, s.v18, got18, err)
		}
	}
}
