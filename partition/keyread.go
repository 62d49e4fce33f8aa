package partition

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/key"
)

// KeyWork is called with keys that were read, by one goroutine at a time. Of
// the batch only Len, the number of rows, and the keys are meant: Rows numbers
// the keys, not the rows. It is good until KeyWork returns.
type KeyWork func(p Piece, b *key.Batch) error

// MapKeys reads the keys of all rows of the pieces with several workers, in no
// certain order, and nothing but the keys. key names the columns as
// [key.ParseColumns] reads it, and the options say how they become keys;
// threads 0: GOMAXPROCS. A key that is one column of a Parquet file, or of
// integers or strings in text, goes from its pages or lines to the batch without
// a detour. The keys are IDs: a value that none may have under the rule is an
// error.
func MapKeys(ctx context.Context, pieces []Piece, column string, o key.Options, threads int, newWork func() (KeyWork, error)) error {
	columns, err := key.ParseColumns(column)
	if err != nil {
		return err
	}
	way := flightOf(InFlight(pieces), threads, func() int64 { return keyNeed(pieces, columns, o) })
	parsers := parsersOf(pieces, way.workers)
	for _, err := range mapGroups(ctx, pieces, way, func() (groupWork, error) {
		work, err := newWork()
		r := &keyReader{columns: columns, options: o, work: work, way: way, parsers: parsers, buf: new(parquet.Buffers)}
		return r.group, err
	}) {
		if err != nil {
			return err
		}
	}
	return nil
}

// SampleKeys calls work, from one goroutine, with the keys of up to n pages of
// Parquet files, the first of row groups that are spread evenly over all of
// them. Which these are depends on the files alone. Files of other formats, and
// keys of several columns, give no sample. Pages come one after the other, each
// as a Piece of its row group, and in steps.
func SampleKeys(ctx context.Context, files []*File, column string, o key.Options, n int, work KeyWork) error {
	columns, err := key.ParseColumns(column)
	if err != nil {
		return err
	}
	groups := 0
	for _, f := range files {
		if f.parquet() != nil {
			groups += f.NumGroups()
		}
	}
	n = min(n, groups)
	r := &keyReader{columns: columns, options: o, work: work, buf: new(parquet.Buffers)}
	defer r.buf.Close()
	at, taken := 0, 0 // groups passed, pages read
	for _, f := range files {
		if f.parquet() == nil {
			continue
		}
		for g := range f.NumGroups() {
			if taken < n && at == groups*taken/n {
				taken++
				if err := r.sample(ctx, Piece{File: f, Lo: g, Hi: g + 1}); err != nil {
					return err
				}
			}
			at++
		}
	}
	return nil
}

// sample reads the first page of a row group.
func (r *keyReader) sample(ctx context.Context, p Piece) (err error) {
	defer func() { err = errors.Join(p.File.unless(err), p.File.rest()) }()
	if err := r.open(p.File); err != nil || r.leaf == nil {
		return err
	}
	defer r.buf.Rest()
	c := p.File.parquet().File().ChunkIn(r.buf, p.Lo, r.leaf.values.Index())
	page, err := c.Next(ctx)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	return r.page(p, page, c.Dictionary())
}

// keyReader reads the keys of row groups for one worker.
type keyReader struct {
	columns []key.Column
	options key.Options
	work    KeyWork
	way     flight
	parsers int  // goroutines that parse a text file
	lenient bool // a value that none may have under the rule, or that does not fit its cast, is no key, and no error
	buf     *parquet.Buffers
	file    *File // that enc and leaf are about
	enc     *key.Encoder
	leaf    *keyLeaf // nil: by way of records
	batch   key.Batch
	plain   []byte
}

// open finds the key in a file, unless it is the one read last.
func (r *keyReader) open(file *File) (err error) {
	if r.file == file {
		return nil
	}
	if r.enc, err = key.NewEncoder(file.Schema(), r.columns, r.options); err != nil {
		return fmt.Errorf("%s: %w", file.Name, err)
	}
	r.leaf = nil
	if f := file.parquet(); f != nil {
		if leaf, ok := f.Leaf(r.enc.Index()); ok {
			r.leaf = newKeyLeaf(file, leaf, r.columns[0].Cast, r.options)
		}
	}
	r.file = file
	return nil
}

