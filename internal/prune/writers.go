package prune

import (
	"strconv"
	"strings"

	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/parquet-go/parquet-go/format"
)

// Some programs have written wrong bounds. This file lists which programs' bounds
// are believed for which columns, with the known faults; the footer names the
// program. Only min_value and max_value count. The older min and max are ignored,
// since most of the faults are in them.

// knownOrder reports whether the leaf's bounds are declared to be in the order that
// its type defines.
func knownOrder(f *parquet.File, l *parquet.Leaf) bool {
	if len(f.Metadata.ColumnOrders) != len(f.Leaves) {
		return false
	}
	_, ok := f.Metadata.ColumnOrders[l.Index].Value.(*format.TypeDefinedOrder)
	return ok
}

// trust is the set of columns for which a program's bounds are believed.
type trust uint8

const (
	// inSigned: numbers that compare as their physical type does, such as dates
	// and timestamps. Believed unless the program is known to be wrong.
	inSigned trust = 1 << iota
	// inStrings: strings and binaries, by unsigned bytes, possibly truncated. These
	// and the following are believed only if the program is known to be right.
	inStrings
	// inUnsigned: integers that do not compare as their physical type does.
	inUnsigned
	// inFixed: decimals in bytes, which are signed, and UUIDs and other binaries of
	// fixed width, which are unsigned.
	inFixed
	// inFloats: floats. A program may lose all values before a NaN. Believed if it
	// skips NaN, or writes no bounds for pages with NaN.
	inFloats

	inAll = inSigned | inStrings | inUnsigned | inFixed
)

// boundsBelieved reports whether a program's bounds of columns like the leaf are
// reliable.
func boundsBelieved(createdBy string, l *parquet.Leaf) bool {
	need := inSigned
	switch {
	case l.Type == format.Float, l.Type == format.Double:
		need = inFloats
	case l.Type == format.FixedLenByteArray:
		need = inFixed
	case l.Type == format.ByteArray:
		need = inStrings
	case l.Logical.Kind == parquet.Int && !l.Logical.Signed:
		need = inUnsigned
	}
	name, v := writerOf(createdBy)
	if name == "parquet-go" && need == inUnsigned && l.MaxDef > 0 && v.before(18, 1) {
		return false // NULLs taken for zeros (arrow-go 209)
	}
	if strings.HasPrefix(name, "ClickHouse") && l.Logical.Kind == parquet.Decimal {
		return false // compared without their sign (ClickHouse 83754)
	}
	return trustIn(name, v)&need != 0
}

// trustIn returns the trust in a version of a program.
func trustIn(name string, v version) trust {
	switch name {
	case "bloomjoin", "parquet-mr":
		return inAll | inFloats
	case "impala", "parquet-mr-trino":
		return inAll
	case "parquet-cpp-arrow":
		if v.before(4, 0) { // decimals compared byte by byte (PARQUET-1655)
			return inAll &^ inFixed
		}
		return inAll | inFloats
	case "parquet-cpp":
		if v.before(1, 3) { // all compared as if signed
			return inSigned
		}
		return inAll &^ inFixed
	case "parquet-rs":
		switch {
		case v.before(6, 0): // strings compared by length, and unsigned ones as if signed (arrow-rs 641)
			return inSigned
		case v.before(30, 0): // decimals compared without their sign
			return inSigned | inStrings
		}
		return inAll
	case "parquet-go": // Arrow's; loses empty strings
		return inAll &^ inFixed
	case "github.com/parquet-go/parquet-go":
		// Started over after an empty string, and kept bounds in reused memory
		// (130, 54). UUIDs with equal prefixes are still compared wrongly on
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
		// Polars merges its pages' bounds by their physical type (polars 29347).
		return inSigned | inStrings
	case strings.HasPrefix(name, "hyparquet"): // bounds cut off, decimals scaled (hyparquet-writer 31, 38)
		return 0
	}
	return inSigned
}

// bloomBelieved reports whether the Bloom filters that a program writes for
// columns like the leaf hold all values, hashed as they are stored.
func bloomBelieved(createdBy string, l *parquet.Leaf) bool {
	// Integers of 8 and 16 bits are stored in 32; some programs hash the original
	// width (datafusion 9779).
	if l.Logical.Kind == parquet.Int && l.Logical.BitWidth < 32 {
		return false
	}
	// Arrow for Go released the filter's memory before writing it (arrow-go 525).
	name, _ := writerOf(createdBy)
	return name != "parquet-go"
}

// version is the first two numbers of a version; zero if unknown.
type version struct{ major, minor int }

func (v version) before(major, minor int) bool {
	return v.major < major || v.major == major && v.minor < minor
}

// writerOf splits the footer's created_by into the program's name and version.
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
