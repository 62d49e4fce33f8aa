package arrowparquet

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
)

// DefaultRowGroupRows is the default number of rows in a row group.
const DefaultRowGroupRows = 128 << 10

// DefaultRowGroupBytes is the default size of a row group's rows, in bytes.
const DefaultRowGroupBytes = 64 << 20

// pieceBytes is the approximate size of the rows that are converted to levels and
// values at a time.
const pieceBytes = 4 << 20

// appender adds records to an open Parquet file, in row groups of their own. The
// output does not depend on how the rows are divided into records. It is not safe
// for concurrent use, nor for use concurrent with other writers of row groups to
// the file.
type appender struct {
	file     *parquet.Writer
	shred    *Shredder
	maxRows  int64
	maxBytes int64

	chunks []*parquet.ChunkWriter // of the pending row group; nil before its first row
	rows   int64                  // rows in chunks
	bytes  int64                  // bytes in chunks, as counted by rowSizes
	err    error                  // first error; sticky
}

// newAppender returns an appender to w, which must have the shredder's schema. Of opts
// it uses the sizes of row groups.
func newAppender(w *parquet.Writer, shred *Shredder, opts WriterOptions) (*appender, error) {
	if opts.RowGroupRows < 0 || opts.RowGroupBytes < 0 {
		return nil, fmt.Errorf("row groups of %d rows and %d bytes", opts.RowGroupRows, opts.RowGroupBytes)
	}
	a := &appender{file: w, shred: shred, maxRows: opts.RowGroupRows, maxBytes: opts.RowGroupBytes}
	if a.maxRows == 0 {
		a.maxRows = DefaultRowGroupRows
	}
	if a.maxBytes == 0 {
		a.maxBytes = DefaultRowGroupBytes
	}
	return a, nil
}

// write adds the rows of rec, whose columns must have the types of the file's. It
// keeps no reference to rec. After an error every later call returns it.
func (a *appender) write(rec arrow.Record) error {
	if a.err != nil {
		return a.err
	}
	if a.err = a.shred.check(rec); a.err != nil {
		return a.err
	}
	sizes := sizesOf(rec)
	for from := int64(0); from < rec.NumRows() && a.err == nil; {
		n, full, err := a.fitting(&sizes, from, rec.NumRows())
		if a.err = err; err != nil {
			break
		}
		if n > 0 {
			a.err = a.add(rec.NewSlice(from, from+n))
		}
		from += n
		if full && a.err == nil {
			a.err = a.writeGroup()
		}
	}
	return a.err
}

// fitting returns the number of rows, starting with from, to add next: at most what
// fits the pending row group. full reports whether the row group is then full.
func (a *appender) fitting(sizes *rowSizes, from, end int64) (n int64, full bool, err error) {
	defer recovered("measuring rows", &err)
	for piece := int64(0); from+n < end && piece < pieceBytes; n++ {
		size := sizes.row(int(from + n))
		if a.rows > 0 && size > a.maxBytes-a.bytes {
			return n, true, nil
		}
		a.rows++
		a.bytes += size
		piece += size
		if a.rows == a.maxRows || a.bytes >= a.maxBytes {
			return n + 1, true, nil
		}
	}
	return n, false, nil
}

// add adds the rows of rec to the pending row group and releases rec.
func (a *appender) add(rec arrow.Record) error {
	defer rec.Release()
	if a.chunks == nil {
		for i := range a.shred.plan.leaves {
			c := a.file.Chunk(i)
			c.UseDictionary()
			a.chunks = append(a.chunks, c)
		}
	}
	return a.shred.shred(rec, func(leaf int, p *parquet.Page) error { return a.chunks[leaf].Add(p, nil) })
}

// flush writes the pending rows as a row group.
func (a *appender) flush() error {
	if a.err == nil && a.rows > 0 {
		a.err = a.writeGroup()
	}
	return a.err
}

func (a *appender) writeGroup() error {
	chunks := make([]*parquet.EncodedChunk, len(a.chunks))
	for i, c := range a.chunks {
		var err error
		if chunks[i], err = c.Finish(); err != nil {
			return err
		}
	}
	n := a.rows
	a.chunks, a.rows, a.bytes = nil, 0, 0
	return a.file.RowGroup(n, chunks)
}
