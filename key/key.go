// Package key holds keys that a program has in memory, for filters to be built of and asked
// for.
//
//	Int64s, Strings, …, Array ── Values ──► filterbuild.Worker.Add, codec.Filter.Probe
//
// Key columns of files are named by text instead, as in `user.id::int64,"a.b"`: a path and,
// after two colons, a cast.
//
// # Equal keys
//
// Equal values are equal keys, whatever the width, unit or encoding of the columns that
// they come from: 7 as an int8 is 7 as a uint64. A value goes through up to four steps:
//
//   - its normal form: bytes that depend on the value alone, for all types of one class,
//     such as integers. codec/FORMAT.md specifies them.
//   - a cast, if the column is named as COL::TYPE. A cast never rounds: a value that the
//     type cannot hold is an error ([ErrMisfit]), or NULL where the options say so.
//   - the rules that normalize strings: trim, lower case, UUIDs from text. Both sides of a
//     comparison use the same, and filters record them.
//   - a conversion to the class of the other side, if both are numbers. It is exact, too,
//     but a value without an equal there is a key that matches nothing, no error.
package key

import (
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// Values are keys from a program: one column of Go values or of an Arrow array, or several
// combined by [Columns]. They refer to the caller's memory, which must not change while they
// are in use. Make them with one of the functions that return Values; the zero value has no
// column.
type Values keys.Values

// Len returns the number of rows, which is that of the first column.
func (v Values) Len() int { return keys.Values(v).Len() }

// Valid returns v with NULL also in the rows i for which valid[i] is false, in each column. nil
// changes nothing. A row with a NULL is not a key. An [Array] has NULLs of its own instead.
func (v Values) Valid(valid []bool) Values { return Values(keys.Values(v).Valid(valid)) }

// Int64s returns integer keys.
func Int64s(v []int64) Values { return Values(keys.Int64s(v)) }

// Uint64s returns integer keys. They equal those of Int64s with the same value.
func Uint64s(v []uint64) Values { return Values(keys.Uint64s(v)) }

// UUIDs returns keys of 16 bytes.
func UUIDs(v [][16]byte) Values { return Values(keys.UUIDs(v)) }

// Strings returns string keys. A filter's rules apply to them; under the rule uuid they are
// UUIDs in text form.
func Strings(v []string) Values { return Values(keys.Strings(v)) }

// ByteSlices returns keys that are byte strings, of the same class as Strings. nil is the
// empty string, not NULL.
func ByteSlices(v [][]byte) Values { return Values(keys.ByteSlices(v)) }

// Array returns keys from an array of any supported key type. A NULL is not a key. The array
// is not retained. Using the keys of a nil array is an error.
func Array(a arrow.Array) Values { return Values(keys.Array(a)) }

// Columns returns composite keys whose columns are those of the given values, in order. All
// must have the same number of rows.
func Columns(v ...Values) Values {
	return Values(keys.Columns(each.Slice(v, func(v Values) keys.Values { return keys.Values(v) })...))
}

// Sentinels, for errors.Is.
var (
	// ErrMisfit is wrapped by errors about a value that does not fit the type it is cast to.
	ErrMisfit = keys.ErrMisfit
	// ErrNoUUID is wrapped by errors about an ID that is not a UUID, under the rule uuid.
	ErrNoUUID = keys.ErrNoUUID
)
