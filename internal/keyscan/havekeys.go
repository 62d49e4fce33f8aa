package keyscan

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/prune"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// HaveKeys returns the files of a log that have the key columns of the matches. It
// calls skip with each of the others, which are to be left out as if all of their
// keys were NULL, and with the reason. Unusable types are rejected later.
//
// A file is left out if it lacks a column of some match or, with anyMatch, of every
// match. Matches with NoMatch keep rows without a key, so they do not count. It is
// an error if all files lack a column.
func HaveKeys(files []*source.File, matches []dataset.Match, anyMatch bool, skip func(f *source.File, why string)) (with []*source.File, err error) {
	var none error
	for _, f := range files {
		why, lacking, wanted := "", 0, 0
		for _, m := range matches {
			if m.NoMatch {
				continue
			}
			wanted++
			missing, err := Predicate{Match: m}.missing(f.Schema())
			if err != nil {
				return nil, err
			}
			if missing != nil {
				lacking++
				why = fmt.Sprintf("it has no key column %s", missing)
			}
		}
		if lacking == 0 || anyMatch && lacking < wanted {
			with = append(with, f)
			continue
		}
		skip(f, why)
		if none == nil {
			none = faults.Of(cause.NoColumn, faults.Mismatch(fault.At{File: f.Name()}, "key columns", "those of the filter, in at least one file of the log", why+", and the other files lack it, too")).
				WithHint("check the names of the key columns")
		}
	}
	if len(with) == 0 {
		return nil, none
	}
	return with, nil
}

// missing returns the first key column that the schema lacks, or nil. Ambiguous
// names, and paths through anything but a struct, are not missing: they are errors
// elsewhere.
func (m Predicate) missing(schema *arrow.Schema) (keys.Path, error) {
	columns, err := m.keyColumns()
	if err != nil {
		return nil, err
	}
	for _, c := range columns {
		if schema.HasField(strings.Join(c.Path, ".")) { // a column with exactly that name: the path needs quotes
			continue
		}
		var e *keys.NotFoundError
		if _, err := c.Resolve(schema, m.IgnoreCase); errors.As(err, &e) && e.Missing() {
			return c.Path, nil
		}
	}
	return nil, nil
}

// IntegerRange returns bounds of an integer key column of the files, according to
// the statistics that pruning trusts. ok is false if they are not known for some
// file, or if there are no values. It reads nothing.
func IntegerRange(files []*source.File, column keys.Column, ignoreCase bool) (lo, hi float64, ok bool) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, f := range files {
		p := f.Parquet()
		field, err := column.Resolve(f.Schema(), ignoreCase)
		if p == nil || err != nil || column.Cast != nil {
			return 0, 0, false
		}
		least, most, known := prune.IntegerRange(p.File(), field.Names)
		if !known {
			return 0, 0, false
		}
		lo, hi = math.Min(lo, least), math.Max(hi, most)
	}
	return lo, hi, lo <= hi
}
