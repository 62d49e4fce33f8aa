package meta

import (
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go/format"
)

// Some programs have written bounds that leave out values of the column. This file
// lists which programs are trusted for which columns, and the known faults; the
// footer names the program. Only the bounds min_value and max_value are used: the
// older min and max have most of the faults.

// Creator is the name that files give their writer unless the caller names another.
const Creator = "bloomjoin"

// BoundsBelieved reports whether the leaf's bounds in statistics and column indexes
// are in the order that its type defines, and hold all values of the column: the
// file declares the order, and its writer is trusted for such columns.
func (m *Footer) BoundsBelieved(l *Leaf) bool {
	return m.KnownOrder(l) && boundsBelieved(m.CreatedBy, l)
}

// BoundsCoverEmpty reports whether bounds of strings include empty ones. Several
// writers ignore these when they compute the minimum.
func (m *Footer) BoundsCoverEmpty() bool {
	switch name, _ := writerOf(m.CreatedBy); name {
	case Creator, "parquet-mr", "parquet-cpp-arrow", "DuckDB":
		return true
	default:
		return strings.HasPrefix(name, "Polars")
	}
}

// BloomBelieved reports whether the leaf's Bloom filters contain all values, hashed
// as they are stored.
func (m *Footer) BloomBelieved(l *Leaf) bool {
	// Integers of 8 and 16 bits are stored as 32 bits; some programs hash them
	// before the conversion (datafusion 9779).
	if l.Logical.Kind == Int && l.Logical.BitWidth < 32 {
		return false
	}
	// Arrow's Go writer released the filter's memory before it was written
	// (arrow-go 525).
	name, _ := writerOf(m.CreatedBy)
	return name != "parquet-go"
}

// BoundsCoverNaN reports whether floats that have bounds have no NaN. Other writers
// leave NaNs out of the bounds, as the format asks for; readers that take NaN for the
// largest value then skip pages that have one.
func (m *Footer) BoundsCoverNaN() bool {
	name, _ := writerOf(m.CreatedBy)
	return name == Creator || name == "parquet-mr"
}

// IsFloat reports whether values of the leaf may be NaN.
func (l *Leaf) IsFloat() bool {
	return l.Type == format.Float || l.Type == format.Double || l.Logical.Kind == Float16
}

// KnownOrder reports whether the file declares that the leaf's bounds are in the
// order that its type defines.
func (m *Footer) KnownOrder(l *Leaf) bool {
	if l.Index >= len(m.ColumnOrders) {
		return false
	}
	_, ok := m.ColumnOrders[l.Index].Value.(*format.TypeDefinedOrder)
	return ok
}

// trust is the set of column kinds for which a program's bounds are reliable.
type trust uint8

const (
	// inSigned: numbers that compare like their physical type, including dates and
	// timestamps. Nearly all programs get them right, so all are trusted except
	// those known to be wrong.
	inSigned trust = 1 << iota
	// inStrings: strings and binaries, compared as unsigned bytes and possibly
	// truncated. For these and the following kinds, only programs known to be right
	// are trusted.
	inStrings
	// inUnsigned: integers that compare differently from their physical type.
	inUnsigned
	// inFixed: decimals in bytes, which are signed, and UUIDs and other fixed-width
	// binaries, which are not.
	inFixed
	// inFloats: floats. Some programs lose all values before a NaN. Trusted programs skip
	// NaN, or write no bounds if there is one.
	inFloats

	inAll = inSigned | inStrings | inUnsigned | inFixed
)

// boundsBelieved reports whether the bounds that a program writes for columns like
// the leaf are reliable.
func boundsBelieved(createdBy string, l *Leaf) bool {
	need := inSigned
	switch {
	case l.Type == format.Float, l.Type == format.Double:
		need = inFloats
	case l.Type == format.FixedLenByteArray:
		need = inFixed
	case l.Type == format.ByteArray:
		need = inStrings
	case l.Logical.Kind == Int && !l.Logical.Signed:
		need = inUnsigned
	}
	name, v := writerOf(createdBy)
	if l.Logical.Kind == Float16 && name != Creator {
		return false // some writers compare half floats as bytes
	}
	if name == "parquet-go" && need == inUnsigned && l.MaxDef > 0 && v.before(18, 1) {
		return false // treats NULLs as zeros (arrow-go 209)
	}
	if strings.HasPrefix(name, "ClickHouse") && l.Logical.Kind == Decimal {
		return false // ignores the sign (ClickHouse 83754)
	}
	return trustIn(name, v)&need != 0
}

// trustIn returns the column kinds for which a program is trusted.
func trustIn(name string, v version) trust {
	switch name {
	case Creator, "parquet-mr":
		return inAll | inFloats
	case "impala", "parquet-mr-trino":
		return inAll
	case "parquet-cpp-arrow":
		if v.before(4, 0) { // compares decimals byte by byte (PARQUET-1655)
			return inAll &^ inFixed
		}
		return inAll | inFloats
	case "parquet-cpp":
		if v.before(1, 3) { // compares everything as signed
			return inSigned
		}
		return inAll &^ inFixed
	case "parquet-rs":
		switch {
		case v.before(6, 0): // compares strings by length, and unsigned integers as signed (arrow-rs 641)
			return inSigned
		case v.before(30, 0): // compares decimals without their sign
			return inSigned | inStrings
		}
		return inAll
	case "parquet-go": // Arrow's; loses empty strings
		return inAll &^ inFixed
	case "github.com/parquet-go/parquet-go":
		// Started over after an empty string, and kept bounds in memory that was
		// reused (130, 54). It still compares UUIDs with a common prefix wrongly on
		// processors with AVX-512 (segmentio/parquet-go 433).
		if v.before(0, 22) {
			return inSigned
		}
		return inAll &^ inFixed
	case "DuckDB":
		return inAll &^ inFixed
	case "parquet-mr compatible Photon":
		return inSigned | inStrings
	}
	switch {
	case strings.HasPrefix(name, "ClickHouse"), strings.HasPrefix(name, "Polars"):
		// Polars merges the bounds of pages by their physical type (polars 29347).
		return inSigned | inStrings
	case strings.HasPrefix(name, "hyparquet"): // truncates bounds, scales decimals (hyparquet-writer 31, 38)
		return 0
	}
	return inSigned
}

// NullsBelieved reports whether the numbers of NULLs in the file are reliable.
func (m *Footer) NullsBelieved() bool {
	name, _ := writerOf(m.CreatedBy)
	return !strings.HasPrefix(name, "hyparquet")
}

// version is the first two numbers of a version; zero if not known.
type version struct{ major, minor int }

func (v version) before(major, minor int) bool {
	return v.major < major || v.major == major && v.minor < minor
}

// writerOf splits a footer's created_by into the program's name and version.
func writerOf(createdBy string) (name string, v version) {
	name, rest, _ := strings.Cut(createdBy, " version ")
	rest = strings.TrimPrefix(rest, "v")
	rest = rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789."))]
	parts := strings.Split(rest, ".")
	v.major, _ = strconv.Atoi(parts[0])
	if len(parts) > 1 {
		v.minor, _ = strconv.Atoi(parts[1])
	}
	return name, v
}
