package joins_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
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

// Pieces that are not of the log, that overlap, or that leave rows out where IDs without a
// log row are in the answer, would give rows that no log row has.
func TestWrongPieces(t *testing.T) {
	logs := files(t, 2, 5, numbers("k", arrow.PrimitiveTypes.Int64, 0, 100))
	other := files(t, 1, 5, numbers("k", arrow.PrimitiveTypes.Int64, 0, 50))[0]
	ids := files(t, 1, 1, numbers("k", arrow.PrimitiveTypes.Int64, 10, 110))
	p := func(f *partition.File, lo, hi int) partition.Piece { return partition.Piece{File: f, Lo: lo, Hi: hi} }
	n := logs[0].NumGroups()
	for name, c := range map[string]struct {
		pieces []partition.Piece
		typ    join.Type
		want   string // of the error; empty: none
	}{
		"some":              {[]partition.Piece{p(logs[0], 1, 3), p(logs[0], 3, 4), p(logs[1], 0, 1)}, join.Semi, ""},
		"none":              {[]partition.Piece{}, join.Left, ""},
		"all":               {[]partition.Piece{p(logs[0], 0, 2), p(logs[0], 2, n), p(logs[1], 0, n)}, join.Right, ""},
		"some, right":       {[]partition.Piece{p(logs[0], 0, 2), p(logs[1], 0, n)}, join.Right, "pieces of the log"},
		"none, full":        {[]partition.Piece{}, join.Full, "pieces of the log"},
		"overlapping":       {[]partition.Piece{p(logs[0], 0, 3), p(logs[0], 2, 4)}, join.Semi, "piece 2 of 2"},
		"descending":        {[]partition.Piece{p(logs[1], 0, 1), p(logs[0], 0, 1)}, join.Semi, "piece 2 of 2"},
		"of another file":   {[]partition.Piece{p(logs[0], 0, 1), p(other, 0, 1)}, join.Inner, "not a file of the log"},
		"behind its groups": {[]partition.Piece{p(logs[0], 0, n+1)}, join.Anti, "Pieces"},
	} {
		_, err := join.New(ids, logs, join.Options{On: "k", Type: c.typ, Pieces: c.pieces})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
