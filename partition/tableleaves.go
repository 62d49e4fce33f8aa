package partition

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/leaves"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
)

// Limits of a block of rows that are read from a Parquet file.
const (
	blockBytes = 32 << 20 // if memory is not limited
	blockShare = 32       // a block may take at most 1/blockShare of the memory budget
	mostRow    = 1 << 30  // bytes of a row
)

// fromLeaves emits the rows of a range of a Parquet file in blocks of bounded size.
func (w *rowWorker) fromLeaves(ctx context.Context, r rowRange, emit func(Rows) error) error {
	rows, err := w.rowsIn(ctx, r)
	if err != nil {
		return err
	}
	if r.lo == 0 || w.perRow == 0 {
		w.perRow = w.guess(r.group)
	}
	for len(rows) > 0 {
		n := int(min(float64(w.limit())/w.perRow+1, float64(len(rows))))
		batches, err := w.block(ctx, r.group, rows[:n])
		for errors.Is(err, errLarge) {
			n /= 2
			batches, err = w.block(ctx, r.group, rows[:n])
		}
		if err != nil {
			return err
		}
		rows = rows[n:]
		w.perRow = max(float64(batches[0].block.Bytes())/float64(n), 1)
		for i, b := range batches {
			if w.scan == nil {
				w.count(int64(b.Keys.Len), int64(b.Keys.Nulls()))
			}
			if err := emit(Rows{batch: b}); err != nil {
				for _, b := range batches[i+1:] {
					b.release()
				}
				return err
			}
		}
	}
	return nil
}

// rowsIn returns the rows of a range that are to be read, ascending. They are valid
// until the next call.
func (w *rowWorker) rowsIn(ctx context.Context, r rowRange) (_ []uint32, err error) {
	w.rows = w.rows[:0]
	if w.keys != nil {
		w.rows, err = w.keys.scan(ctx, r, w.rows)
		return w.rows, err
	}
	for row := r.lo; row < r.hi; row++ {
		w.rows = append(w.rows, uint32(row))
	}
	return w.rows, nil
}

// limit is the number of bytes that a block may have.
func (w *rowWorker) limit() int64 {
	most := w.file.parquet().File().Room().Part(blockShare, blockBytes)
	if w.way.batch > 0 {
		most = min(most, w.way.batch)
	}
	return most
}

// guess returns the bytes that a row of a row group takes according to the footer.
// Because of dictionaries it may be more.
func (w *rowWorker) guess(group int) float64 {
	rg := &w.file.parquet().File().Metadata.RowGroups[group]
	bytes := 8 * float64(rg.NumRows)
	for _, l := range w.file.parquet().Below(w.source.columns) {
		bytes += float64(min(rg.Columns[l].MetaData.TotalUncompressedSize, 1<<40))
	}
	return bytes / float64(max(rg.NumRows, 1))
}

// errLarge means that the block would exceed its limit.
var errLarge = errors.New("the block exceeds its limit")

// block reads rows of a row group into one block, and returns them with their keys, in
// one batch or several. The error is errLarge if there are several rows and the block
// would take more than twice the limit.
func (w *rowWorker) block(ctx context.Context, group int, rows []uint32) (batches []*RowBatch, err error) {
	f := &rowFill{rowWorker: w, group: group, rows: rows}
	defer func() {
		if err != nil {
			w.builder = leaves.NewBuilder(w.table.leaves)
			for _, b := range f.batches {
				b.release()
			}
		}
	}()
	if w.source.leaves == nil {
		err = f.byRecords(ctx)
	} else {
		err = f.byPages(ctx)
	}
	if err != nil {
		return nil, err
	}
	if w.leaf != nil {
		err = f.leafKeys(ctx)
	} else {
		err = f.recordKeys(ctx)
	}
	if err != nil {
		return nil, inGroup(err, w.file, group)
	}
	block, err := w.builder.Block(len(rows))
	if err != nil {
		return nil, w.placed(group, err)
	}
	for _, b := range f.batches {
		b.block = block
	}
	return f.batches, nil
}

// rowFill reads the rows of one block.
type rowFill struct {
	*rowWorker
	group   int
	rows    []uint32
	bytes   int64
	batches []*RowBatch

	keyed bool     // the keys have been read with the block
	plain []byte   // values of the key's leaf
	there []uint32 // the rows that have them; nil: all rows
	seen  int      // rows of the key's leaf
}

// add adds entries of a leaf of the table to the block.
func (f *rowFill) add(leaf int, p *parquet.Page, dict *parquet.Dictionary) error {
	l := &f.table.leaves[leaf]
	if err := f.charge(l.Dotted, p.PlainSize(dict, l.Width())+int64(len(p.Rep)+len(p.Def)+4)); err != nil {
		return err
	}
	return f.placed(f.group, f.builder.Add(leaf, p, dict))
}

// charge adds to the bytes of the block before they are copied.
func (f *rowFill) charge(column string, n int64) error {
	f.bytes += n
	switch {
	case len(f.rows) > 1 && f.bytes > 2*f.limit():
		return errLarge
	case len(f.rows) > 1:
		return nil
	}
	at := fault.At{File: f.file.Name, RowGroup: f.group + 1, Column: column}
	room := f.file.parquet().File().Room()
	if f.bytes > mostRow {
		return fault.Unsupported(at, "a row of %d bytes", f.bytes)
	} else if f.bytes > room.Most(mostRow) {
		return room.TooLarge(at, "a row", f.bytes)
	}
	return nil
}

