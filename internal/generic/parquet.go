package generic

import (
	"context"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/bloomjoin/bloomjoin/internal/fault"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/parquet-go/parquet-go/format"
)

const (
	batchRows  = 64 << 10 // of a record, at most
	batchBytes = 32 << 20 // of a record, about
	maxRowSize = 1 << 30  // bytes of one row
)

// Parquet reads a Parquet file as Arrow records. It is safe for concurrent
// use as far as the reader beneath is: several Reads may run at once.
type Parquet struct {
	f       *parquet.File
	columns []*column
	schema  *arrow.Schema
	mem     memory.Allocator
	batch   int64      // bytes of a record, about
	buffers *sync.Pool // of *parquet.Buffers
}

// OpenParquet opens the Parquet file of size bytes behind r. name is used in
// errors. mem may be nil. r is kept; closing it is the caller's.
func OpenParquet(r io.ReaderAt, size int64, name string, mem memory.Allocator) (p *Parquet, err error) {
	defer fault.Recovered(fault.At{File: name}, &err)
	f, err := parquet.Open(r, size, name)
	if err != nil {
		return nil, err
	}
	if mem == nil {
		mem = memory.NewGoAllocator()
	}
	p = &Parquet{f: f, mem: mem, batch: batchBytes, buffers: &sync.Pool{New: func() any { return new(parquet.Buffers) }}}
	p.columns, p.schema, err = plan(f)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Schema is the Arrow schema of the file's columns. It follows the Parquet
// schema; the Arrow schema that some writers store beside it contributes the
// time zones of instants, large offsets, durations, 256-bit decimals and
// metadata. Dictionary-encoded and fixed-size lists come back as their plain
// forms. Field ids stand in the fields' metadata under "PARQUET:field_id", the
// file's key-value metadata in the schema's.
func (p *Parquet) Schema() *arrow.Schema { return p.schema }

// NumGroups is the number of row groups.
func (p *Parquet) NumGroups() int { return len(p.f.RowGroups) }

// GroupRows is the number of rows of row group i, from 0.
func (p *Parquet) GroupRows(i int) int64 { return p.f.RowGroups[i].Rows }

// GroupBytes is the compressed size of row group i's column chunks.
func (p *Parquet) GroupBytes(i int) int64 { return p.f.RowGroups[i].CompressedBytes }

// StoredSchema returns the Arrow schema that the file's writer has stored
// beside the Parquet one, as [WriterOptions] takes it, or "".
func (p *Parquet) StoredSchema() string { return storedArrow(p.f) }

// Fingerprint identifies the file by its size and footer.
func (p *Parquet) Fingerprint() []byte { return p.f.Fingerprint() }

// File is the file beneath.
func (p *Parquet) File() *parquet.File { return p.f }

// Codec is the compression codec that most of the file's bytes have:
// "none", "snappy", "gzip", "brotli", "zstd", "lz4" or "lzo".
func (p *Parquet) Codec() string {
	var bytes [format.Lz4Raw + 1]int64
	for g := range p.f.RowGroups {
		for c := range p.f.Leaves {
			bytes[p.f.Codec(g, c)] += p.f.Metadata.RowGroups[g].Columns[c].MetaData.TotalCompressedSize
		}
	}
	best := format.Uncompressed
	for c, n := range bytes {
		if n > bytes[best] {
			best = format.CompressionCodec(c)
		}
	}
	switch best {
	case format.Uncompressed:
		return "none"
	case format.Lz4Raw:
		return "lz4"
	}
	return strings.ToLower(best.String())
}

// InBatches returns a reader of the same file whose records have about so many
// bytes at the most.
func (p *Parquet) InBatches(bytes int64) *Parquet {
	q := *p
	q.batch = min(max(bytes, 1), batchBytes)
	return &q
}

// Below returns the leaves of top-level columns; nil: of all.
func (p *Parquet) Below(columns []int) (leaves []int) {
	if columns == nil {
		for i := range p.f.Leaves {
			leaves = append(leaves, i)
		}
		return leaves
	}
	for _, c := range columns {
		if c >= 0 && c < len(p.columns) {
			for i := range p.columns[c].leaves {
				leaves = append(leaves, p.columns[c].leaf+i)
			}
		}
	}
	return leaves
}

// Close ends the use of the file. It releases nothing that records hold.
func (p *Parquet) Close() error { return nil }

// Read yields the rows of a row group, from 0, in records of at most 64 Ki
// rows and about 32 MiB. columns are indexes of Schema's fields in the wanted
// order; nil means all; an empty, non-nil slice means rows only: records
// without columns whose NumRows counts.
//
// Every wanted column of the group is validated, page by page, before the
// first record is yielded. A record is released when the yield returns: what
// the consumer keeps, it retains. The records' rows add up to GroupRows, or
// the last yield is an error. An error is the last yield. The context is
// checked per page and per record.
func (p *Parquet) Read(ctx context.Context, group int, columns []int) iter.Seq2[arrow.Record, error] {
	return func(yield func(arrow.Record, error) bool) {
		if err := p.read(ctx, group, columns, nil, yield); err != nil {
			yield(nil, err)
		}
	}
}

// ReadRows is Read of some rows of a group, ascending and without repetition,
// alone. Pages without any of them are neither validated nor decoded, and, where
// the rows are surely few bytes, an error may come after the first record.
func (p *Parquet) ReadRows(ctx context.Context, group int, columns []int, rows []uint32) iter.Seq2[arrow.Record, error] {
	return func(yield func(arrow.Record, error) bool) {
		if int64(len(rows)) == p.GroupRows(group) {
			rows = nil
		} else if len(rows) == 0 {
			return
		}
		if err := p.read(ctx, group, columns, rows, yield); err != nil {
			yield(nil, err)
		}
	}
}

// read does the work of Read, or if rows is not nil, of ReadRows. Once yield
// has returned false it returns nil.
func (p *Parquet) read(ctx context.Context, group int, columns []int, rows []uint32, yield func(arrow.Record, error) bool) error {
	if group < 0 || group >= len(p.f.RowGroups) {
		return fmt.Errorf("%s: no row group %d of %d", p.f.Name, group+1, len(p.f.RowGroups))
	}
	if columns == nil {
		columns = make([]int, len(p.columns))
		for i := range columns {
			columns[i] = i
		}
	}
	g, err := p.openGroup(group, columns, rows)
	if err != nil {
		return err
	}
	defer g.close()
	if len(g.leaves) == 0 {
		return g.count(ctx, yield)
	}
	cuts, err := g.cut(ctx)
	if err != nil {
		return err
	}
	for _, rows := range cuts {
		if err := ctx.Err(); err != nil {
			return err
		}
		rec, err := g.next(ctx, rows)
		if err != nil {
			return err
		}
		more := yield(rec, nil)
		rec.Release()
		if !more {
			return nil
		}
	}
	return g.end(ctx)
}

// groupReader reads the wanted columns of one row group.
type groupReader struct {
	p       *Parquet
	group   int
	columns []*column
	schema  *arrow.Schema
	leaves  []*leafReader
	asm     assembler
	picked  []uint32 // rows to read; nil: all
	rows    int64    // how many that are
}

func (p *Parquet) openGroup(group int, columns []int, picked []uint32) (*groupReader, error) {
	g := &groupReader{p: p, group: group, picked: picked, rows: p.f.RowGroups[group].Rows, asm: assembler{mem: p.mem, leaves: map[int]*leafReader{}}}
	if picked != nil {
		g.rows = int64(len(picked))
	}
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		if c < 0 || c >= len(p.columns) {
			return nil, fmt.Errorf("%s: no column %d of %d", p.f.Name, c, len(p.columns))
		}
		col := p.columns[c]
		g.columns, fields[i] = append(g.columns, col), col.field
		g.addLeaves(col)
	}
	meta := p.schema.Metadata()
	g.schema = arrow.NewSchema(fields, &meta)
	return g, nil
}

