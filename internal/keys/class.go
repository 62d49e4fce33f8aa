// Package keys turns key columns into comparable keys: whatever the width, unit or
// encoding of a column, equal values give equal bytes and different values give
// different bytes.
//
// The steps are
//
//	"user.id::int64" ── ParseColumns ──► Column ── NewEncoder(schema, options) ──► Encoder
//	record batch ── Encoder.Encode ──► Batch of normal forms ── Batch.Hash ──► 64-bit hashes
//
// A value goes through up to four steps, in this order:
//
//   - its normal form: bytes that depend on the value alone. All columns of one
//     [Class] share a form. The forms are specified in codec/FORMAT.md;
//     [NormalForm] is their version, which every filter records.
//   - a cast, if the column is named as COL::TYPE. A cast never rounds: a value
//     that the type cannot represent exactly is an error or, with
//     [Options.NullMisfits], NULL.
//   - a [Rule], which normalises strings: trim, lower case, UUIDs from text. Both
//     sides of a comparison use the same rule, and filters record it.
//   - a conversion to the class of the other side, if both are numbers. It is exact
//     as well, but a value that the other class cannot represent is a key that
//     matches nothing: neither NULL nor an error.
//
// A column's statistics and Parquet Bloom filters describe the stored values. They
// do not apply to the result of a cast or a rule.
package keys

import (
	"errors"
	"math"
	"strconv"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// NormalForm is the version of the rules that turn keys into bytes.
const NormalForm = "1"

// Class names a kind of key. Keys of one class compare by value, whatever the types
// of their columns. Keys of two classes compare only if both are numbers; see
// [Class.Numeric].
type Class string

// The classes. A fixed-width binary of w bytes has the class "fixed[w]", so a UUID
// is fixed[16]; see [Fixed].
const (
	Integer   Class = "integer" // every width and sign
	Bytes     Class = "bytes"   // strings and binary, large or not
	Boolean   Class = "boolean"
	Date      Class = "date"
	Instant   Class = "instant"   // timestamps with a zone, any unit
	Timestamp Class = "timestamp" // timestamps without a zone, any unit; INT96
	Decimal   Class = "decimal"   // any precision and scale
	Float     Class = "float"     // half, single and double
	Time      Class = "time"      // times of day, any unit
	Duration  Class = "duration"  // any unit
	// AnyNumber covers the values of the three numeric classes. Joins use it if the
	// files of both sides mix them. No filter file has it.
	AnyNumber Class = "number"
	// Null is the class of a column of Arrow's null type, which holds only NULLs.
	// It compares with any other class.
	Null Class = "null"
)

// Fixed returns the class of fixed-width binary values of w bytes.
func Fixed(w int) Class { return Class("fixed[" + strconv.Itoa(w) + "]") }

// Stored reports whether a filter file may name the class.
func (c Class) Stored() bool {
	switch c {
	case Integer, Bytes, Boolean, Date, Instant, Timestamp, Decimal, Float, Time, Duration, Null:
		return true
	}
	w, ok := FixedWidth(c)
	return ok && w <= math.MaxInt32
}

// ClassOf returns the class of a column type. Dictionary and extension types have
// the class of their values. Types that cannot be keys are an error that wraps
// fault.ErrUnsupported.
func ClassOf(t arrow.DataType) (Class, error) {
	if t == nil {
		return "", errors.New("no type for a key: want an Arrow type, got nil")
	}
	switch t := t.(type) {
	case *arrow.DictionaryType:
		return ClassOf(t.ValueType)
	case *Int96Type:
		return t.Class(), nil
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
	return "", faults.Of(cause.KeyColumn, faults.Unsupported(fault.At{}, "a key of type %s", t))
}

// ClassesOf converts class names to classes.
func ClassesOf(names []string) []Class {
	return each.Slice(names, func(n string) Class { return Class(n) })
}

// NamesOf converts classes to their names.
func NamesOf(classes []Class) []string {
	return each.Slice(classes, func(c Class) string { return string(c) })
}

// Numeric reports whether values of the class are numbers.
func (c Class) Numeric() bool { return c == Integer || c == Decimal || c == Float || c == AnyNumber }

// comparable reports whether keys of two classes can be compared.
func (c Class) comparable(d Class) bool {
	return c == d || c == Null || d == Null || c.Numeric() && d.Numeric()
}

// Meet returns the class in which the columns of both sides of a join are compared,
// given the classes of their files. Each side's value is converted to it exactly,
// or matches nothing. ok is false if some of the classes cannot be compared.
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
	// Two kinds of numbers: a value that only one side's class can represent
	// matches nothing, so either class is correct. Integers are the fastest;
	// otherwise take the log's class, because the log is the larger side.
	if a == Integer {
		return a, true
	}
	return b, true
}

// common returns the class of all files of one side: AnyNumber for several kinds of
// numbers, "" if they cannot be compared.
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
