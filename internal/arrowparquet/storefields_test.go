package arrowparquet

import (
	"bytes"
	"encoding/base64"
	"slices"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/ipc"

	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// decodeSchema decodes a stored schema with Arrow's own reader.
func decodeSchema(t testing.TB, stored string) *arrow.Schema {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(stored)
	if err != nil {
		t.Fatal(err)
	}
	r, err := ipc.NewReader(bytes.NewReader(append(b, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0))) // without Release, which panics on 386
	if err != nil {
		t.Fatal(err)
	}
	return r.Schema()
}

// storable are columns of all types that Arrow's own reader knows.
func storable() []arrow.Field {
	dict := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint16, ValueType: arrow.BinaryTypes.String, Ordered: true}
	small := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.PrimitiveTypes.Int64}
	note := arrow.NewMetadata([]string{"note", fieldIDKey}, []string{"a note", "7"})
	sorted := arrow.MapOf(arrow.BinaryTypes.String, dict)
	sorted.KeysSorted = true
	types := []arrow.DataType{
		arrow.Null, arrow.FixedWidthTypes.Boolean, arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Uint64,
		arrow.FixedWidthTypes.Float16, arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64,
		arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.Binary, arrow.BinaryTypes.LargeBinary,
		arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Date64, arrow.FixedWidthTypes.Time32s, arrow.FixedWidthTypes.Time32ms,
		arrow.FixedWidthTypes.Time64ns, &arrow.TimestampType{Unit: arrow.Second}, &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "Europe/Berlin"},
		arrow.FixedWidthTypes.Duration_s, arrow.FixedWidthTypes.Duration_ns, arrow.FixedWidthTypes.MonthInterval,
		&arrow.Decimal128Type{Precision: 20, Scale: 3}, &arrow.Decimal256Type{Precision: 20, Scale: 3}, &arrow.FixedSizeBinaryType{ByteWidth: 16},
		dict, small, sorted, arrow.ListOf(dict), arrow.LargeListOf(arrow.PrimitiveTypes.Int32), arrow.FixedSizeListOf(3, arrow.PrimitiveTypes.Int32),
		arrow.StructOf(arrow.Field{Name: "x", Type: small, Metadata: note}, arrow.Field{Name: "y", Type: arrow.ListOf(arrow.FixedWidthTypes.Date64), Nullable: true}),
	}
	fields := make([]arrow.Field, len(types))
	for i, dt := range types {
		fields[i] = arrow.Field{Name: dt.String(), Type: dt, Nullable: i%2 == 0 || dt.ID() == arrow.NULL, Metadata: note}
	}
	return fields
}

// TestStoreFields: fields of two stored schemas and new ones make one schema that
// Arrow's own reader reads as those fields.
func TestStoreFields(t *testing.T) {
	all := storable()
	a, err := EncodeSchema(arrow.NewSchema(all, nil))
	if err != nil {
		t.Fatal(err)
	}
	reversed := slices.Clone(all)
	slices.Reverse(reversed)
	b, err := EncodeSchema(arrow.NewSchema(reversed, nil))
	if err != nil {
		t.Fatal(err)
	}
	var list []StoredField
	var want []arrow.Field
	for i, f := range all {
		plain := arrow.Field{Name: f.Name, Type: arrow.PrimitiveTypes.Int64, Nullable: true} // less than what is stored
		list = append(list, StoredField{Field: plain, Stored: a, At: i}, StoredField{Field: plain, Stored: b, At: len(all) - 1 - i})
		f.Nullable = true
		want = append(want, f, f)
	}
	own := arrow.Field{Name: "own", Type: arrow.ListOf(arrow.FixedWidthTypes.Duration_ms), Metadata: arrow.NewMetadata([]string{fieldIDKey, "note", logicalKey}, []string{"1", "mine", "ENUM"})}
	other := own
	other.Name = "another name"
	list = append(list, StoredField{Field: own}, StoredField{Field: other, Stored: a, At: 0}, StoredField{Field: own, Stored: a, At: len(all)}, StoredField{Field: own, Stored: "junk"})
	for _, f := range []arrow.Field{own, other, own, own} {
		f.Metadata = arrow.NewMetadata([]string{"note"}, []string{"mine"})
		want = append(want, f)
	}
	stored, err := StoreFields(list, []meta.KeyValue{{Key: "k", Value: "v"}, {Key: "empty"}})
	if err != nil {
		t.Fatal(err)
	}
	got := decodeSchema(t, stored)
	if len(got.Fields()) != len(want) {
		t.Fatalf("%d fields, want %d", len(got.Fields()), len(want))
	}
	for i, f := range got.Fields() {
		if !f.Equal(want[i]) {
			t.Errorf("%v\nwant %v", f, want[i])
		}
	}
	if md := got.Metadata(); md.Len() != 2 || value(md, "k") != "v" || md.FindKey("empty") < 0 {
		t.Errorf("metadata %v", md)
	}
	if again, err := StoreFields(list, []meta.KeyValue{{Key: "k", Value: "v"}, {Key: "empty"}}); err != nil || again != stored {
		t.Errorf("the second time, other bytes: %v", err)
	}
}

