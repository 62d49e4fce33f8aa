package partition

import (
	"bytes"
	"context"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/fault"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
)

// WriteScan writes the rows of the pieces that pass. Parquet files that become
// Parquet files are copied page by page; others go by way of Arrow records.
// logs are all files of the log: they lend their schema to the output of a
// shard that has none of them.
func (o Output) WriteScan(ctx context.Context, s *Scanner, pieces []Piece, logs []*File) (Written, error) {
	o.fill()
	parts, err := s.parts(pieces)
	if err != nil {
		return Written{}, err
	}
	if len(parts) == 0 && !o.IsDir(ctx) {
		schema, err := s.Schema(logs[0])
		if err != nil {
			return Written{}, err
		}
		parts = append(parts, Part{Name: "empty", Schema: schema})
	}
	if o.Format == Parquet && o.Name != "-" {
		if err := o.planPages(ctx, s, parts); err != nil {
			return Written{}, err
		}
	}
	return o.Write(ctx, parts, s.output(ctx, parts))
}

// parts returns the stretches of the output, one for each piece.
func (s *Scanner) parts(pieces []Piece) ([]Part, error) {
	var parts []Part
	for _, p := range pieces {
		schema, err := s.Schema(p.File)
		if err != nil {
			return nil, err
		}
		parts = append(parts, Part{Piece: p, Schema: schema})
	}
	return parts, nil
}

// output yields the rows of the parts that pass: those with a pageSource as
// pages, others as records.
func (s *Scanner) output(ctx context.Context, parts []Part) iter.Seq2[Rows, error] {
	return func(yield func(Rows, error) bool) {
		for lo := 0; lo < len(parts); {
			hi := lo + 1
			for hi < len(parts) && (parts[hi].pages == nil) == (parts[lo].pages == nil) {
				hi++
			}
			rows := s.records(ctx, parts, lo, hi)
			if parts[lo].pages != nil {
				rows = s.pages(ctx, parts[lo:hi])
			}
			for r, err := range rows {
				if !yield(r, err) || err != nil {
					return
				}
			}
			lo = hi
		}
		if s.opts.End != nil {
			if err := s.opts.End(); err != nil {
				yield(Rows{}, err)
			}
		}
	}
}

func (s *Scanner) records(ctx context.Context, parts []Part, lo, hi int) iter.Seq2[Rows, error] {
	return func(yield func(Rows, error) bool) {
		var pieces []Piece
		for _, p := range parts[lo:hi] {
			if p.Piece.File != nil {
				pieces = append(pieces, p.Piece)
			}
		}
		for r, err := range s.Scan(ctx, pieces) {
			r.Piece += lo
			if !yield(r, err) {
				return
			}
		}
	}
}

func (s *Scanner) pages(ctx context.Context, parts []Part) iter.Seq2[Rows, error] {
	return func(yield func(Rows, error) bool) {
		var sources []*pageSource
		for _, p := range parts {
			s.Stats.RowGroups.Add(int64(p.Piece.Hi - p.Piece.Lo))
			sources = append(sources, p.pages)
		}
		for g, err := range s.copyPages(ctx, sources) {
			if err != nil {
				yield(Rows{}, err)
				return
			}
			if !yield(Rows{Piece: g.part, group: g}, nil) {
				return
			}
		}
	}
}

// planPages gives the parts whose rows can be copied as pages a pageSource. A
// single file is copied so only if all of its parts are.
func (o Output) planPages(ctx context.Context, s *Scanner, parts []Part) error {
	dir := o.IsDir(ctx)
	var first *pageSource
	for i := range parts {
		p := &parts[i]
		if p.Piece.File == nil || p.Piece.File.parquet() == nil {
			if dir {
				continue
			}
			for j := range parts {
				parts[j].pages = nil
			}
			return nil
		}
		src, err := o.newPageSource(s, p.Piece, i)
		if err != nil {
			return err
		}
		if !dir {
			if first == nil {
				first = src
			} else if diff, same := parquet.SameSchema(src.schema, first.schema); !same {
				return fault.Mismatch(fault.At{File: p.name()}, "schema", "that of "+parts[0].name(), diff).
					WithHint("write to a directory, -o OUT/, where each file keeps its own schema")
			}
			src.part, src.layout, src.rows = 0, first.layout, first.rows
		}
		p.pages = src
	}
	return nil
}

