package partition

import (
	"context"

	"github.com/bloomjoin/bloomjoin/internal/text"
)

// plainText returns the table of a text file, and its column that is the whole
// key, if its lines can be parsed straight into keys.
func (r *keyReader) plainText(f *File) (t *text.Table, column int, ok bool) {
	t, ok = f.table.(*text.Table)
	index := r.enc.Index()
	if !ok || len(index) != 1 || !r.enc.AsStored() || t.Kind(index[0]) == text.Other {
		return nil, 0, false
	}
	return t, index[0], true
}

// parsersOf divides the threads among the pieces that they work on at once: a
// text file is one row group.
func parsersOf(pieces []Piece, threads int) int {
	groups := 0
	for _, p := range pieces {
		groups += p.Hi - p.Lo
	}
	return threads / max(min(groups, threads), 1)
}

// text reads the keys of a text file.
func (r *keyReader) text(ctx context.Context, p Piece, t *text.Table, column int) error {
	kind := t.Kind(column)
	for v, err := range t.ReadPlain(ctx, column, r.parsers) {
		if err != nil {
			return err
		}
		if kind == text.Bytes {
			r.batch.SetBytes(v.Plain, v.NonNull, r.options.Rule)
		} else {
			r.batch.SetInts(v.Plain, v.NonNull, 8, kind == text.Signed)
		}
		r.batch.Len = v.Rows
		if err := r.pass(p, &r.batch); err != nil {
			return err
		}
	}
	return nil
}

// BadLines says which lines of a text file were left out, with
// [OpenOptions.SkipBad], by the last reading of the file that came to its end:
// how many, and the numbers of the first 20 of them, from 1. It may be called
// from many goroutines.
func (f *File) BadLines() (count int64, first []int) {
	t, ok := f.table.(*text.Table)
	if !ok {
		return 0, nil
	}
	bad := t.Bad()
	return bad.Lines, bad.First
}

// SkipsBad reports whether bad lines of the file are left out, which changes
// what is in it.
func (f *File) SkipsBad() bool {
	t, ok := f.table.(*text.Table)
	return ok && t.SkipsBad()
}