// TestStoreDamagedFields: a stored schema with a changed byte is stored in part or not at all,
// and what is stored can be read. Short runs change only some of the bytes.
func TestStoreDamagedFields(t *testing.T) {
	all := storable()
	stored, err := EncodeSchema(arrow.NewSchema(all, nil))
	if err != nil {
		t.Fatal(err)
	}
	b, err := base64.StdEncoding.DecodeString(stored)
	if err != nil {
		t.Fatal(err)
	}
	list := make([]StoredField, len(all))
	for i := 0; i < len(b); i += cases.Count(16, 4, 1) {
		flip := []byte{1, 0x80, 0xff}[i%3]
		b[i] ^= flip
		damaged := base64.StdEncoding.EncodeToString(b)
		b[i] ^= flip
		for k, f := range all {
			list[k] = StoredField{Field: arrow.Field{Name: f.Name, Type: arrow.PrimitiveTypes.Int64}, Stored: damaged, At: k}
		}
		out, err := StoreFields(list, nil)
		if err != nil {
			t.Fatalf("byte %d: %v", i, err)
		}
		if s := parseStored(out); s == nil || len(s.fields) != len(all) {
			t.Fatalf("byte %d: what is stored is malformed", i)
		}
	}
}

// TestInfer: a field that says no more than the Parquet schema gets the type that readers
// infer; other fields stay.
func TestInfer(t *testing.T) {
	uuid := arrow.NewMetadata([]string{extensionKey, extensionData}, []string{"arrow.uuid", ""})
	given := []arrow.Field{
		{Name: "n", Type: arrow.PrimitiveTypes.Int64, Metadata: arrow.NewMetadata([]string{fieldIDKey}, []string{"3"})},
		{Name: "u", Type: &arrow.FixedSizeBinaryType{ByteWidth: 16}, Metadata: uuid},
		{Name: "d", Type: arrow.FixedWidthTypes.Duration_us},
		{Name: "l", Type: arrow.BinaryTypes.LargeString},
	}
	for n, more := range map[int]bool{2: false, 3: true, 4: true} {
		p, err := planSchema(arrow.NewSchema(given[:n], nil))
		if err != nil {
			t.Fatal(err)
		}
		got, says, err := Infer(p.elements, nil, given[:n])
		if err != nil || says != more {
			t.Fatalf("%d fields say more: %v, want %v: %v", n, says, more, err)
		}
		for i, f := range got {
			want := given[i]
			if i < 2 {
				want.Metadata = arrow.Metadata{}
			}
			if !f.Equal(want) {
				t.Errorf("%v\nwant %v", f, want)
			}
		}
	}
}
