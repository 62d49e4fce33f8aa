package joins_test

import (
	"errors"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
)

// A right or full join with a shared key whose types no single column can hold is
// refused with a remedy. The remedy, followed to the letter, works.
func TestSharedKeyRemedy(t *testing.T) {
	for _, c := range []struct {
		log, id       column
		hint, renamed string
	}{
		{texts("k", "1", "2"), ints("k", "2", "3"), "give the ID's column another name, so that each side keeps its own, and cast the log's column: k::int64=NAME, or ::decimal(20,0) for numbers with leading zeros", "k::int64=NAME"},
		{ints("k", "1", "2"), texts("k", "2", "3"), "give the ID's column another name, so that each side keeps its own, and cast the IDs: k=NAME::int64, or ::decimal(20,0) for numbers with leading zeros", "k=NAME::int64"},
		{floats("k", "1", "2"), ints("k", "2", "3"), "rename the ID's column and write On k=NAME, so that each side keeps its own, or leave the key out with Columns", "k=NAME"},
	} {
		logs := open(t, partition.OpenOptions{}, writeTable(t, table(t, c.log, ints("l", "0", "1")), 1, 1, ""))
		for typ, want := range map[join.Type]int{join.Right: 2, join.Full: 3} {
			ids := open(t, partition.OpenOptions{}, writeTable(t, table(t, c.id, ints("r", "0", "1")), 1, 1, ""))
			_, err := run(t, ids, logs, join.Options{On: "k", Type: typ})
			var e *fault.Error
			if !errors.As(err, &e) || e.Hint.String() != c.hint {
				t.Errorf("%s: %v, want the hint %q", typ, err, c.hint)
			}
			renamed := c.id
			renamed.name = "NAME"
			ids = open(t, partition.OpenOptions{}, writeTable(t, table(t, renamed, ints("r", "0", "1")), 1, 1, ""))
			if got, err := run(t, ids, logs, join.Options{On: c.renamed, Type: typ}); err != nil || len(got.rows) != want {
				t.Errorf("%s on %s: %d rows, want %d: %v", typ, c.renamed, len(got.rows), want, err)
			}
		}
	}
}

func floats(name string, values ...string) column {
	return column{name: name, dt: arrow.PrimitiveTypes.Float64, values: values}
}
