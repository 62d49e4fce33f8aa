package joins_test

import (
	"fmt"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/join"
)

// inputsAgree returns an error if the figures of the inputs do not add up to those of
// the report. where says that the log has a condition, which the report may count
// without the rows that fail it.
func inputsAgree(w dataset.Written, r join.Report, typ join.Type, where bool) error {
	var in, kept, out, null int64
	for _, i := range w.Inputs {
		where = where || i.RowsIn < 0 // a stream, whose rows are not known before it is read
		in, kept, out, null = in+i.RowsIn, kept+i.RowsKept, out+i.RowsOut, null+i.KeysNull
		if i.RowsOut > 0 && len(i.Files) == 0 && len(w.Files) > 0 {
			return fmt.Errorf("%s: %d rows in files %v", i.Rel, i.RowsOut, i.Files)
		}
	}
	want := r.RowsOut
	switch typ {
	case join.Inner, join.Right:
		want = r.RowsMatched
	case join.Left, join.Full:
		want = r.RowsWhere
	}
	keepsIDs := typ == join.Right || typ == join.Full
	if in != r.RowsIn && !where || kept != want || null != r.KeysNull || out > r.RowsOut || out < r.RowsOut && !keepsIDs {
		return fmt.Errorf("the inputs have %d rows, %d of them without a key; %d are kept, as %d; the report says %d, %d, %d, %d", in, null, kept, out, r.RowsIn, r.KeysNull, want, r.RowsOut)
	}
	return nil
}
