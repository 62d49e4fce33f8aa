package arrow18_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	v18 "github.com/apache/arrow-go/v18/arrow"
	v18array "github.com/apache/arrow-go/v18/arrow/array"
	v18endian "github.com/apache/arrow-go/v18/arrow/endian"
	v18memory "github.com/apache/arrow-go/v18/arrow/memory"
	v15 "github.com/apache/arrow/go/v15/arrow"
	v15array "github.com/apache/arrow/go/v15/arrow/array"
	v15memory "github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/arrow18"
	"github.com/bloomjoin/bloomjoin/fault"
)

func TestNil(t *testing.T) {
	for name, f := range map[string]func() (any, error){
		"Schema15": func() (any, error) { return arrow18.Schema15(nil) },
		"Schema18": func() (any, error) { return arrow18.Schema18(nil) },
		"Record15": func() (any, error) { return arrow18.Record15(nil) },
		"Record18": func() (any, error) { return arrow18.Record18(nil) },
		"Array15":  func() (any, error) { return arrow18.Array15(nil) },
		"Array18":  func() (any, error) { return arrow18.Array18(nil) },
		"Type15":   func() (any, error) { return arrow18.Type15(nil) },
		"Type18":   func() (any, error) { return arrow18.Type18(nil) },
	} {
		got, err := f()
		if v := reflect.ValueOf(got); err != nil || v.IsValid() && !v.IsNil() {
			t.Errorf("%s of nil: want nil, got %v, %v", name, got, err)
		}
	}
}

// Schemas keep their byte order, and fields that have one name.
func TestSchema(t *testing.T) {
	md := v18.NewMetadata([]string{"k", "k"}, []string{"1", "2"})
	fields := []v18.Field{{Name: "a", Type: v18.PrimitiveTypes.Int8}, {Name: "a", Type: v18.BinaryTypes.String, Nullable: true, Metadata: md18}}
	for _, order := range []v18endian.Endianness{v18endian.LittleEndian, v18endian.BigEndian} {
		want := v18.NewSchemaWithEndian(fields, &md, order)
		s15, err := arrow18.Schema15(want)
		if err != nil {
			t.Fatal(err)
		}
		if int(s15.Endianness()) != int(order) || s15.NumFields() != 2 || s15.Field(0).Nullable || s15.Metadata().Values()[1] != "2" {
			t.Errorf("want %s, got %s", want, s15)
		}
		got, err := arrow18.Schema18(s15)
		if err != nil || !got.Equal(want) || !got.Metadata().Equal(md) || got.Endianness() != order {
			t.Errorf("want %s, got %s, %v", want, got, err)
		}
	}
}

// What v15 does not have is refused with its column, wherever it stands.
func TestUnsupported(t *testing.T) {
	d32, d64 := &v18.Decimal32Type{Precision: 9, Scale: 2}, &v18.Decimal64Type{Precision: 18, Scale: 2}
	for name, c := range map[string]struct {
		t      v18.DataType
		column string
	}{
		"decimal32":  {d32, "x"},
		"decimal64":  {d64, "x"},
		"nested":     {v18.ListOf(v18.StructOf(v18.Field{Name: "price", Type: d32})), "x.item.price"},
		"map":        {v18.MapOf(v18.BinaryTypes.String, d64), "x.value"},
		"dictionary": {&v18.DictionaryType{IndexType: v18.PrimitiveTypes.Int8, ValueType: d64}, "x"},
		"runs":       {v18.RunEndEncodedOf(v18.PrimitiveTypes.Int32, d64), "x"},
		"union":      {v18.SparseUnionOf([]v18.Field{{Name: "d", Type: d32}}, []int8{0}), "x.d"},
		"extension":  {newOther18(d32), "x"},
	} {
		schema := v18.NewSchema([]v18.Field{{Name: "x", Type: c.t, Nullable: true}}, nil)
		_, err := arrow18.Schema15(schema)
		var fe *fault.Error
		if !errors.Is(err, fault.ErrUnsupported) || !errors.As(err, &fe) || fe.At.Column != c.column || !strings.Contains(err.Error(), "unsupported: decimal") {
			t.Errorf("%s: want unsupported at %s, got %v", name, c.column, err)
		}
	}
	mem := checked18(t)
	b := v18array.NewDecimal32Builder(mem, d32)
	defer b.Release()
	b.AppendNull()
	arr := b.NewArray()
	defer arr.Release()
	rec := v18array.NewRecordBatch(v18.NewSchema([]v18.Field{{Name: "x", Type: d32, Nullable: true}}, nil), []v18.Array{arr}, 1)
	defer rec.Release()
	if _, err := arrow18.Record15(rec); !errors.Is(err, fault.ErrUnsupported) {
		t.Errorf("Record15: want unsupported, got %v", err)
	}
	if _, err := arrow18.Array15(arr); !errors.Is(err, fault.ErrUnsupported) {
		t.Errorf("Array15: want unsupported, got %v", err)
	}
}

