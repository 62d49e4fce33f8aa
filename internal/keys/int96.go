package keys

import (
	"encoding/binary"
	"errors"
	"math"
	"reflect"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
)

// Int96Type is the type of Parquet's INT96 timestamps until they become keys: the
// 12 bytes as stored. INT96 covers years that 64-bit nanoseconds cannot, at a
// precision that 64-bit microseconds cannot. The type is not registered with Arrow
// and appears in no output.
type Int96Type struct {
	arrow.ExtensionBase
	instants bool
}

// Int96 is the type of columns of which no more is known.
var Int96 = newInt96(false)

// Int96Instants is Int96 of a column that is known to hold instants: a table says so.
var Int96Instants = newInt96(true)

func newInt96(instants bool) *Int96Type {
	return &Int96Type{arrow.ExtensionBase{Storage: &arrow.FixedSizeBinaryType{ByteWidth: int96Bytes}}, instants}
}

// Class returns the class of the keys.
func (t *Int96Type) Class() Class {
	if t.instants {
		return Instant
	}
	return Timestamp
}

// int96Bytes is the size of a value in bytes.
const int96Bytes = 12

// Int96Array is an array of Int96Type.
type Int96Array struct{ array.ExtensionArrayBase }

// ArrayType implements arrow.ExtensionType.
func (*Int96Type) ArrayType() reflect.Type { return reflect.TypeFor[Int96Array]() }

// ExtensionName implements arrow.ExtensionType.
func (*Int96Type) ExtensionName() string { return "bloomjoin.int96" }

// ExtensionEquals implements arrow.ExtensionType.
func (i *Int96Type) ExtensionEquals(o arrow.ExtensionType) bool {
	t, ok := o.(*Int96Type)
	return ok && t.instants == i.instants
}

// Serialize implements arrow.ExtensionType.
func (*Int96Type) Serialize() string { return "" }

// Deserialize implements arrow.ExtensionType.
func (*Int96Type) Deserialize(arrow.DataType, string) (arrow.ExtensionType, error) {
	return nil, errors.New("INT96 is a type of Parquet's, not of Arrow's")
}

const (
	julianEpoch  = 2440588 // Julian day number of 1970-01-01
	daySeconds   = 24 * 60 * 60
	microsSecond = 1_000_000
	nanosSecond  = 1_000_000_000
)

// SplitInt96 returns the point in time of a 12-byte INT96 value as seconds since
// the epoch, rounded down, and nanoseconds. The value is the nanoseconds within the
// day, which may be out of range, and a Julian day number, both little-endian.
//
// Spark, the main writer of INT96, computes with 64-bit microseconds and lets them
// wrap around both when writing and when reading, so it stores the last years
// before 294247 as days in the distant past. A value outside the range of 64-bit
// microseconds is therefore taken modulo 2^64 microseconds, as Spark reads it.
func SplitInt96(b []byte) (seconds int64, nanos uint32) {
	days := int64(int32(binary.LittleEndian.Uint32(b[8:]))) - julianEpoch
	more, rest := floorDiv(int64(binary.LittleEndian.Uint64(b)), nanosSecond)
	seconds = days*daySeconds + more
	if seconds > math.MaxInt64/microsSecond || seconds < math.MinInt64/microsSecond {
		wrapped := seconds*microsSecond + rest/1000
		sec, micros := floorDiv(wrapped, microsSecond)
		return sec, uint32(micros*1000 + rest%1000)
	}
	return seconds, uint32(rest)
}

// putInt96 returns a function that appends the normal form of value i, which is the
// form of timestamps.
func putInt96(a *array.FixedSizeBinary) func(dst []byte, i int) []byte {
	return func(dst []byte, i int) []byte {
		sec, nanos := SplitInt96(a.Value(i))
		return putSeconds(dst, sec, nanos)
	}
}
