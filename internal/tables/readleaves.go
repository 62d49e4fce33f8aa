package tables

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/leaves"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/tasks"
)

// Limits of what is held while rows of a Parquet file are read.
const (
	blockShare = 32       // a block may take at most 1/blockShare of the memory budget
	keptBytes  = 64 << 20 // pages that wait for the next block
)

// fromLeaves emits the rows of a range of a Parquet file in blocks of bounded size.
func (w *rowWorker) fromLeaves(ctx context.Context, r tasks.Range, emit func(*Batch) error) error {
	rows, err := w.rowsIn(ctx, r)
	if err != nil || len(rows) == 0 {
		return err
	}
	f := w.newFill(ctx, r.Group, rows)
	defer f.close()
	for len(f.rows) > 0 {
		n, err := f.pages.Next(func(n int) error { return f.block(ctx, n) })
		if err != nil {
			return err
		}
		f.rows = f.rows[n:]
		if err := f.emit(emit); err != nil {
			return err
		}
	}
	return nil
}

// rowsIn returns the rows of a range that are to be read, ascending. They are valid
// until the next call.
func (w *rowWorker) rowsIn(ctx context.Context, r tasks.Range) (_ []uint32, err error) {
	w.rows = w.rows[:0]
	if w.keys != nil {
		w.rows, err = w.keys.Scan(ctx, r, w.rows)
		return w.rows, err
	}
	if w.where != nil {
		rows, all, err := w.where.Rows(ctx, r, nil)
		if err != nil || !all {
			return rows, err
		}
	}
	for row := r.Lo; row < r.Hi; row++ {
		w.rows = append(w.rows, uint32(row))
	}
	return w.rows, nil
}

// rowFill reads the rows of a range, block by block.
type rowFill struct {
	*rowWorker
	group int
	rows  []uint32           // still to be read
	pages *parquet.RowReader // of the leaves of the table, then of the key's, if the table lacks it

	// The block that is being read.
	n       int // rows
	batches []*Batch
	plain   []byte   // values of the key's leaf
	there   []uint32 // the rows that have them; nil: all rows
	seen    int      // rows of the key's leaf
}

// newFill prepares to read rows of a row group. It reads pages of the leaves of the
// table, unless the file stores them otherwise.
func (w *rowWorker) newFill(ctx context.Context, group int, rows []uint32) *rowFill {
	file, of := w.file.Parquet().File(), w.source.Leaves
	if w.leaf != nil && !slices.Contains(of, w.leaf.Values.Index()) {
		of = append(slices.Clone(of), w.leaf.Values.Index())
	}
	pages := file.NewRowReader(ctx, group, of, rows)
	pages.Rows, pages.Keep = math.MaxInt, keptBytes
	pages.Again = file.Room().Part(blockShare, tasks.MostBatch)
	if pages.Bytes = pages.Again; w.way.Batch > 0 {
		pages.Bytes = min(pages.Bytes, w.way.Batch)
	}
	pages.PerRow = file.RowBytes(group, w.file.Parquet().Below(w.source.columns))
	return &rowFill{rowWorker: w, group: group, rows: rows, pages: pages}
}

// close frees all memory.
func (f *rowFill) close() {
	f.drop()
	f.pages.Close()
}

// drop releases the batches that were not emitted.
func (f *rowFill) drop() {
	for _, b := range f.batches {
		b.Release()
	}
	f.batches = nil
}

// emit emits the batches of the block.
func (f *rowFill) emit(emit func(*Batch) error) error {
	for len(f.batches) > 0 {
		b := f.batches[0]
		f.batches = f.batches[1:]
		if f.scan == nil {
			f.count(int64(b.Keys.Len), int64(b.Keys.Nulls()))
		}
		if err := emit(b); err != nil {
			return err
		}
	}
	return nil
}