// other18 and other15 are extension types that no test registers.
type other18 struct{ v18.ExtensionBase }

func newOther18(storage v18.DataType) *other18 {
	return &other18{v18.ExtensionBase{Storage: storage}}
}
func (*other18) ArrayType() reflect.Type                  { return reflect.TypeFor[point18Array]() }
func (*other18) ExtensionName() string                    { return "test.other" }
func (*other18) Serialize() string                        { return "v=1" }
func (*other18) ExtensionEquals(o v18.ExtensionType) bool { return o.ExtensionName() == "test.other" }
func (o *other18) Deserialize(s v18.DataType, _ string) (v18.ExtensionType, error) {
	return newOther18(s), nil
}

type other15 struct{ v15.ExtensionBase }

func newOther15(storage v15.DataType) *other15 {
	return &other15{v15.ExtensionBase{Storage: storage}}
}
func (*other15) ArrayType() reflect.Type                  { return reflect.TypeFor[point15Array]() }
func (*other15) ExtensionName() string                    { return "test.other" }
func (*other15) Serialize() string                        { return "v=1" }
func (*other15) ExtensionEquals(o v15.ExtensionType) bool { return o.ExtensionName() == "test.other" }
func (o *other15) Deserialize(s v15.DataType, _ string) (v15.ExtensionType, error) {
	return newOther15(s), nil
}

// An extension type that the other side does not know becomes its storage type
// and metadata, nested too, and the type again where it is known.
func TestUnregisteredExtension(t *testing.T) {
	mem18 := checked18(t)
	typ := newOther18(v18.PrimitiveTypes.Int64)
	elem := v18.Field{Name: "item", Type: typ, Nullable: true, Metadata: md18}
	arr, _, err := v18array.FromJSON(mem18, v18.ListOfField(elem), strings.NewReader(`[[1, 2], null, [null]]`))
	if err != nil {
		t.Fatal(err)
	}
	defer arr.Release()
	rec := v18array.NewRecordBatch(v18.NewSchema([]v18.Field{{Name: "x", Type: arr.DataType(), Nullable: true}}, nil), []v18.Array{arr}, 3)
	defer rec.Release()

	got, err := arrow18.Record15(rec)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Release()
	f := got.Schema().Field(0).Type.(*v15.ListType).ElemField()
	want := v15.NewMetadata([]string{"unit", "empty", "ARROW:extension:name", "ARROW:extension:metadata"}, []string{"km", "", "test.other", "v=1"})
	if f.Type.ID() != v15.INT64 || !f.Metadata.Equal(want) {
		t.Errorf("want int64 with metadata %v, got %s with %v", want, f.Type, f.Metadata)
	}
	if text := fmt.Sprint(got.Column(0)); text != "[[1 2] (null) [(null)]]" {
		t.Errorf("values: got %s", text)
	}
	unknown, err := arrow18.Record18(got)
	if err != nil {
		t.Fatal(err)
	}
	defer unknown.Release()
	if id := unknown.Schema().Field(0).Type.(*v18.ListType).Elem().ID(); id != v18.INT64 {
		t.Errorf("where the type is not registered: want int64, got %s", id)
	}

	if err := v18.RegisterExtensionType(typ); err != nil {
		t.Fatal(err)
	}
	defer v18.UnregisterExtensionType("test.other")
	back, err := arrow18.Record18(got)
	if err != nil {
		t.Fatal(err)
	}
	defer back.Release()
	same18(t, "where the type is registered", rec, back)
}

