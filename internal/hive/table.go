package hive

import (
	"strings"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/glob"
)

// Table reports whether a path is part of the metadata of a table format, whose Parquet
// files may hold rows that have been deleted or replaced since. rel is the path below the
// directory that is read, dir the path of the table there, and mark what shows it.
func Table(rel string) (format, dir, mark string) {
	elements := strings.Split(rel, "/")
	for i, element := range elements[:len(elements)-1] {
		switch {
		case element == "_delta_log":
			format, mark = "Delta Lake", element
		case element == ".hoodie":
			format, mark = "Hudi", element
		case element == "metadata" && i == len(elements)-2 && strings.HasSuffix(elements[i+1], ".metadata.json"):
			format, mark = "Iceberg", "metadata/*.metadata.json"
		case glob.Marker(element):
			return "", "", ""
		default:
			continue
		}
		return format, strings.Join(elements[:i], "/"), mark
	}
	return "", "", ""
}

// NotPlain returns the error of a directory that is a table of such a format.
func NotPlain(dir, format, mark string) error {
	return faults.Unsupported(fault.At{File: dir}, "a %s table (it has %s); read as plain Parquet, rows that were deleted would come back", format, mark).
		WithHint("write the table's current rows to Parquet first, or name the files that are current")
}
