package arrowparquet

import (
	"context"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/panics"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

const (
	batchRows  = 64 << 10 // largest number of rows in a record
	batchBytes = 32 << 20 // approximate bytes of a record
	batchShare = 32       // a record may take at most 1/batchShare of the memory budget
	maxRowSize = 1 << 30  // bytes of a row
)

// Parquet reads a Parquet file as Arrow records. It is safe for concurrent use if
// the underlying reader is.
type Parquet struct {
	f       *parquet.File
	columns []*column
	keys    []*column // columns as keys need them; differs from columns for INT96 only
	schema  *arrow.Schema
	stored  *arrow.Schema // of keys
	mem     memory.Allocator
	batch   int64      // approximate bytes of a record
	buffers *sync.Pool // of *parquet.Buffers
}

// ParquetOptions control how a Parquet file is opened. The zero value is valid.
type ParquetOptions struct {
	Mem  memory.Allocator    // nil: Go's allocator
	Room *parquet.PageBudget // memory limit for the file; nil: unlimited
	// Like, if not nil, is a file opened with the same options. Its schema is
	// shared if it is equal.
	Like *Parquet
	// Int96Nanos converts INT96 timestamps to timestamp[ns], which covers the years
	// 1677 to 2262 with all digits, instead of timestamp[us], which covers all
	// years with six fractional digits. Values that do not fit are errors when they
	// are read.
	Int96Nanos bool
	// Constants are columns to add after those of the file, except those that it has.
	Constants []Constant
	// IgnoreCase compares the names of Constants with those of columns regardless of
	// the case of letters.
	IgnoreCase bool
	// Remote reads nothing but the end of the file. The file is over a network.
	Remote bool
}

// OpenParquet opens the Parquet file of size bytes in r. name is used in errors.
// The Parquet keeps r, which the caller closes.
func OpenParquet(r io.ReaderAt, size int64, name string, opts ParquetOptions) (p *Parquet, err error) {
	defer panics.Recover(fault.At{File: name}, &err)
	open := parquet.Open
	if opts.Remote {
		open = parquet.OpenEnd
	}
	f, err := open(opts.Room, r, size, name)
	if err != nil {
		return nil, err
	}
	defer func() {
		if p == nil {
			f.Close()
		}
	}()
	if opts.Mem == nil {
		opts.Mem = memory.NewGoAllocator()
	}
	return newParquet(f, opts)
}

// newParquet plans the conversion of f's columns to arrays.
func newParquet(f *parquet.File, opts ParquetOptions) (p *Parquet, err error) {
	p = &Parquet{f: f, mem: opts.Mem, batch: opts.Room.Part(batchShare, batchBytes)}
	like, base := opts.Like, (*parquet.File)(nil)
	if like != nil && f.Share(like.f) {
		base = like.f
	}
	if err := f.AddConstants(absent(f, opts.Constants, opts.IgnoreCase), base); err != nil {
		return nil, err
	}
	if base != nil && f.Root == base.Root {
		p.columns, p.keys, p.schema, p.stored, p.buffers = like.columns, like.keys, like.schema, like.stored, like.buffers
		return p, nil
	}
	int96 := int96Micros
	if opts.Int96Nanos {
		int96 = int96Nanos
	}
	p.buffers = &sync.Pool{New: func() any { return new(parquet.Buffers) }}
	if p.columns, p.schema, err = plan(f, int96); err != nil {
		return nil, err
	}
	p.keys, p.stored = p.columns, p.schema
	if slices.ContainsFunc(f.Leaves, func(l meta.Leaf) bool { return l.Type == format.Int96 }) {
		p.keys, p.stored, err = plan(f, int96Stored)
	}
	return p, err
}

// Schema returns the Arrow schema of the file's columns. It follows the Parquet
// schema. The Arrow schema that some writers store in addition contributes the time
// zones of instants, large offsets, durations, 256-bit decimals, fixed-size lists
// and metadata. Dictionary-encoded columns have the type of their values. Field ids
// are in the fields' metadata under "PARQUET:field_id", the file's key-value
// metadata in the schema's.
func (p *Parquet) Schema() *arrow.Schema { return p.schema }

// KeySchema is Schema for [Parquet.ReadKeys].
func (p *Parquet) KeySchema() *arrow.Schema { return p.stored }

// NumGroups returns the number of row groups.
func (p *Parquet) NumGroups() int { return len(p.f.RowGroups) }

// GroupRows returns the number of rows in row group i, counted from 0.
func (p *Parquet) GroupRows(i int) int64 { return p.f.RowGroups[i].Rows }

// GroupBytes returns the compressed size of row group i's column chunks.
func (p *Parquet) GroupBytes(i int) int64 { return p.f.RowGroups[i].CompressedBytes }

// StoredSchema returns the Arrow schema that the writer stored in the file, in the
// form of [WriterOptions].StoredSchema, or "" if there is none.
func (p *Parquet) StoredSchema() string { return storedArrow(p.f) }

// Fingerprint identifies the file by its size and footer.
func (p *Parquet) Fingerprint() []byte { return p.f.Fingerprint() }

// File returns the underlying file.
func (p *Parquet) File() *parquet.File { return p.f }

// Codec returns the compression codec that most of the file's bytes use: "none",
// "snappy", "gzip", "brotli", "zstd", "lz4" or "lzo".
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

// InBatches returns a reader of the same file whose records have at most about the
// given number of bytes.
func (p *Parquet) InBatches(bytes int64) *Parquet {
	q := *p
	q.batch = min(max(bytes, 1), p.batch)
	return &q
}

// Below returns the leaves of the given top-level columns; nil: of all.
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

// Close closes the file. Records that were read stay valid.
func (p *Parquet) Close() error {
	p.f.Close()
	return nil
}

// Read yields the rows of a row group, counted from 0, in records of at most 64 Ki
// rows and about 32 MiB. columns are indices of Schema's fields in the wanted
// order; nil means all. An empty, non-nil slice yields records without columns
// whose NumRows counts.
//
// All pages of the wanted columns are validated before the first record is yielded.
// A record is released when yield returns; retain it to keep it. The records' rows
// add up to GroupRows, unless the last yield is an error. Nothing follows an error.
// ctx is checked per page and per record.
func (p *Parquet) Read(ctx context.Context, group int, columns []int) iter.Seq2[arrow.Record, error] {
	return func(yield func(arrow.Record, error) bool) {
		if err := p.read(ctx, p.columns, group, columns, nil, yield); err != nil {
			yield(nil, err)
		}
	}
}

// ReadKeys is ReadRows for key columns, whose types preserve every digit and year:
// INT96 timestamps are [keys.Int96]. rows may be nil for all rows.
func (p *Parquet) ReadKeys(ctx context.Context, group int, columns []int, rows []uint32) iter.Seq2[arrow.Record, error] {
	return p.readRows(ctx, p.keys, group, columns, rows)
}

// ReadRows is Read for only the given rows of a group, ascending and without
// duplicates. Pages without any of them are neither validated nor decoded. If the
// rows are certainly small, an error may follow the first record.
func (p *Parquet) ReadRows(ctx context.Context, group int, columns []int, rows []uint32) iter.Seq2[arrow.Record, error] {
	if rows == nil {
		rows = []uint32{}
	}
	return p.readRows(ctx, p.columns, group, columns, rows)
}

func (p *Parquet) readRows(ctx context.Context, of []*column, group int, columns []int, rows []uint32) iter.Seq2[arrow.Record, error] {
	return func(yield func(arrow.Record, error) bool) {
		if int64(len(rows)) == p.GroupRows(group) {
			rows = nil
		} else if rows != nil && len(rows) == 0 {
			return
		}
		if err := p.read(ctx, of, group, columns, rows, yield); err != nil {
			yield(nil, err)
		}
	}
}

// read implements Read, or ReadRows if rows is not nil, with the given plan of the
// columns. Once yield has returned false, it returns nil.
func (p *Parquet) read(ctx context.Context, of []*column, group int, columns []int, rows []uint32, yield func(arrow.Record, error) bool) error {
	if group < 0 || group >= len(p.f.RowGroups) {
		return fmt.Errorf("%s: no row group %d of %d", p.f.Name, group+1, len(p.f.RowGroups))
	}
	if columns == nil {
		columns = make([]int, len(p.columns))
		for i := range columns {
			columns[i] = i
		}
	}
	g, err := p.openGroup(ctx, of, group, columns, rows)
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
	claim   *parquet.Claim // for the pages of all leaves
	group   int
	columns []*column
	schema  *arrow.Schema
	leaves  []*leafReader
	asm     assembler
	picked  []uint32 // rows to read; nil: all
	padding int64    // bytes of a row in addition to its pages' values
	rows    int64    // number of rows to read
	from    int      // first row of the next batch
	reading *leafReader
	shared  *parquet.Buffers // buffers of reopened leaves
	batch   []uint32         // rows of the next batch, if needed
}

func (p *Parquet) openGroup(ctx context.Context, of []*column, group int, columns []int, picked []uint32) (*groupReader, error) {
	g := &groupReader{p: p, claim: p.f.ClaimFor(ctx), group: group, picked: picked, rows: p.f.RowGroups[group].Rows, asm: assembler{mem: p.mem, leaves: map[int]*leafBatch{}}}
	if picked != nil {
		g.rows = int64(len(picked))
	}
	g.claim.Evict, g.shared = g.evict, p.takeBuffers(g.claim)
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		if c < 0 || c >= len(of) {
			return nil, fmt.Errorf("%s: no column %d of %d", p.f.Name, c, len(of))
		}
		col := of[c]
		g.columns, fields[i] = append(g.columns, col), col.field
		g.padding += col.padding()
		g.addLeaves(col)
	}
	metadata := p.schema.Metadata()
	g.schema = arrow.NewSchema(fields, &metadata)
	return g, nil
}