// Without a field there is nowhere to put an extension type's name.
func TestExtensionWithoutField(t *testing.T) {
	for _, typ := range []v18.DataType{
		&v18.DictionaryType{IndexType: v18.PrimitiveTypes.Int8, ValueType: newOther18(v18.BinaryTypes.String)},
		v18.RunEndEncodedOf(v18.PrimitiveTypes.Int32, newOther18(v18.BinaryTypes.String)),
	} {
		if _, err := arrow18.Type15(typ); !errors.Is(err, fault.ErrUnsupported) || !strings.Contains(err.Error(), "test.other") {
			t.Errorf("%s: want unsupported, got %v", typ, err)
		}
	}
	if got, err := arrow18.Type18(newOther15(v15.PrimitiveTypes.Int8)); err != nil || got.ID() != v18.INT8 {
		t.Errorf("a lone type: want its storage type, got %v, %v", got, err)
	}
	if got, err := arrow18.Type18(&v15.DictionaryType{IndexType: v15.PrimitiveTypes.Int8, ValueType: newPoint15("x")}); err != nil || !v18.TypeEqual(got, &v18.DictionaryType{IndexType: v18.PrimitiveTypes.Int8, ValueType: newPoint18("x")}) {
		t.Errorf("a registered type: got %v, %v", got, err)
	}
}

// A registered type that refuses the storage type leaves it as it is.
func TestExtensionRefused(t *testing.T) {
	f := v15.Field{Name: "x", Type: v15.PrimitiveTypes.Int8, Metadata: v15.NewMetadata([]string{"ARROW:extension:name"}, []string{pointName})}
	got, err := arrow18.Schema18(v15.NewSchema([]v15.Field{f}, nil))
	if err != nil || got.Field(0).Type.ID() != v18.INT8 || got.Field(0).Metadata.Len() != 1 {
		t.Errorf("want int8 and its metadata, got %s, %v", got, err)
	}
}

// Each record of a stream has its own dictionary, which grows.
func TestDictionaryDeltas(t *testing.T) {
	mem15, mem18 := checked15(t), checked18(t)
	typ := &v18.DictionaryType{IndexType: v18.PrimitiveTypes.Int32, ValueType: v18.BinaryTypes.String}
	schema := v18.NewSchema([]v18.Field{{Name: "x", Type: typ, Nullable: true}}, nil)
	var recs []v18.RecordBatch
	for _, s := range []struct{ dict, index string }{{`["a", "b"]`, `[0, 1, null]`}, {`["a", "b", "c"]`, `[2, 0]`}, {`["a", "b", "c", "d"]`, `[]`}} {
		dict, _, err := v18array.FromJSON(mem18, v18.BinaryTypes.String, strings.NewReader(s.dict))
		if err != nil {
			t.Fatal(err)
		}
		index, _, err := v18array.FromJSON(mem18, v18.PrimitiveTypes.Int32, strings.NewReader(s.index))
		if err != nil {
			t.Fatal(err)
		}
		arr := v18array.NewDictionaryArray(typ, index, dict)
		recs = append(recs, v18array.NewRecordBatch(schema, []v18.Array{arr}, int64(arr.Len())))
		dict.Release()
		index.Release()
		arr.Release()
	}
	var converted []v15.Record
	b18, err := stream18(mem18, recs...)
	if err != nil {
		t.Fatal(err)
	}
	stream18In(t, mem18, b18, func(rec v18.RecordBatch) {
		got, err := arrow18.Record15(rec)
		if err != nil {
			t.Fatal(err)
		}
		converted = append(converted, got)
	})
	b15, err := stream15(mem15, converted...)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	stream18In(t, mem18, b15, func(rec v18.RecordBatch) {
		same18(t, fmt.Sprint("record ", n), recs[n], rec)
		n++
	})
	if n != 3 {
		t.Errorf("want 3 records, got %d", n)
	}
	for i := range recs {
		recs[i].Release()
		converted[i].Release()
	}
}

