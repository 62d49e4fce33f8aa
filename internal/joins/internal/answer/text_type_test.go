package answer

import (
	"reflect"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
)

// extension is an extension type over any storage.
type extension struct{ arrow.ExtensionBase }

func (*extension) ArrayType() reflect.Type                  { return nil }
func (*extension) ExtensionEquals(arrow.ExtensionType) bool { return false }
func (*extension) ExtensionName() string                    { return "extension" }
func (*extension) Serialize() string                        { return "" }
func (*extension) Deserialize(arrow.DataType, string) (arrow.ExtensionType, error) {
	return nil, nil
}

// TestTextType: IDs in text are read as the widest type of the class of the log's
// column, but as float32 if it has that, even if that is a dictionary or extension type.
func TestTextType(t *testing.T) {
	p, b, f := arrow.PrimitiveTypes, arrow.BinaryTypes, arrow.FixedWidthTypes
	uuid := &arrow.FixedSizeBinaryType{ByteWidth: 16}
	ext := func(t arrow.DataType) arrow.DataType { return &extension{arrow.ExtensionBase{Storage: t}} }
	dict := func(t arrow.DataType) arrow.DataType { return &arrow.DictionaryType{IndexType: p.Int8, ValueType: t} }
	for _, c := range []struct{ log, text arrow.DataType }{
		{p.Int8, p.Int64}, {p.Uint32, p.Int64}, {p.Uint64, p.Uint64}, {f.Float16, p.Float64}, {p.Float32, p.Float32},
		{f.Date64, f.Date32}, {f.Boolean, f.Boolean}, {f.Timestamp_ms, f.Timestamp_ms}, {uuid, uuid},
		{b.String, nil}, {b.LargeString, nil}, {b.Binary, b.Binary}, {b.LargeBinary, b.Binary}, {dict(b.Binary), b.Binary}, {arrow.Null, nil}, {arrow.ListOf(p.Int8), nil},
		{ext(uuid), uuid}, {dict(p.Int16), p.Int64}, {ext(dict(p.Float32)), p.Float32}, {dict(ext(p.Uint64)), p.Uint64}, {dict(b.String), nil},
	} {
		if got := textType(c.log); c.text == nil != (got == nil) || got != nil && !arrow.TypeEqual(got, c.text) {
			t.Errorf("%s: %v, want %v", c.log, got, c.text)
		}
	}
}
