package adapt

import (
	"fmt"
	"reflect"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// valueType is the type of a leaf's values: the physical type and its annotation.
// Equivalent declarations give equal valueTypes.
type valueType struct {
	physical format.Type
	length   int          // of a FIXED_LEN_BYTE_ARRAY
	logical  meta.Logical // without Converted, and None where it adds nothing
	elem     *meta.Element
}

func valueTypeOf(l *meta.Leaf, elem *meta.Element) valueType {
	t := valueType{physical: l.Type, length: l.TypeLength, logical: l.Logical, elem: elem}
	t.logical.Converted = false
	if t.logical.Kind == meta.Int && t.logical.Signed && t.logical.BitWidth >= 32 {
		t.logical = meta.Logical{} // the same as unannotated INT32 and INT64
	}
	return t
}

func (t *valueType) same(o *valueType) bool {
	return t.physical == o.physical && t.length == o.length && t.logical == o.logical && sameParameters(t.elem, o.elem)
}

// sameParameters compares the annotations whose parameters are not in a Logical.
func sameParameters(a, b *meta.Element) bool {
	va, vb := a.LogicalType.V.Value, b.LogicalType.V.Value
	switch va.(type) {
	case *format.GeometryType, *format.GeographyType, *format.VariantType:
		return reflect.DeepEqual(va, vb)
	}
	return true
}

func (t *valueType) String() string {
	s := t.physical.String()
	if t.physical == format.FixedLenByteArray {
		s = fmt.Sprintf("%s(%d)", s, t.length)
	}
	if t.logical.Kind == meta.None {
		return s
	}
	return s + " " + logicalText(t.logical, t.elem)
}

func logicalText(l meta.Logical, e *meta.Element) string {
	names := map[meta.Kind]string{meta.String: "STRING", meta.Enum: "ENUM", meta.JSON: "JSON", meta.BSON: "BSON", meta.UUID: "UUID", meta.Float16: "FLOAT16",
		meta.Interval: "INTERVAL", meta.Date: "DATE", meta.Null: "NULL", meta.Unknown: "of unknown annotation"}
	zone := "without zone"
	if l.UTC {
		zone = "UTC"
	}
	unit := [...]string{meta.Millis: "MILLIS", meta.Micros: "MICROS", meta.Nanos: "NANOS"}[l.Unit]
	switch l.Kind {
	case meta.Decimal:
		return fmt.Sprintf("DECIMAL(%d,%d)", l.Precision, l.Scale)
	case meta.Time:
		return fmt.Sprintf("TIME(%s, %s)", unit, zone)
	case meta.Timestamp:
		return fmt.Sprintf("TIMESTAMP(%s, %s)", unit, zone)
	case meta.Int:
		sign := "UINT"
		if l.Signed {
			sign = "INT"
		}
		return fmt.Sprintf("%s(%d)", sign, l.BitWidth)
	case meta.Geometry, meta.Geography, meta.Variant:
		return e.LogicalType.V.String()
	}
	return names[l.Kind]
}

// integer returns the width and sign of an integer column.
func (t *valueType) integer() (bits int, signed, ok bool) {
	switch {
	case t.logical.Kind == meta.Int:
		return t.logical.BitWidth, t.logical.Signed, true
	case t.logical.Kind == meta.None && t.physical == format.Int32:
		return 32, true, true
	case t.logical.Kind == meta.None && t.physical == format.Int64:
		return 64, true, true
	}
	return 0, false, false
}

// float reports whether the column is FLOAT or DOUBLE.
func (t *valueType) float() bool {
	return t.logical.Kind == meta.None && (t.physical == format.Float || t.physical == format.Double)
}

// widest returns the narrowest type that can hold every value of the given types
// unchanged. It depends on the set of types, not on their order. Its schema element
// is that of the first of types that equals it, if any. It returns false if there
// is no such type; then there is none for some pair of them either.
func widest(types []valueType) (valueType, bool) {
	var t valueType
	var ok bool
	if t, ok = types[0], allSame(types); ok {
		return t, true
	}
	for _, family := range []func([]valueType) (valueType, bool){widestNumber, widestDecimal, widestTime} {
		if t, ok = family(types); ok {
			break
		}
	}
	if !ok {
		return valueType{}, false
	}
	for i := range types {
		if types[i].same(&t) {
			return types[i], true
		}
	}
	t.elem = t.element()
	return t, true
}

func allSame(types []valueType) bool {
	for i := range types[1:] {
		if !types[i+1].same(&types[0]) {
			return false
		}
	}
	return true
}

// widestNumber widens integers to more bits, and unsigned with signed integers to
// signed ones of more bits. With floats, integers become the float type that holds
// all of them exactly.
func widestNumber(types []valueType) (valueType, bool) {
	var signed, unsigned, float int // most bits of each kind
	for i := range types {
		bits, sign, ok := types[i].integer()
		switch {
		case ok && sign:
			signed = max(signed, bits)
		case ok:
			unsigned = max(unsigned, bits)
		case types[i].float() && types[i].physical == format.Float:
			float = max(float, 32)
		case types[i].float():
			float = 64
		default:
			return valueType{}, false
		}
	}
	switch most := max(signed, unsigned); {
	case float > 0 && most > 32: // a DOUBLE has 53 bits of mantissa
		return valueType{}, false
	case float == 64 || float > 0 && most > 16: // a FLOAT has 24
		return valueType{physical: format.Double, elem: new(meta.Element)}, true
	case float > 0:
		return valueType{physical: format.Float, elem: new(meta.Element)}, true
	case signed == 0:
		return integerType(unsigned, false), true
	case unsigned >= signed:
		if unsigned == 64 {
			return valueType{}, false
		}
		return integerType(2*unsigned, true), true
	}
	return integerType(signed, true), true
}

func integerType(bits int, signed bool) valueType {
	t := valueType{physical: format.Int32, elem: new(meta.Element)}
	if bits == 64 {
		t.physical = format.Int64
	}
	if !signed || bits < 32 {
		t.logical = meta.Logical{Kind: meta.Int, BitWidth: bits, Signed: signed}
	}
	return t
}

// widestDecimal widens decimals of one scale to the largest precision, in the last
// of their representations in the order INT32, INT64, FIXED_LEN_BYTE_ARRAY,
// BYTE_ARRAY.
func widestDecimal(types []valueType) (valueType, bool) {
	rank := map[format.Type]int{format.Int32: 0, format.Int64: 1, format.FixedLenByteArray: 2, format.ByteArray: 3}
	t := valueType{physical: format.Int32, logical: types[0].logical, elem: new(meta.Element)}
	length := 0
	for i := range types {
		o := &types[i]
		if o.logical.Kind != meta.Decimal || o.logical.Scale != t.logical.Scale {
			return valueType{}, false
		}
		t.logical.Precision = max(t.logical.Precision, o.logical.Precision)
		length = max(length, o.length)
		if rank[o.physical] > rank[t.physical] {
			t.physical = o.physical
		}
	}
	if t.physical == format.FixedLenByteArray {
		for length < 64 && meta.DecimalDigits(length) < t.logical.Precision {
			length++
		}
		t.length = length
	}
	return t, true
}

// widestTime widens times or timestamps to the finest unit, if they are all
// instants or all without zone.
func widestTime(types []valueType) (valueType, bool) {
	t := valueType{physical: format.Int64, logical: types[0].logical, elem: new(meta.Element)}
	for i := range types {
		o := &types[i].logical
		if o.Kind != meta.Time && o.Kind != meta.Timestamp || o.Kind != t.logical.Kind || o.UTC != t.logical.UTC {
			return valueType{}, false
		}
		t.logical.Unit = max(t.logical.Unit, o.Unit)
	}
	if t.logical.Kind == meta.Time && t.logical.Unit == meta.Millis {
		t.physical = format.Int32
	}
	return t, true
}

// element returns a schema element that declares t, with the converted type for
// older readers in addition to the logical type.
func (t *valueType) element() *meta.Element {
	e := &meta.Element{Type: thrift.New(t.physical)}
	if t.physical == format.FixedLenByteArray {
		e.TypeLength = thrift.New(int32(t.length))
	}
	e.SetLogical(t.logical)
	return e
}