func (r *keyReader) group(ctx context.Context, p Piece, group int, _ func(arrow.Record) error) error {
	if err := r.open(p.File); err != nil {
		return err
	}
	if t, column, ok := r.plainText(p.File); ok {
		return r.text(ctx, p, t, column)
	}
	if r.leaf == nil {
		return r.records(ctx, p, group)
	}
	defer r.buf.Rest()
	c := p.File.parquet().File().ChunkIn(r.buf, group, r.leaf.values.Index())
	for {
		page, err := c.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := r.page(p, page, c.Dictionary()); err != nil {
			return inGroup(err, p.File, group)
		}
	}
}

// page passes on the keys of a page in steps: a page may be large, and a few
// bytes of indices may stand for any number of bytes.
func (r *keyReader) page(p Piece, page *parquet.Page, dict *parquet.Dictionary) error {
	if page.NonNull == 0 || r.leaf.bits() {
		return r.step(p, page)
	}
	indices, plain, width := page.Indices, page.Plain, r.leaf.width()
	nulls := page.Values - page.NonNull
	for left := page.NonNull; left > 0; {
		var n int
		var some []byte
		if page.Coded {
			r.plain, n = dict.AppendValues(r.plain[:0], indices[:left], width, stepBytes)
			indices, some = indices[n:], r.plain
		} else {
			some, n = firstValues(plain, left, width)
			plain = plain[len(some):]
		}
		if err := r.step(p, &parquet.Page{Number: page.Number, Values: n + nulls, NonNull: n, Plain: some}); err != nil {
			return err
		}
		left, nulls = left-n, 0
	}
	return nil
}

// stepBytes is about how many bytes of keys are passed on at once: so few that
// they stay in the second-level cache.
const stepBytes = 256 << 10

// firstValues returns the bytes of the first of n PLAIN values, of the given
// width or, if that is 0, byte arrays: of stepBytes, or of one value if that is
// larger.
func firstValues(plain []byte, n, width int) (some []byte, values int) {
	if width > 0 {
		n = min(n, max(stepBytes/width, 1))
		return plain[:n*width], n
	}
	end := 0
	for values < n && end < stepBytes {
		end += 4 + int(binary.LittleEndian.Uint32(plain[end:]))
		values++
	}
	return plain[:end], values
}

// step passes on the keys of a page that is not coded.
func (r *keyReader) step(p Piece, page *parquet.Page) error {
	return r.leaf.fill(&r.batch, page, func(b *key.Batch) error {
		b.Len = page.Values
		return r.pass(p, b)
	})
}

// pass hands on keys that came from pages or lines.
func (r *keyReader) pass(p Piece, b *key.Batch) error {
	if _, faulty := b.Faulty(); faulty && !r.lenient {
		if err := b.Fit(fault.At{File: p.File.Name}, r.columns); err != nil {
			return err
		}
		return b.IDs(fault.At{File: p.File.Name, Column: key.ColumnsString(r.columns)})
	}
	return r.work(p, b)
}

// inGroup adds the row group to an error about the keys of a record or page,
// which was made without it. Text and streams have no row groups.
func inGroup(err error, f *File, group int) error {
	var e *fault.Error
	if (errors.Is(err, key.ErrNoUUID) || errors.Is(err, key.ErrMisfit)) && f.GroupRows(group) >= 0 && errors.As(err, &e) {
		e.At.RowGroup = group + 1
	}
	return err
}

// stepRows is how many rows of a record are passed on at once: the record batch
// of an Arrow file may be all of it.
const stepRows = 1 << 16

// readKeys is Read of columns that only keys are made of.
func readKeys(ctx context.Context, from table, group int, columns []int) iter.Seq2[arrow.Record, error] {
	return readKeysOf(ctx, from, group, columns, nil)
}

// readKeysOf is readKeys of a Parquet file's given rows (nil: all), and of all
// rows of other files.
func readKeysOf(ctx context.Context, from table, group int, columns []int, rows []uint32) iter.Seq2[arrow.Record, error] {
	if p, ok := from.(*arrowparquet.Parquet); ok {
		return p.ReadKeys(ctx, group, columns, rows)
	}
	return from.Read(ctx, group, columns)
}

// Check reads a row group with its page indexes, or what other files have for
// one, and returns the first thing that is wrong with it.
func (f *File) Check(ctx context.Context, group int) error {
	for _, err := range readKeys(ctx, f.table, group, nil) { // INT96 in any unit are good
		if err != nil {
			return err
		}
	}
	if p := f.parquet(); p != nil {
		return checkIndexes(p.File(), group)
	}
	return nil
}

