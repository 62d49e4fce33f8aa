package partition

import (
	"strconv"
	"strings"

	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/parquet-go/parquet-go/format"
)

// Programs have written bounds that leave out values of the column. Which ones
// and in which columns, as far as is known, stands here. The footer names the
// program that wrote it. Only the bounds called min_value and max_value count;
// those called min and max are older, and so are most of the faults in them.

// knownOrder reports whether the file says that the leaf's bounds are in the
// order that its type defines.
func knownOrder(f *parquet.File, l *parquet.Leaf) bool {
	if len(f.Metadata.ColumnOrders) != len(f.Leaves) {
		return false
	}
	_, ok := f.Metadata.ColumnOrders[l.Index].Value.(*format.TypeDefinedOrder)
	return ok
}

// boundsBelieved reports whether the bounds that a program writes for columns
// like the leaf can be relied on.
func boundsBelieved(createdBy string, l *parquet.Leaf) bool {
	name, v := writerOf(createdBy)
	array := l.Type == format.ByteArray || l.Type == format.FixedLenByteArray
	switch {
	case strings.HasPrefix(name, "hyparquet"):
		// Cut off upper bounds without raising them, scaled decimals.
		return false
	case name == "parquet-rs" && v.before(6, 0):
		// Compared strings by their length first (arrow-rs 641).
		return false
	case name == "github.com/segmentio/parquet-go", name == "github.com/parquet-go/parquet-go" && v.before(0, 22):
		// Kept bounds in memory that was used again, and began anew behind an
		// empty value (parquet-go 54, 130).
		return !array
	}
	if unsigned(l) || array && l.Logical.Kind == parquet.Decimal {
		return exoticBelieved(name, v, l)
	}
	// ClickHouse compared decimals as if they had no sign (ClickHouse 83754).
	return l.Logical.Kind != parquet.Decimal || !strings.HasPrefix(name, "ClickHouse")
}

func unsigned(l *parquet.Leaf) bool { return l.Logical.Kind == parquet.Int && !l.Logical.Signed }

// exoticBelieved reports whether a program knows that the order of a leaf's
// values is not that of its physical type. Many did not, or forgot it on the way
// from the pages' bounds to the chunk's; so here those count that are known to
// do it right, not those that are known not to.
func exoticBelieved(name string, v version, l *parquet.Leaf) bool {
	switch name {
	case "bloomjoin", "parquet-mr", "parquet-mr-trino", "impala":
		return true
	case "parquet-cpp": // PARQUET-1655: decimals compared byte by byte
		return unsigned(l) && !v.before(1, 3)
	case "parquet-cpp-arrow":
		return unsigned(l) || !v.before(4, 0)
	case "parquet-rs":
		return !v.before(30, 0)
	case "parquet-go": // Arrow's; arrow-go 209: NULLs counted as zeros and as the greatest value
		return unsigned(l) && (l.MaxDef == 0 || !v.before(18, 1))
	case "github.com/parquet-go/parquet-go", "DuckDB":
		return unsigned(l)
	}
	return false
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