func (g *groupReader) addLeaves(c *column) {
	for _, cc := range c.children {
		g.addLeaves(cc)
	}
	if c.sink != nil && g.asm.leaves[c.leaf] == nil {
		r := newLeafReader(g.p, g.group, c, g.claim)
		if g.picked != nil {
			r.chunk.Select(g.picked)
		}
		r.chunk.Announce()
		g.asm.leaves[c.leaf] = &r.leafBatch
		g.leaves = append(g.leaves, r)
	}
}

func (g *groupReader) close() {
	for _, r := range g.leaves {
		r.close()
	}
	g.p.putBuffers(g.shared)
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

// fewBatches is the number of batches that picked rows may fill, if all are as long
// as the longest in the row group, for them not to be measured before they are
// read.
const fewBatches = 6

// few reports whether the picked rows are certainly small: at most fewBatches
// batches, judging by the total size of the chunks and the longest entries of their
// dictionaries, and at most one batch if they have the average length. Measuring
// them would decompress everything twice. Reading detects a footer that gives too
// small a size; see leafReader.most.
func (g *groupReader) few(ctx context.Context) (bool, error) {
	if g.picked == nil {
		return false, nil
	}
	most, share := g.rows*g.padding, float64(g.rows*g.padding)
	if most > batchBytes {
		return false, nil
	}
	part := float64(g.rows) / float64(max(g.p.f.RowGroups[g.group].Rows, 1))
	for _, r := range g.leaves {
		g.reading = r
		n, ok, err := r.bound(ctx, g.rows)
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
		r.most = g.p.f.Room().Most(maxRowSize)
	}
	return true, nil
}

// cut validates the wanted columns, each by itself and against each other, and
// returns the number of rows of each record.
func (g *groupReader) cut(ctx context.Context) (cuts []int, err error) {
	defer panics.Recover(fault.At{File: g.p.f.Name, RowGroup: g.group + 1}, &err)
	rows := g.rows
	if few, err := g.few(ctx); err != nil {
		return nil, err
	} else if few {
		for ; rows > batchRows; rows -= batchRows {
			cuts = append(cuts, batchRows)
		}
		return append(cuts, int(rows)), nil
	}
	var blocks []int64
	shapes := map[int]meta.Shape{}
	buf := g.p.takeBuffers(g.claim.Beside())
	defer g.p.putBuffers(buf)
	for _, r := range g.leaves {
		fp, err := g.p.f.Measure(ctx, buf, g.group, r.leaf.Index, g.picked)
		if err != nil {
			return nil, err
		}
		shapes[r.leaf.Index] = fp.Shape
		if fp.MaxRow > maxRowSize {
			return nil, faults.Unsupported(r.at, "a row of %d bytes", fp.MaxRow)
		}
		if room := g.p.f.Room(); fp.MaxRow > room.Most(maxRowSize) {
			return nil, room.TooLarge(r.at, "a row", fp.MaxRow)
		}
		if blocks == nil {
			blocks = fp.Blocks
			continue
		}
		for i, n := range fp.Blocks {
			blocks[i] += n
		}
	}
	if err := g.p.f.CheckShapes(g.group, shapes); err != nil {
		return nil, err
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
		n += int64(block) * g.padding
		if have+block > batchRows || bytes+n > g.p.batch {
			flush()
		}
		if n > g.p.batch { // wide rows: divide the block itself
			step := max(1, int(int64(block)*g.p.batch/n))
			if n > g.p.f.Room().Most(maxRowSize) {
				step = 1 // its large rows may be adjacent
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

// takeBuffers returns buffers whose pages are charged to the claim; nil: to their
// own.
func (p *Parquet) takeBuffers(claim *parquet.Claim) *parquet.Buffers {
	b := p.buffers.Get().(*parquet.Buffers)
	b.ChargeTo(claim)
	return b
}

// putBuffers takes back buffers that no chunk uses any more.
func (p *Parquet) putBuffers(b *parquet.Buffers) {
	b.Close()
	b.ChargeTo(nil)
	p.buffers.Put(b)
}

// next returns the record of the next rows rows.
func (g *groupReader) next(ctx context.Context, rows int) (rec arrow.Record, err error) {
	defer panics.Recover(fault.At{File: g.p.f.Name, RowGroup: g.group + 1}, &err)
	if err := g.fill(ctx, rows); err != nil {
		return nil, err
	}
	arrays := make([]arrow.Array, 0, len(g.columns))
	defer func() {
		for _, a := range arrays {
			a.Release()
		}
	}()
	made := map[*column]arrow.Array{}
	for _, c := range g.columns {
		if a := made[c]; a != nil { // the column is requested twice
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
			return nil, faults.Corrupt(g.asm.leaves[c.leaf].at, "%d rows where there must be %d", a.Len(), rows)
		}
	}
	return array.NewRecord(g.schema, arrays, int64(rows)), nil
}

// fill reads the next rows of all leaves. Leaves whose pages do not fit in the
// memory budget together are reopened for each batch.
func (g *groupReader) fill(ctx context.Context, rows int) error {
	g.batch = g.batch[:0]
	for _, r := range g.leaves {
		if r.again {
			r.reopen(g.p.f, g.shared, g.rowsOf(rows))
		}
		g.reading = r
		if err := r.read(ctx, g.p.mem, rows); err != nil {
			return err
		}
		if r.again || g.claim.Crowded() {
			r.rest()
		}
	}
	g.from += rows
	return nil
}

// rowsOf returns the rows of the next batch.
func (g *groupReader) rowsOf(rows int) []uint32 {
	if g.picked != nil {
		return g.picked[g.from : g.from+rows]
	}
	for len(g.batch) < rows {
		g.batch = append(g.batch, uint32(g.from+len(g.batch)))
	}
	return g.batch
}

// evict frees the pages of all leaves but the one that is being read.
func (g *groupReader) evict() {
	if !g.reading.again {
		g.shared.Rest()
	}
	for _, r := range g.leaves {
		if r != g.reading {
			r.rest()
		}
	}
}

// end checks that no column has rows left, except reopened ones, whose number of
// rows was selected.
func (g *groupReader) end(ctx context.Context) error {
	for _, r := range g.leaves {
		if r.again {
			continue
		}
		g.reading = r
		if more, err := r.advance(ctx); err != nil {
			return err
		} else if more {
			return faults.Corrupt(r.at, "more rows than the row group")
		}
	}
	return nil
}