// checkIndexes reads the page indexes of a row group, which a scan asks and
// which reading all of its pages does not.
func checkIndexes(f *parquet.File, group int) error {
	for leaf := range f.Metadata.RowGroups[group].Columns {
		x, ok, err := f.OffsetIndex(group, leaf)
		if err == nil && ok {
			_, _, err = f.ColumnIndex(group, leaf, x)
		}
		if err != nil && !errors.Is(err, fault.ErrUnsupported) {
			return err
		}
	}
	return nil
}

// records reads the keys of a row group of any file.
func (r *keyReader) records(ctx context.Context, p Piece, group int) error {
	enc := (*key.Encoder)(nil) // of the records' schema
	for rec, err := range readKeys(ctx, r.way.table(p.File), group, r.enc.Columns()) {
		if err != nil {
			return err
		}
		if enc == nil {
			if enc, err = key.NewEncoder(rec.Schema(), r.columns, r.options); err != nil {
				return fmt.Errorf("%s: %w", p.File.Name, err)
			}
		}
		for from := int64(0); from == 0 || from < rec.NumRows(); from += stepRows {
			some := rec.NewSlice(from, min(from+stepRows, rec.NumRows()))
			err := enc.EncodeIDs(p.File.Name, some, &r.batch)
			if err == nil {
				err = r.work(p, &r.batch)
			}
			some.Release()
			if err != nil {
				return inGroup(err, p.File, group)
			}
		}
	}
	return nil
}

// keyLeaf turns the values of a leaf that is the whole key into keys.
type keyLeaf struct {
	file    *File
	values  arrowparquet.LeafValues
	schema  *arrow.Schema // of a record that has the leaf alone, as "key"
	column  key.Column    // of it
	options key.Options
	enc     *key.Encoder // nil where values are keys as they stand, or not yet needed
	int     int          // bytes of an integer that is a key as it stands; 0: not so
	signed  bool
	strings bool // byte arrays, whose bytes are the keys, under the rule
}

// keyName is the column that a keyLeaf's schema has.
const keyName = "key"

func newKeyLeaf(f *File, leaf arrowparquet.LeafValues, cast arrow.DataType, o key.Options) *keyLeaf {
	l := &keyLeaf{file: f, values: leaf, options: o, column: key.Column{Path: key.Path{keyName}, Cast: cast}}
	l.schema = arrow.NewSchema([]arrow.Field{{Name: keyName, Type: leaf.Type()}}, nil)
	if enc, err := key.NewEncoder(l.schema, []key.Column{l.column}, o); err != nil || !enc.AsStored() {
		return l // fill returns the error
	}
	if leaf.Plain() {
		switch leaf.Type().ID() {
		case arrow.INT32:
			l.int, l.signed = 4, true
		case arrow.UINT32:
			l.int = 4
		case arrow.INT64:
			l.int, l.signed = 8, true
		case arrow.UINT64:
			l.int = 8
		}
	}
	switch leaf.Type().ID() {
	case arrow.STRING, arrow.LARGE_STRING, arrow.BINARY, arrow.LARGE_BINARY:
		l.strings = f.parquet().File().Leaves[leaf.Index()].Type == format.ByteArray
	}
	return l
}

// width is that of a PLAIN value, 0 for byte arrays.
func (l *keyLeaf) width() int { return l.file.parquet().File().Leaves[l.values.Index()].Width() }

// bits reports whether PLAIN values are single bits.
func (l *keyLeaf) bits() bool {
	return l.file.parquet().File().Leaves[l.values.Index()].Type == format.Boolean
}

// fill calls f with the keys of a page that is not coded, in b, which are good
// until f returns.
func (l *keyLeaf) fill(b *key.Batch, p *parquet.Page, f func(*key.Batch) error) error {
	switch {
	case l.int > 0:
		b.SetInts(p.Plain, p.NonNull, l.int, l.signed)
		return f(b)
	case l.strings:
		b.SetBytes(p.Plain, p.NonNull, l.options.Rule)
		return f(b)
	}
	if l.enc == nil {
		enc, err := key.NewEncoder(l.schema, []key.Column{l.column}, l.options)
		if err != nil {
			return fmt.Errorf("%s: %w", l.file.Name, err)
		}
		l.enc = enc
	}
	values, err := l.values.Array(p, nil)
	if err != nil {
		return err
	}
	defer values.Release()
	rec := array.NewRecord(l.schema, []arrow.Array{values}, int64(values.Len()))
	defer rec.Release()
	if err := l.enc.Encode(rec, b); err != nil {
		return fmt.Errorf("%s: %w", l.file.Name, err)
	}
	return f(b)
}