func (g *groupReader) addLeaves(c *column) {
	for _, cc := range c.children {
		g.addLeaves(cc)
	}
	if c.sink != nil && g.asm.leaves[c.leaf] == nil {
		r := newLeafReader(g.p, g.group, c)
		if g.picked != nil {
			r.chunk.Select(g.picked)
		}
		g.asm.leaves[c.leaf] = r
		g.leaves = append(g.leaves, r)
	}
}

func (g *groupReader) close() {
	for _, r := range g.leaves {
		r.close()
	}
}

// count yields records without columns.
func (g *groupReader) count(ctx context.Context, yield func(arrow.Record, error) bool) error {
	for left := g.rows; left > 0; left -= batchRows {
		if err := ctx.Err(); err != nil {
			return err
		}
		rec := array.NewRecord(g.schema, nil, min(left, batchRows))
		more := yield(rec, nil)
		rec.Release()
		if !more {
			return nil
		}
	}
	return nil
}

// fewBatches is how many batches' bytes picked rows may take at the very most,
// were they the longest of the row group, without their being measured before
// they are read.
const fewBatches = 6

// few reports whether the picked rows take few bytes: surely no more than those
// of fewBatches, by what the chunks take as a whole and by the longest entries of
// their dictionaries, and, if they are as long as others, no more than a record
// may have. To measure them would be to decompress everything twice. A footer
// that says too little is found out while reading; see leafReader.most.
func (g *groupReader) few() (bool, error) {
	if g.picked == nil {
		return false, nil
	}
	most, share := int64(0), 0.0
	part := float64(g.rows) / float64(max(g.p.f.RowGroups[g.group].Rows, 1))
	for _, r := range g.leaves {
		n, ok, err := r.bound(g.rows)
		if err != nil || !ok {
			return false, err
		}
		most += n
		share += part * float64(r.chunk.FooterBytes())
		if most > fewBatches*g.p.batch || share > float64(g.p.batch) {
			return false, nil
		}
	}
	for _, r := range g.leaves {
		r.most = maxRowSize
	}
	return true, nil
}

