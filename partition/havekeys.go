package partition

import (
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/key"
)

// Skipped is a file that is left out, with the reason.
type Skipped struct {
	File *File
	Why  string
}

// HaveKeys divides the files of a log into those that have the key columns of the
// matches and those that lack one, to be left out as if all of their keys were
// NULL. Unusable types are rejected later.
//
// A file is left out if it lacks a column of some match or, with anyMatch, of every
// match. Matches with NoMatch keep rows without a key, so they do not count. It is
// an error if all files lack a column.
func HaveKeys(files []*File, matches []Match, anyMatch bool) (with []*File, without []Skipped, err error) {
	for _, f := range files {
		why, lacking, wanted := "", 0, 0
		for _, m := range matches {
			if m.NoMatch {
				continue
			}
			wanted++
			missing, err := m.missing(f.Schema())
			if err != nil {
				return nil, nil, err
			}
			if missing != nil {
				lacking++
				why = fmt.Sprintf("it has no key column %s", missing)
			}
		}
		if lacking > 0 && (!anyMatch || lacking == wanted) {
			without = append(without, Skipped{f, why})
		} else {
			with = append(with, f)
		}
	}
	if len(with) == 0 && len(without) > 0 {
		return nil, nil, fault.Mismatch(fault.At{File: without[0].File.Name}, "key columns", "those of the filter, in at least one file of the log", without[0].Why+", and the other files lack it, too").
			WithHint("check the names of the key columns")
	}
	return with, without, nil
}

// missing returns the first key column that the schema lacks, or nil. Ambiguous
// names, and paths through anything but a struct, are not missing: they are errors
// elsewhere.
func (m Match) missing(schema *arrow.Schema) (key.Path, error) {
	columns, err := m.keyColumns()
	if err != nil {
		return nil, err
	}
	for _, c := range columns {
		if schema.HasField(strings.Join(c.Path, ".")) { // a column with exactly that name: the path needs quotes
			continue
		}
		var e *key.NotFoundError
		if _, err := c.Resolve(schema, m.IgnoreCase); errors.As(err, &e) && e.Missing() {
			return c.Path, nil
		}
	}
	return nil, nil
}
