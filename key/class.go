// Package key turns key columns into keys that can be compared: whatever the
// width, unit or encoding of a column, equal values give equal bytes, and
// different values different ones.
//
// The way is
//
//	"user.id::int64" ── ParseColumns ──► Column ── NewEncoder(schema, options) ──► Encoder
//	record batch ── Encoder.Encode ──► Batch of normal forms ── Batch.Hash ──► 64-bit hashes
//
// A value goes through up to four steps, in this order:
//
//   - its normal form: bytes that depend on the value alone. A [Class] says which
//     columns share one. The forms are specified in codec/FORMAT.md; [NormalForm]
//     is their version, recorded in every filter.
//   - a cast, where the column was named as COL::TYPE. A cast never rounds: a
//     value without an equal in the type is an error or, if so wanted, NULL.
//   - a [Rule], which makes strings alike: trim, lower case, UUIDs from text.
//     Both sides of a comparison have the same rule, and filters record it.
//   - a conversion to the class of the other side, where both are numbers. It is
//     exact as well, but a value without an equal there is a key that matches
//     nothing: neither NULL nor an error.
//
// Statistics and Parquet's Bloom filters of a column describe its values as they
// are stored. They say nothing about the result of a cast or a rule.
package key

import (
	"strconv"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
)

// NormalForm is the version of the rules by which this package turns keys into
// bytes.
const NormalForm = "1"

// Class names a kind of key. Keys of one class compare by value, whatever
// their columns' types. Keys of two classes compare only if both are numbers, see
// [Class.Numeric].
type Class string

// The classes. A fixed-width binary has the class "fixed[w]", a UUID is
// fixed[16]; see [Fixed].
const (
	Integer   Class = "integer"   // every width and sign
	Bytes     Class = "bytes"     // strings and binary, large or not
	Boolean   Class = "boolean"   //
	Date      Class = "date"      //
	Instant   Class = "instant"   // timestamps with a zone, any unit
	Timestamp Class = "timestamp" // timestamps without a zone, any unit; INT96
	Decimal   Class = "decimal"   // any precision and scale
	Float     Class = "float"     // half, single and double
	Time      Class = "time"      // times of day, any unit
	Duration  Class = "duration"  // any unit
	// AnyNumber holds what the three classes of numbers hold. Joins use it where
	// both sides mix them; no filter file has it.
	AnyNumber Class = "number"
	// Null is the class of a column that has no type and only NULLs. It
	// compares with any other.
	Null Class = "null"
)

// Fixed returns the class of binary values of w bytes each.
func Fixed(w int) Class { return Class("fixed[" + strconv.Itoa(w) + "]") }

// ClassOf returns the class of a column type. Dictionary and extension types
// have that of their values.
func ClassOf(t arrow.DataType) (Class, error) {
	switch t := t.(type) {
	case *arrow.DictionaryType:
		return ClassOf(t.ValueType)
	case *Int96Type:
		return Timestamp, nil
	case arrow.ExtensionType:
		return ClassOf(t.StorageType())
	case *arrow.FixedSizeBinaryType:
		return Fixed(t.ByteWidth), nil
	case *arrow.TimestampType:
		if t.TimeZone == "" {
			return Timestamp, nil
		}
		return Instant, nil
	}
	switch t.ID() {
	case arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64,
		arrow.UINT8, arrow.UINT16, arrow.UINT32, arrow.UINT64:
		return Integer, nil
	case arrow.STRING, arrow.BINARY, arrow.LARGE_STRING, arrow.LARGE_BINARY, arrow.STRING_VIEW, arrow.BINARY_VIEW:
		return Bytes, nil
	case arrow.BOOL:
		return Boolean, nil
	case arrow.DATE32, arrow.DATE64:
		return Date, nil
	case arrow.DECIMAL128, arrow.DECIMAL256:
		return Decimal, nil
	case arrow.FLOAT16, arrow.FLOAT32, arrow.FLOAT64:
		return Float, nil
	case arrow.TIME32, arrow.TIME64:
		return Time, nil
	case arrow.DURATION:
		return Duration, nil
	case arrow.NULL:
		return Null, nil
	}
	return "", fault.Unsupported(fault.At{}, "a key of type %s", t)
}

// ClassesOf returns the classes of those names.
func ClassesOf(names []string) []Class {
	classes := make([]Class, len(names))
	for i, n := range names {
		classes[i] = Class(n)
	}
	return classes
}

// Numeric reports whether values of the class are numbers.
func (c Class) Numeric() bool { return c == Integer || c == Decimal || c == Float || c == AnyNumber }

// comparable reports whether keys of two classes can be compared.
func (c Class) comparable(d Class) bool {
	return c == d || c == Null || d == Null || c.Numeric() && d.Numeric()
}

// Meet returns the class in which the columns of both sides of a join are
// compared, given the classes of their files: each side's value is converted to
// it exactly, or has no equal on the other side. ok is false if some cannot be
// compared with others.
func Meet(ids, log []Class) (c Class, ok bool) {
	a, b := common(ids), common(log)
	switch {
	case a == "" || b == "" || !a.comparable(b):
		return "", false
	case a == Null:
		return b, true
	case b == Null || b == AnyNumber, a == b:
		return a, true
	case a == AnyNumber:
		return b, true
	}
	// Two kinds of numbers: what has no equal on one of the sides matches
	// nothing, so either's class will do. Integers are the fastest, and the log
	// is the larger side.
	if a == Integer {
		return a, true
	}
	return b, true
}

// common returns the class of all files of a side: AnyNumber where they are of
// several kinds of numbers, and "" where they cannot be compared.
func common(classes []Class) Class {
	all := Null
	for _, c := range classes {
		switch {
		case !all.comparable(c):
			return ""
		case all == Null:
			all = c
		case c != Null && c != all:
			all = AnyNumber
		}
	}
	return all
}