// byPages fills the block from the pages of the leaves.
func (f *rowFill) byPages(ctx context.Context) error {
	file := f.file.parquet().File()
	shapes := map[int]parquet.Shape{}
	for i, leaf := range f.source.leaves {
		isKey := f.leaf != nil && f.leaf.values.Index() == leaf
		shape, err := f.pages(ctx, leaf, func(p *parquet.Page, dict *parquet.Dictionary) error {
			if isKey && !f.keyed {
				if err := f.addKeys(p, dict); err != nil {
					return err
				}
			}
			return f.add(i, f.shifted(p, f.source.shift[i]), dict)
		})
		if err != nil {
			return err
		}
		f.keyed = f.keyed || isKey
		shapes[leaf] = shape
	}
	return file.CheckShapes(f.group, shapes)
}

// pages calls fn with the pages of a leaf of the file that hold the rows.
func (f *rowFill) pages(ctx context.Context, leaf int, fn func(p *parquet.Page, dict *parquet.Dictionary) error) (parquet.Shape, error) {
	defer f.buf.Rest()
	c := f.file.parquet().File().ChunkIn(f.buf, f.group, leaf)
	if int64(len(f.rows)) != f.file.GroupRows(f.group) {
		c.Select(f.rows)
	}
	for {
		p, err := c.Next(ctx)
		if errors.Is(err, io.EOF) {
			return c.Shape(), nil
		}
		if err == nil {
			err = fn(p, c.Dictionary())
		}
		if err != nil {
			return nil, err
		}
	}
}

// shifted returns the page with its definition levels raised by n.
func (f *rowFill) shifted(p *parquet.Page, n uint8) *parquet.Page {
	if n == 0 {
		return p
	}
	q := *p
	q.Stored, q.Def = nil, make([]uint8, p.Values)
	copy(q.Def, p.Def)
	for i := range q.Def {
		q.Def[i] += n
	}
	return &q
}

// byRecords fills the block from records, for a file that stores the columns otherwise
// than the table.
func (f *rowFill) byRecords(ctx context.Context) error {
	p := f.way.table(f.file).(*arrowparquet.Parquet)
	for rec, err := range p.ReadRows(parquet.WithTurn(ctx, nil), f.group, f.source.columns, f.rows) {
		if err != nil {
			return err
		}
		if err := f.shredded(rec, f.add); err != nil {
			return f.placed(f.group, err)
		}
	}
	return nil
}

// addKeys adds the values of a page of the key's leaf.
func (f *rowFill) addKeys(p *parquet.Page, dict *parquet.Dictionary) error {
	if err := f.charge(f.columns[0].String(), p.PlainSize(dict, f.leaf.width())); err != nil {
		return err
	}
	if p.Coded {
		f.plain, _ = dict.AppendValues(f.plain, p.Indices[:p.NonNull], f.leaf.width(), math.MaxInt)
	} else {
		f.plain = append(f.plain, p.Plain...)
	}
	if p.NonNull < p.Values && f.there == nil {
		f.there = upTo32(f.seen)
	}
	if f.there != nil {
		full := uint8(f.file.parquet().File().Leaves[f.leaf.values.Index()].MaxDef)
		for i := range p.Values {
			if p.Def == nil || p.Def[i] == full {
				f.there = append(f.there, uint32(f.seen+i))
			}
		}
	}
	f.seen += p.Values
	return nil
}

// upTo32 returns the numbers below n, in a slice that is not nil.
func upTo32(n int) []uint32 {
	s := make([]uint32, n)
	for i := range s {
		s[i] = uint32(i)
	}
	return s
}

// leafKeys makes the batch of keys that are one leaf, which byPages may have read.
func (f *rowFill) leafKeys(ctx context.Context) error {
	if !f.keyed {
		if _, err := f.pages(ctx, f.leaf.values.Index(), f.addKeys); err != nil {
			return err
		}
	}
	b := f.batchOf(f.group)
	n := f.seen
	if f.there != nil {
		n = len(f.there)
	}
	k := b.Keys
	if f.leaf.int > 0 {
		k.SetInts(f.plain, n, f.leaf.int, f.leaf.signed)
	} else {
		k.SetBytes(f.plain, n, f.options.Rule)
	}
	k.Len = n
	if err := fit(k, f.file.Name, f.columns, true); err != nil {
		return err
	}
	if f.there != nil {
		for i, value := range k.Rows {
			k.Rows[i] = f.there[value]
		}
	}
	k.Len = f.seen
	f.batches = append(f.batches, b)
	return nil
}

// recordKeys makes batches of keys of any shape, from records.
func (f *rowFill) recordKeys(ctx context.Context) error {
	first := 0
	for rec, err := range f.way.table(f.file).(*arrowparquet.Parquet).ReadKeys(parquet.WithTurn(ctx, nil), f.group, f.enc.Columns(), f.rows) {
		if err != nil {
			return err
		}
		b := f.batchOf(f.group)
		b.first = first
		if err := f.encode(rec, b.Keys); err != nil {
			return err
		}
		rec.Retain()
		b.record = rec
		f.batches = append(f.batches, b)
		first += int(rec.NumRows())
	}
	if first != len(f.rows) {
		return fmt.Errorf("%s: keys of %d rows, want %d", fault.At{File: f.file.Name, RowGroup: f.group + 1}, first, len(f.rows))
	}
	return nil
}