func (o Output) newPageSource(s *Scanner, piece Piece, part int) (*pageSource, error) {
	f := piece.File.parquet().File()
	columns, err := s.columns(piece.File)
	if err != nil {
		return nil, err
	}
	proj := f.Project(columns)
	src := &pageSource{part: part, piece: piece, leaves: proj.Leaves, schema: proj.Schema}
	src.measure()
	src.sink = new(relay)
	src.layout, err = parquet.NewWriter(src.sink, proj.Schema, proj.Orders, parquet.WriterOptions{
		Compression: compressions[o.codec(piece.File)],
		KeyValue:    o.keyValues(f, columns != nil),
	})
	return src, err
}

var compressions = map[string]parquet.Compression{
	"none": {Codec: format.Uncompressed}, "snappy": {Codec: format.Snappy}, "gzip": {Codec: format.Gzip},
	"brotli": {Codec: format.Brotli}, "zstd": {Codec: format.Zstd}, "lz4": {Codec: format.Lz4Raw},
}

// measure orders the leaves by size, and finds out how many rows make a row
// group of the output.
func (p *pageSource) measure() {
	f := p.file()
	sizes := make([]int64, len(p.leaves))
	var rows, plain int64
	for g := p.piece.Lo; g < p.piece.Hi; g++ {
		rows += f.RowGroups[g].Rows
		for i, l := range p.leaves {
			md := &f.Metadata.RowGroups[g].Columns[l].MetaData
			sizes[i] += md.TotalCompressedSize
			plain += min(md.TotalUncompressedSize, 1<<40)
		}
	}
	for i := range p.leaves {
		p.order = append(p.order, i)
	}
	slices.SortStableFunc(p.order, func(a, b int) int { return int(min(1, max(-1, sizes[b]-sizes[a]))) })
	p.rows = groupRows
	if rows > 0 {
		p.rows = min(groupRows, max(1024, groupBytes/max(plain/rows, 1)))
	}
}

// keyValues returns the metadata of an output that has the columns of f, or
// some of them.
func (o Output) keyValues(f *parquet.File, projected bool) []parquet.KeyValue {
	drop := []string{MetaResult, MetaFilter, MetaRun} // of an input that is itself an output
	if projected {
		drop = append(drop, describing...)
	}
	var kv []parquet.KeyValue
	for _, e := range f.Metadata.KeyValueMetadata {
		if !slices.Contains(drop, e.Key) {
			kv = append(kv, e)
		}
	}
	md := o.metadata()
	for _, k := range []string{MetaResult, MetaFilter, MetaRun} {
		if v, ok := md[k]; ok {
			kv = append(kv, parquet.KeyValue{Key: k, Value: v})
		}
	}
	return kv
}

// relay passes on what is written, once it is known where to.
type relay struct {
	w    io.Writer
	held bytes.Buffer
}

func (r *relay) Write(p []byte) (int, error) {
	if r.w == nil {
		return r.held.Write(p)
	}
	return r.w.Write(p)
}

func (r *relay) to(w io.Writer) error {
	r.w = w
	_, err := r.held.WriteTo(w)
	return err
}

// pageWriter writes row groups of pages.
type pageWriter struct{ layout *parquet.Writer }

func newPageWriter(dst io.Writer, src *pageSource) (writer, error) {
	return pageWriter{src.layout}, src.sink.to(dst)
}

func (w pageWriter) Write(r Rows) error {
	var chunks []*parquet.EncodedChunk
	for _, l := range r.group.lanes {
		chunks = append(chunks, l.chunk)
	}
	return w.layout.RowGroup(r.group.rows, chunks)
}

func (w pageWriter) Close() (rows, bytes int64, err error) { return w.layout.Close() }

// PathOf returns the way that the rows of a file go to the output, "engine" if
// pages are copied and "generic" if Arrow records are made, and why.
func (o Output) PathOf(f *File) (path, why string) {
	o.fill()
	switch {
	case f.parquet() == nil:
		return "generic", strings.ReplaceAll(string(f.Format), "-", " ") + " is no Parquet"
	case o.Name == "-" || o.Format != Parquet:
		return "generic", "the keys are read first, then Arrow records of the rows that pass"
	}
	return "engine", "pages are copied"
}
