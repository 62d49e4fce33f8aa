package arrowparquet

import (
	"context"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strings"

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
	batch   int64 // approximate bytes of a record
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
	// View, if not nil, returns the columns that the file is to have in place of those that it
	// stores. Files of one schema should get one view.
	View func(*parquet.File) (*parquet.View, error)
	// Rename, if not nil, returns the columns' names, given those that are stored.
	Rename func(names []string) ([]string, error)
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
	var like *parquet.File
	if opts.Like != nil {
		like = opts.Like.f
	}
	f, err := parquet.OpenLike(like, opts.Room, r, size, name, opts.Remote)
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

// OpenFooter returns a file without rows that has the given footer.
func OpenFooter(footer []byte, name string) (*Parquet, error) {
	f, err := parquet.OpenFooter(footer, name)
	if err != nil {
		return nil, err
	}
	return newParquet(f, ParquetOptions{Mem: memory.NewGoAllocator()})
}

// newParquet plans the conversion of f's columns to arrays.
func newParquet(f *parquet.File, opts ParquetOptions) (p *Parquet, err error) {
	p = &Parquet{f: f, mem: opts.Mem, batch: opts.Room.Part(batchShare, batchBytes)}
	like, base := opts.Like, (*parquet.File)(nil)
	if like != nil && f.Share(like.f) {
		base = like.f
	}
	if opts.View != nil {
		v, err := opts.View(f)
		if err == nil {
			err = f.Adopt(v, base)
		}
		if err != nil {
			return nil, err
		}
	}
	if opts.Rename != nil {
		if err := rename(f, base, opts.Rename); err != nil {
			return nil, err
		}
	}
	if err := f.AddConstants(absent(f, opts.Constants, opts.IgnoreCase), base); err != nil {
		return nil, err
	}
	if base != nil && f.Root == base.Root {
		p.columns, p.keys, p.schema, p.stored = like.columns, like.keys, like.schema, like.stored
		return p, nil
	}
	int96 := int96Micros
	if opts.Int96Nanos {
		int96 = int96Nanos
	}
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
func (p *Parquet) StoredSchema() string {
	for _, kv := range p.f.Metadata.KeyValueMetadata {
		if kv.Key == SchemaKey {
			if s := parseStored(kv.Value); s != nil && len(s.fields) == p.f.StoredColumns() {
				return kv.Value
			}
		}
	}
	return ""
}

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
// Pages are read and validated when their rows are due, so an error may follow some
// records, and nothing follows an error. Without one, the records' rows add up to
// GroupRows. A record is released when yield returns; retain it to keep it. ctx is
// checked per page and per record.
func (p *Parquet) Read(ctx context.Context, group int, columns []int) iter.Seq2[arrow.Record, error] {
	return p.readRows(ctx, p.columns, group, columns, nil)
}

// ReadKeys is ReadRows for key columns, whose types preserve every digit and year:
// INT96 timestamps are [keys.Int96]. rows may be nil for all rows.
func (p *Parquet) ReadKeys(ctx context.Context, group int, columns []int, rows []uint32) iter.Seq2[arrow.Record, error] {
	return p.readRows(ctx, p.keys, group, columns, rows)
}

// ReadRows is Read for only the given rows of a group, ascending and without
// duplicates. Pages without any of them are neither validated nor decoded.
func (p *Parquet) ReadRows(ctx context.Context, group int, columns []int, rows []uint32) iter.Seq2[arrow.Record, error] {
	if rows == nil {
		rows = []uint32{}
	}
	return p.readRows(ctx, p.columns, group, columns, rows)
}

// readRows implements Read, or ReadRows if rows is not nil, with the given plan of the
// columns.
func (p *Parquet) readRows(ctx context.Context, of []*column, group int, columns []int, rows []uint32) iter.Seq2[arrow.Record, error] {
	return func(yield func(arrow.Record, error) bool) {
		g, err := p.openGroup(ctx, of, group, columns, rows)
		if err != nil {
			yield(nil, err)
			return
		}
		defer g.close()
		for more := true; more && g.pages.Left() > 0; {
			rec, err := g.next(ctx)
			if err != nil {
				yield(nil, err)
				return
			}
			more = yield(rec, nil)
			rec.Release()
		}
	}
}

// groupReader reads the wanted columns of one row group.
type groupReader struct {
	p       *Parquet
	group   int
	columns []*column
	schema  *arrow.Schema
	pages   *parquet.RowReader
	leaves  []*leafBatch // in the order of pages
	asm     assembler
}

func (p *Parquet) openGroup(ctx context.Context, of []*column, group int, columns []int, picked []uint32) (*groupReader, error) {
	if group < 0 || group >= len(p.f.RowGroups) {
		return nil, fmt.Errorf("%s: no row group %d of %d", p.f.Name, group+1, len(p.f.RowGroups))
	}
	if columns == nil {
		for i := range of {
			columns = append(columns, i)
		}
	}
	g := &groupReader{p: p, group: group, asm: assembler{mem: p.mem, leaves: map[int]*leafBatch{}}}
	fields := make([]arrow.Field, len(columns))
	padding := int64(0)
	for i, c := range columns {
		if c < 0 || c >= len(of) {
			return nil, fmt.Errorf("%s: no column %d of %d", p.f.Name, c, len(of))
		}
		col := of[c]
		g.columns, fields[i] = append(g.columns, col), col.field
		padding += col.padding()
		g.addLeaves(col)
	}
	metadata := p.schema.Metadata()
	g.schema = arrow.NewSchema(fields, &metadata)
	leaves := make([]int, len(g.leaves))
	for i, b := range g.leaves {
		leaves[i] = b.col.leaf
	}
	g.pages = p.f.NewRowReader(ctx, group, leaves, picked)
	g.pages.Rows, g.pages.Padding, g.pages.Keep = batchRows, padding, math.MaxInt64
	g.pages.Bytes, g.pages.Again = p.batch, p.batch
	return g, nil
}

func (g *groupReader) addLeaves(c *column) {
	for _, cc := range c.children {
		g.addLeaves(cc)
	}
	if c.sink != nil && g.asm.leaves[c.leaf] == nil {
		leaf := &g.p.f.Leaves[c.leaf]
		b := &leafBatch{col: c, leaf: leaf, at: fault.At{File: g.p.f.Name, RowGroup: g.group + 1, Column: leaf.Dotted}}
		g.asm.leaves[c.leaf] = b
		g.leaves = append(g.leaves, b)
	}
}

func (g *groupReader) close() {
	for _, b := range g.leaves {
		b.drop()
	}
	g.pages.Close()
}

// next returns the next record.
func (g *groupReader) next(ctx context.Context) (rec arrow.Record, err error) {
	defer panics.Recover(fault.At{File: g.p.f.Name, RowGroup: g.group + 1}, &err)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	rows, err := g.pages.Next(func(n int) error { return g.fill(ctx, n) })
	if err != nil {
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

// fill reads the next rows of all leaves.
func (g *groupReader) fill(ctx context.Context, rows int) error {
	for _, b := range g.leaves {
		b.begin(g.p.mem, rows)
	}
	return g.pages.Pages(ctx, func(i int, p *parquet.Page, dict *parquet.Dictionary) error {
		b := g.leaves[i]
		if err := g.pages.Charge(b.leaf, p, dict); err != nil {
			return err
		}
		if err := b.add(p, dict); err != nil {
			at := b.at
			at.Page = p.Number
			return misfit(at, err)
		}
		return nil
	})
}