// block reads the next n rows into one block, which has one batch or several. After an
// error it can be called again.
func (f *rowFill) block(ctx context.Context, n int) error {
	f.n = n
	f.plain, f.there, f.seen = nil, nil, 0
	err := f.pages.Pages(ctx, f.add)
	if err == nil && f.source.Leaves == nil {
		err = f.byRecords(ctx)
	}
	if err == nil && f.leaf != nil {
		err = f.leafKeys()
	} else if err == nil {
		err = f.recordKeys(ctx)
	}
	if err != nil {
		f.drop()
		f.builder = leaves.NewBuilder(f.table.Leaves)
		return source.InGroup(err, f.file, f.group)
	}
	block, err := f.builder.Block(n)
	if err != nil {
		return f.placed(f.group, err)
	}
	for _, b := range f.batches {
		b.Block = block
	}
	return nil
}

// add adds entries of a leaf that is read from pages to the block and to the keys.
func (f *rowFill) add(i int, p *parquet.Page, dict *parquet.Dictionary) error {
	if f.leaf != nil && (i >= len(f.source.Leaves) || f.source.Leaves[i] == f.leaf.Values.Index()) {
		if err := f.addKeys(p, dict); err != nil || i >= len(f.source.Leaves) {
			return err
		}
	}
	return f.addLeaf(i, shifted(p, f.source.shift[i]), dict)
}

// addLeaf adds entries of a leaf of the table to the block.
func (f *rowFill) addLeaf(leaf int, p *parquet.Page, dict *parquet.Dictionary) error {
	if err := f.pages.Charge(&f.table.Leaves[leaf], p, dict); err != nil {
		return err
	}
	return f.placed(f.group, f.builder.Add(leaf, p, dict))
}

// shifted returns the page with its definition levels raised by n.
func shifted(p *parquet.Page, n uint8) *parquet.Page {
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
	p := f.way.Table(f.file).(*arrowparquet.Parquet)
	for rec, err := range p.ReadRows(parquet.WithTurn(ctx, nil), f.group, f.source.columns, f.rows[:f.n]) {
		if err != nil {
			return err
		}
		if err := f.shredded(rec, f.addLeaf); err != nil {
			return f.placed(f.group, err)
		}
	}
	return nil
}

// addKeys adds the values of a page of the key's leaf.
func (f *rowFill) addKeys(p *parquet.Page, dict *parquet.Dictionary) error {
	leaf := &f.file.Parquet().File().Leaves[f.leaf.Values.Index()]
	if err := f.pages.Charge(leaf, p, dict); err != nil {
		return err
	}
	if f.plain == nil {
		f.plain = make([]byte, 0, f.n*f.leaf.Width())
	}
	if p.Coded {
		f.plain, _ = dict.AppendValues(f.plain, p.Indices[:p.NonNull], f.leaf.Width(), math.MaxInt)
	} else {
		f.plain = append(f.plain, p.Plain...)
	}
	if p.NonNull < p.Values && f.there == nil {
		f.there = UpTo32(f.seen)
	}
	if f.there != nil {
		for i := range p.Values {
			if p.Def == nil || int(p.Def[i]) == leaf.MaxDef {
				f.there = append(f.there, uint32(f.seen+i))
			}
		}
	}
	f.seen += p.Values
	return nil
}

// UpTo32 returns the numbers below n, in a slice that is not nil.
func UpTo32(n int) []uint32 {
	s := make([]uint32, n)
	for i := range s {
		s[i] = uint32(i)
	}
	return s
}

// leafKeys makes the batch of keys that are one leaf, which was read from pages.
func (f *rowFill) leafKeys() error {
	b := f.batchOf(f.group)
	n := f.seen
	if f.there != nil {
		n = len(f.there)
	}
	k := b.Keys
	if f.leaf.Int > 0 {
		k.SetInts(f.plain, n, f.leaf.Int, f.leaf.Signed)
	} else {
		k.SetBytes(f.plain, n, f.options.Rule)
	}
	if err := keyscan.Fit(k, f.file.Name(), f.columns, true); err != nil {
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
	for rec, err := range f.way.Table(f.file).(*arrowparquet.Parquet).ReadKeys(parquet.WithTurn(ctx, nil), f.group, f.enc.Columns(), f.rows[:f.n]) {
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
	if first != f.n {
		return fmt.Errorf("%s: keys of %d rows, want %d", fault.At{File: f.file.Name(), RowGroup: f.group + 1}, first, f.n)
	}
	return nil
}
