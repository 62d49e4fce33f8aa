package prune

import (
	"strconv"
	"strings"

	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/parquet-go/parquet-go/format"
)

// Programs have written bounds that leave out values of the column. Which ones
// are believed in which columns stands here, with the faults that are known; the
// footer names the program that wrote it. Only the bounds called min_value and
// max_value count: those called min and max are older, and so are most of the
// faults in them.

// knownOrder reports whether the file says that the leaf's bounds are in the
// order that its type defines.
func knownOrder(f *parquet.File, l *parquet.Leaf) bool {
	if len(f.Metadata.ColumnOrders) != len(f.Leaves) {
		return false
	}
	_, ok := f.Metadata.ColumnOrders[l.Index].Value.(*format.TypeDefinedOrder)
	return ok
}

// trust says of which columns a program's bounds are believed.
type trust uint8

const (
	// inSigned: numbers that compare as their physical type does, dates and
	// timestamps among them. Nearly everybody gets them right, so that only those
	// are left out who are known not to.
	inSigned trust = 1 << iota
	// inStrings: strings and binaries, by unsigned bytes, perhaps cut off. In
	// these and what follows, only those are believed who are known to be right.
	inStrings
	// inUnsigned: integers that compare otherwise than their physical type does.
	inUnsigned
	// inFixed: decimals in bytes, which have a sign, and UUIDs and other binaries
	// of one width, which have none.
	inFixed
	// inFloats: floats. A program may lose all values before a NaN; only those
	// are believed that pass over NaN, or write no bounds where there is one.
	inFloats

	inAll = inSigned | inStrings | inUnsigned | inFixed
)

// boundsBelieved reports whether the bounds that a program writes for columns
// like the leaf can be relied on.
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

// trustIn returns what is known of a program.
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
		// Began anew behind an empty string, and kept bounds in memory that was
		// used again (130, 54). UUIDs that begin alike are compared wrong where
		// the processor has AVX-512 (segmentio/parquet-go 433), still.
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
	// Integers of 8 and 16 bits are stored in 32; some hash what they were
	// before (datafusion 9779).
	if l.Logical.Kind == parquet.Int && l.Logical.BitWidth < 32 {
		return false
	}
	// Arrow's in Go gave the filter's memory back before it was written
	// (arrow-go 525).
	name, _ := writerOf(createdBy)
	return name != "parquet-go"
}

// version is the first two numbers of a version; zero if it is not known.
type version struct{ major, minor int }

func (v version) before(major, minor int) bool {
	return v.major < major || v.major == major && v.minor < minor
}

// writerOf splits what a footer says of its writer into the program's name and
// version.
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
