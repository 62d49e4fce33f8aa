package tables

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/leaves"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/tasks"
)

// Limits of what is held while rows of a Parquet file are read.
const (
	blockShare = 32       // a block may take at most 1/blockShare of the memory budget
	keptBytes  = 64 << 20 // pages that wait for the next block
	maxRow     = 1 << 30  // bytes of a row
)

// fromLeaves emits the rows of a range of a Parquet file in blocks of bounded size.
func (w *rowWorker) fromLeaves(ctx context.Context, r tasks.Range, emit func(*Batch) error) error {
	rows, err := w.rowsIn(ctx, r)
	if err != nil || len(rows) == 0 {
		return err
	}
	f := w.newFill(ctx, r.Group, rows)
	defer f.close()
	perRow := w.guess(r.Group)
	for len(f.rows) > 0 {
		n := int(min(float64(f.limit())/perRow+1, float64(len(f.rows))))
		err := f.block(ctx, n)
		for errors.Is(err, errLarge) {
			n /= 2
			err = f.block(ctx, n)
		}
		if err != nil {
			return err
		}
		perRow = max(float64(f.bytes)/float64(n), 1)
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

// limit is the number of bytes that a block may have. If pages do not wait for the next
// block, each block reads them again, so there should be few.
func (f *rowFill) limit() int64 {
	most := f.file.Parquet().File().Room().Part(blockShare, tasks.MostBatch)
	if f.way.Batch > 0 && !f.again {
		most = min(most, f.way.Batch)
	}
	return most
}

// guess returns the bytes that a row of a row group takes according to the footer.
// Because of dictionaries it may be more.
func (w *rowWorker) guess(group int) float64 {
	rg := &w.file.Parquet().File().Metadata.RowGroups[group]
	bytes := 8 * float64(rg.NumRows)
	for _, l := range w.file.Parquet().Below(w.source.columns) {
		bytes += float64(min(max(rg.Columns[l].MetaData.TotalUncompressedSize, 0), 1<<40))
	}
	return bytes / float64(max(rg.NumRows, 1))
}

// errLarge means that the block would exceed its limit.
var errLarge = errors.New("the block exceeds its limit")

// rowFill reads the rows of a range, block by block.
type rowFill struct {
	*rowWorker
	group   int
	rows    []uint32 // still to be read
	cursors []*LeafCursor
	claim   *parquet.Claim // for the pages of all cursors
	reading *LeafCursor
	again   bool // pages are read again for each block

	// The block that is being read.
	n       int // rows
	bytes   int64
	batches []*Batch
	shapes  map[int]meta.Shape
	plain   []byte   // values of the key's leaf
	there   []uint32 // the rows that have them; nil: all rows
	seen    int      // rows of the key's leaf
}

// newFill prepares to read rows of a row group. It has a cursor for each leaf of the
// table, unless the file stores them otherwise, and one for the key's leaf if the table
// lacks it.
func (w *rowWorker) newFill(ctx context.Context, group int, rows []uint32) *rowFill {
	file := w.file.Parquet().File()
	f := &rowFill{rowWorker: w, group: group, rows: rows, claim: file.ClaimFor(ctx)}
	f.claim.Evict = f.evict
	of := w.source.Leaves
	if w.leaf != nil && !slices.Contains(of, w.leaf.Values.Index()) {
		of = append(slices.Clone(of), w.leaf.Values.Index())
	}
	for _, leaf := range of {
		f.cursors = append(f.cursors, &LeafCursor{File: file, Group: group, Leaf: &file.Leaves[leaf]})
	}
	return f
}

// close frees all pages.
func (f *rowFill) close() {
	f.drop()
	f.reading = nil
	f.evict()
}

// evict drops the pages of all cursors but the one that is being read.
func (f *rowFill) evict() {
	for _, c := range f.cursors {
		if c != f.reading {
			c.Rest()
		}
	}
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

// block reads the next n rows into one block, which has one batch or several. The
// error is errLarge if there are several rows and the block would take more than twice
// the limit; then it can be called again with fewer.
func (f *rowFill) block(ctx context.Context, n int) error {
	f.n, f.bytes, f.shapes = n, 0, map[int]meta.Shape{}
	f.plain, f.there, f.seen = nil, nil, 0
	err := f.byPages(ctx)
	if err == nil && f.source.Leaves == nil {
		err = f.byRecords(ctx)
	}
	if err == nil && f.leaf != nil {
		err = f.leafKeys()
	} else if err == nil {
		err = f.recordKeys(ctx)
	}
	if err != nil {
		f.close()
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

// byPages reads the leaves of the table and of the key from pages. Pages that hold rows
// of the next block, too, stay open for it if there is room.
func (f *rowFill) byPages(ctx context.Context) error {
	file, rows, last := f.file.Parquet().File(), f.rows, f.n == len(f.rows)
	if int64(len(rows)) == f.file.GroupRows(f.group) {
		rows = nil
	}
	var buf *parquet.Buffers // one after another
	if last {
		buf = f.buf
	}
	open := int64(0)
	for i, c := range f.cursors {
		f.reading = c
		c.Open(f.claim, buf, rows)
		err := c.Take(ctx, f.n, last, func(p *parquet.Page, dict *parquet.Dictionary) error {
			f.shapes[c.Leaf.Index] = file.AddShape(f.shapes[c.Leaf.Index], c.Leaf.Index, p.Rep, p.Def)
			return f.add(i, c, p, dict)
		})
		if err != nil {
			return err
		}
		if size := c.buf.Size(); last || f.claim.Crowded() || open+size > keptBytes {
			c.Rest()
			f.again = f.again || !last
		} else {
			open += size
		}
	}
	return file.CheckShapes(f.group, f.shapes)
}

// add adds entries that cursor i has read to the block and to the keys.
func (f *rowFill) add(i int, c *LeafCursor, p *parquet.Page, dict *parquet.Dictionary) error {
	if f.leaf != nil && f.leaf.Values.Index() == c.Leaf.Index {
		if err := f.addKeys(p, dict); err != nil || i >= len(f.source.Leaves) {
			return err
		}
	}
	return f.addLeaf(i, shifted(p, f.source.shift[i]), dict)
}

// addLeaf adds entries of a leaf of the table to the block.
func (f *rowFill) addLeaf(leaf int, p *parquet.Page, dict *parquet.Dictionary) error {
	l := &f.table.Leaves[leaf]
	n := p.PlainSize(dict, l.Width()) + int64(4*p.Values)
	if l.Width() > 0 && l.MaxRep == 0 {
		n = int64(p.Values) * int64(l.Width()) // NULLs take as much
	}
	if err := f.charge(l.Dotted, n+int64(len(p.Rep)+len(p.Def))); err != nil {
		return err
	}
	return f.placed(f.group, f.builder.Add(leaf, p, dict))
}

// charge adds to the bytes of the block before they are copied.
func (f *rowFill) charge(column string, n int64) error {
	f.bytes += n
	switch {
	case f.n > 1 && f.bytes > 2*f.limit():
		return errLarge
	case f.n > 1:
		return nil
	}
	at := fault.At{File: f.file.Name(), RowGroup: f.group + 1, Column: column}
	room := f.file.Parquet().File().Room()
	if f.bytes > maxRow {
		return faults.Unsupported(at, "a row of %d bytes", f.bytes)
	} else if f.bytes > room.Most(maxRow) {
		return room.TooLarge(at, "a row", f.bytes)
	}
	return nil
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
	if err := f.charge(f.columns[0].String(), p.PlainSize(dict, f.leaf.Width())); err != nil {
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
		full := uint8(f.file.Parquet().File().Leaves[f.leaf.Values.Index()].MaxDef)
		for i := range p.Values {
			if p.Def == nil || p.Def[i] == full {
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

// leafKeys makes the batch of keys that are one leaf, which byPages has read.
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