// Converted buffers are not mutable. Resizing one copies it, so that its source does not change.
func TestBuffersAreImmutable(t *testing.T) {
	mem := checked18(t)
	s := samples[5]
	rec := read18(t, mem, s)
	defer rec.Release()
	got, err := arrow18.Record15(rec)
	if err != nil {
		t.Fatal(err)
	}
	buf := got.Column(0).Data().Buffers()[1]
	buf.Retain()
	got.Release()
	if buf.Mutable() {
		t.Error("the buffer is mutable")
	}
	buf.Resize(1000)
	buf.Bytes()[0] = 99
	buf.Release()
	if v := rec.Column(0).(*v18array.Int64).Value(0); v != 1 {
		t.Errorf("the source's value: want 1, got %d", v)
	}
}

// Data that its own type does not describe is an error, never a panic, and holds
// nothing.
func TestMalformed(t *testing.T) {
	mem := checked18(t)
	words, _, err := v18array.FromJSON(mem, v18.BinaryTypes.String, strings.NewReader(`["a", "b"]`))
	if err != nil {
		t.Fatal(err)
	}
	defer words.Release()
	data := words.Data()
	for name, d := range map[string]*v18array.Data{
		"no children":     v18array.NewData(v18.StructOf(name18), 2, []*v18memory.Buffer{nil}, nil, 0, 0),
		"another child":   v18array.NewData(v18.StructOf(item18), 2, []*v18memory.Buffer{nil}, []v18.ArrayData{data}, 0, 0),
		"a child too few": v18array.NewData(v18.StructOf(name18, name18), 2, []*v18memory.Buffer{nil}, []v18.ArrayData{data}, 0, 0),
	} {
		arr := fake{Array: words, data: d}
		if got, err := arrow18.Array15(arr); err == nil {
			t.Errorf("%s: want an error, got %v", name, got)
			got.Release()
		}
		d.Release()
	}
	short := v18memory.NewBufferBytes([]byte{0, 0, 0, 0, 200, 0, 0, 0})
	d := v18array.NewData(v18.BinaryTypes.String, 1, []*v18memory.Buffer{nil, short, v18memory.NewBufferBytes([]byte("a"))}, nil, 0, 0)
	defer d.Release()
	if got, err := arrow18.Array15(fake{Array: words, data: d}); !errors.Is(err, fault.ErrCorrupt) {
		t.Errorf("an offset outside the bytes: want an error, got %v, %v", got, err)
	}
}

// fake is an array with other data.
type fake struct {
	v18.Array
	data *v18array.Data
}

func (f fake) Data() v18.ArrayData    { return f.data }
func (f fake) DataType() v18.DataType { return f.data.DataType() }

// Source and results are released by different goroutines.
func TestConcurrentReleases(t *testing.T) {
	mem15, mem18 := checked15(t), checked18(t)
	for _, s := range samples {
		rec := read15(t, mem15, s)
		var done sync.WaitGroup
		for range 4 {
			rec.Retain()
			done.Go(func() {
				got, err := arrow18.Record18(rec)
				rec.Release()
				if err != nil {
					t.Error(err)
					return
				}
				for range 4 {
					part := got.NewSlice(1, 5)
					done.Go(func() {
						back, err := arrow18.Record15(part)
						part.Release()
						if err != nil {
							t.Error(err)
							return
						}
						back.Release()
					})
				}
				got.Release()
			})
		}
		rec.Release()
		done.Wait()
	}
	_ = mem18
}

var (
	_ v15array.ExtensionArray = (*point15Array)(nil)
	_ v15memory.Allocator     = poison15{}
)
