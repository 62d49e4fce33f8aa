package partition

import (
	"context"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/text"
	"github.com/bloomjoin/bloomjoin/key"
)

// plainText returns the table of a text file, and its column that is the whole
// key, if its lines can be parsed straight into keys.
func (w *keyWorker) plainText(f *File) (t *text.Table, column int, ok bool) {
	t, ok = f.table.(*text.Table)
	index := w.enc.Index()
	if !ok || len(index) != 1 || !w.enc.AsStored() || t.Kind(index[0]) == text.Other {
		return nil, 0, false
	}
	return t, index[0], true
}

// parsersOf divides the threads among the text files that they read at once: a
// text file is one row group.
func parsersOf(tasks []task, threads int) int {
	return threads / max(min(len(tasks), threads), 1)
}

// text hands on the keys of a text file.
func (w *keyWorker) text(ctx context.Context, t *text.Table, column int) error {
	if w.options.Sample.Pages > 0 {
		return nil
	}
	kind := t.Kind(column)
	for v, err := range t.ReadPlain(ctx, column, w.parsers) {
		if err != nil {
			return err
		}
		if kind == text.Bytes {
			w.batch.SetBytes(v.Plain, v.NonNull, w.options.Rule)
		} else {
			w.batch.SetInts(v.Plain, v.NonNull, 8, kind == text.Signed)
		}
		w.batch.Len = v.Rows
		if err := fit(&w.batch, w.file.Name, w.columns, w.options.IDs); err != nil {
			return err
		}
		if err := w.pass(); err != nil {
			return err
		}
	}
	return nil
}

// fit returns an error if a value does not fit its cast or, among IDs, is none.
func fit(b *key.Batch, file string, columns []key.Column, ids bool) error {
	if _, faulty := b.Faulty(); !faulty {
		return nil
	}
	if err := b.Fit(fault.At{File: file}, columns); err != nil || !ids {
		return err
	}
	return b.IDs(atColumns(file, columns))
}

// atColumns is the place of key columns in a file.
func atColumns(file string, columns []key.Column) fault.At {
	return fault.At{File: file, Column: key.ColumnsString(columns)}
}

// BadLines returns the lines of a text file that the last complete reading left
// out under [OpenOptions].SkipBad: their number, and the numbers of the first 20
// of them, counted from 1. It may be called from many goroutines.
func (f *File) BadLines() (count int64, first []int) {
	t, ok := f.table.(*text.Table)
	if !ok {
		return 0, nil
	}
	bad := t.Bad()
	return bad.Lines, bad.First
}

// SkipsBad reports whether bad lines of the file are left out, which changes its
// contents.
func (f *File) SkipsBad() bool {
	t, ok := f.table.(*text.Table)
	return ok && t.SkipsBad()
}