// cut validates the wanted columns and decides on the number of rows of each
// record.
func (g *groupReader) cut(ctx context.Context) (cuts []int, err error) {
	defer fault.Recovered(fault.At{File: g.p.f.Name, RowGroup: g.group + 1}, &err)
	rows := g.rows
	if few, err := g.few(); err != nil {
		return nil, err
	} else if few {
		for ; rows > batchRows; rows -= batchRows {
			cuts = append(cuts, batchRows)
		}
		return append(cuts, int(rows)), nil
	}
	var blocks []int64
	buf := g.p.takeBuffers()
	defer g.p.putBuffers(buf)
	for _, r := range g.leaves {
		fp, err := g.p.f.Measure(ctx, buf, g.group, r.leaf.Index, g.picked)
		if err != nil {
			return nil, err
		}
		if fp.MaxRow > maxRowSize {
			return nil, fault.Unsupported(r.at, "a row of %d bytes", fp.MaxRow)
		}
		if blocks == nil {
			blocks = fp.Blocks
			continue
		}
		for i, n := range fp.Blocks {
			blocks[i] += n
		}
	}
	have, bytes := 0, int64(0)
	flush := func() {
		if have > 0 {
			cuts = append(cuts, have)
		}
		have, bytes = 0, 0
	}
	for i, n := range blocks {
		block := int(min(parquet.BlockRows, rows-int64(i)*parquet.BlockRows))
		if have+block > batchRows || bytes+n > g.p.batch {
			flush()
		}
		if n > g.p.batch { // wide rows: cut the block itself
			step := max(1, int(int64(block)*g.p.batch/n))
			if n > maxRowSize {
				step = 1 // they may stand side by side
			}
			for ; block > step; block -= step {
				cuts = append(cuts, step)
			}
			cuts = append(cuts, block)
			continue
		}
		have, bytes = have+block, bytes+n
	}
	flush()
	return cuts, nil
}

func (p *Parquet) takeBuffers() *parquet.Buffers { return p.buffers.Get().(*parquet.Buffers) }

// putBuffers takes buffers back that no chunk uses any more.
func (p *Parquet) putBuffers(b *parquet.Buffers) {
	b.Close()
	p.buffers.Put(b)
}

// next makes the record of the next rows rows.
func (g *groupReader) next(ctx context.Context, rows int) (rec arrow.Record, err error) {
	defer fault.Recovered(fault.At{File: g.p.f.Name, RowGroup: g.group + 1}, &err)
	for _, r := range g.leaves {
		if err := r.read(ctx, g.p.mem, rows); err != nil {
			return nil, err
		}
	}
	arrays := make([]arrow.Array, 0, len(g.columns))
	defer func() {
		for _, a := range arrays {
			a.Release()
		}
	}()
	made := map[*column]arrow.Array{}
	for _, c := range g.columns {
		if a := made[c]; a != nil { // the column is wanted twice
			a.Retain()
			arrays = append(arrays, a)
			continue
		}
		d, err := g.asm.build(c)
		if err != nil {
			return nil, err
		}
		a := array.MakeFromData(d)
		d.Release()
		arrays = append(arrays, a)
		made[c] = a
		if a.Len() != rows {
			return nil, fault.Corrupt(g.asm.leaves[c.leaf].at, "%d rows where there must be %d", a.Len(), rows)
		}
	}
	return array.NewRecord(g.schema, arrays, int64(rows)), nil
}

// end checks that no column has rows left.
func (g *groupReader) end(ctx context.Context) error {
	for _, r := range g.leaves {
		if more, err := r.advance(ctx); err != nil {
			return err
		} else if more {
			return fault.Corrupt(r.at, "more rows than the row group")
		}
	}
	return nil
}
