package partition

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"slices"

	"github.com/bloomjoin/bloomjoin/internal/parquet"
)

// WriteScan writes the rows of the pieces that pass. Parquet files that become
// Parquet files are copied page by page; others go by way of Arrow records.
// logs are all files of the log: they lend their schema to the output of a
// shard that has none of them.
func (o Output) WriteScan(ctx context.Context, s *Scanner, pieces []Piece, logs []*File) (_ Written, err error) {
	if s.opts.Columns != nil && len(s.opts.Columns) == 0 {
		return Written{}, errors.New("no column is named for the output (name some, or leave Columns nil for all)")
	}
	if err := o.prepare(logs); err != nil {
		return Written{}, err
	}
	end := o.begin()
	defer func() { err = errors.Join(err, end()) }()
	all, err := o.unified(ctx, &s.opts, logs)
	if err != nil {
		return Written{}, err
	}
	if len(pieces) == 0 && !o.IsDir(ctx) {
		pieces = []Piece{{File: logs[0]}} // no row of it, but its schema
	}
	parts, err := s.parts(pieces, all == nil)
	if err != nil {
		return Written{}, err
	}
	if o.pagesFit() {
		if err := o.planPages(ctx, s, parts, all); err != nil {
			return Written{}, err
		}
	}
	for _, p := range parts {
		s.copied[p.Piece.File] = p.pages != nil
	}
	return o.Write(ctx, parts, s.output(ctx, parts))
}

// parts returns the stretches of the output, one for each piece. own: each with
// the schema of what is kept of its file.
func (s *Scanner) parts(pieces []Piece, own bool) ([]Part, error) {
	var parts []Part
	for _, p := range pieces {
		part := Part{Piece: p, Schema: p.File.Schema()}
		if own {
			var err error
			if part.Schema, err = s.opts.SchemaOf(p.File); err != nil {
				return nil, err
			}
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// output yields the rows of the parts that pass: those with a pageSource as
// pages, others as records.
func (s *Scanner) output(ctx context.Context, parts []Part) iter.Seq2[Rows, error] {
	return func(yield func(Rows, error) bool) {
		for st, err := range s.stages(ctx, piecesOf(parts)) {
			if err != nil {
				yield(Rows{}, err)
				return
			}
			for r, err := range st.output(ctx, parts) {
				if !yield(r, err) || err != nil {
					return
				}
			}
		}
		if s.opts.End != nil {
			if err := s.opts.End(); err != nil {
				yield(Rows{}, err)
			}
		}
	}
}

func piecesOf(parts []Part) []Piece {
	var pieces []Piece
	for _, p := range parts {
		pieces = append(pieces, p.Piece)
	}
	return pieces
}

// output is that of one stage.
func (st *stage) output(ctx context.Context, all []Part) iter.Seq2[Rows, error] {
	parts := st.parts(all)
	return func(yield func(Rows, error) bool) {
		for lo := 0; lo < len(parts); {
			hi := lo + 1
			for hi < len(parts) && (parts[hi].pages == nil) == (parts[lo].pages == nil) {
				hi++
			}
			some := stage{st.scanner, st.pieces[lo:hi], st.of[lo:hi], st.within}
			rows := some.scan(ctx)
			if parts[lo].pages != nil {
				rows = some.pages(ctx, parts[lo:hi])
			}
			for r, err := range rows {
				if !yield(r, err) || err != nil {
					return
				}
			}
			lo = hi
		}
	}
}

// pages yields the rows of the stage's pieces, which the parts are, as pages.
func (st *stage) pages(ctx context.Context, parts []Part) iter.Seq2[Rows, error] {
	return func(yield func(Rows, error) bool) {
		st.countGroups()
		var sources []*pageSource
		for _, p := range parts {
			sources = append(sources, p.pages)
		}
		for g, err := range st.scanner.copyPages(ctx, sources) {
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
// single file is copied so only if all of its parts are. all is what the parts
// share; nil: each keeps its own schema.
func (o Output) planPages(ctx context.Context, s *Scanner, parts []Part, all *unified) error {
	dir := o.IsDir(ctx)
	foreign := func(p Part) bool { return p.Piece.File.parquet() == nil }
	if !dir && slices.ContainsFunc(parts, foreign) {
		return nil
	}
	var first *pageSource
	for i := range parts {
		if foreign(parts[i]) {
			continue
		}
		src, err := o.newPageSource(s, parts[i].Piece, all)
		if err != nil {
			return err
		}
		src.part = i
		if !dir {
			if first == nil {
				first = src
			}
			src.part, src.layout = 0, first.layout
		}
		parts[i].pages = src
	}
	return nil
}

func (o Output) newPageSource(s *Scanner, piece Piece, all *unified) (*pageSource, error) {
	f := piece.File.parquet().File()
	src := &pageSource{piece: piece, sink: new(relay)}
	proj, reshaped, err := parquet.Projection{}, false, error(nil)
	if all != nil {
		proj, src.adapt, err = all.projection(f)
		reshaped = !all.describedBy(f)
	} else {
		proj, err = s.opts.projection(piece.File)
		reshaped = s.opts.Columns != nil
	}
	if err != nil {
		return nil, err
	}
	src.leaves = proj.Leaves
	src.measure()
	compression, err := o.compression(piece.File).ofPages()
	if err != nil {
		return nil, err
	}
	src.layout, err = parquet.NewWriter(src.sink, proj.Schema, proj.Orders, parquet.WriterOptions{
		Compression: compression, KeyValue: o.keyValues(f, reshaped), Pool: o.pool,
	})
	return src, err
}

// measure orders the leaves by size.
func (p *pageSource) measure() {
	sizes := make([]int64, len(p.leaves))
	for i, l := range p.leaves {
		p.order = append(p.order, i)
		for g := p.piece.Lo; g < p.piece.Hi && l >= 0; g++ {
			sizes[i] += p.file().Metadata.RowGroups[g].Columns[l].MetaData.TotalCompressedSize
		}
	}
	slices.SortStableFunc(p.order, func(a, b int) int { return cmp.Compare(sizes[b], sizes[a]) })
}

// expected returns how many bytes, uncompressed, n rows of a row group may come
// to, by what its footer says: their share of the pages, and dictionaries, all
// of which n rows may need.
func (p *pageSource) expected(group int, n int64) (bytes int64) {
	const most = 1 << 40 // keeps the sum in range, whatever a footer says
	rg := &p.file().Metadata.RowGroups[group]
	for _, l := range p.leaves {
		if l < 0 {
			continue // NULLs take next to nothing
		}
		md := &rg.Columns[l].MetaData
		bytes += int64(float64(min(md.TotalUncompressedSize, most)) / float64(max(rg.NumRows, 1)) * float64(n))
		if d := md.DataPageOffset - md.DictionaryPageOffset; md.DictionaryPageOffset > 0 && d > 0 {
			bytes += min(d, most)
		}
	}
	return bytes
}

// keyValues returns the metadata of an output that has the columns of f, or,
// reshaped, others.
func (o Output) keyValues(f *parquet.File, reshaped bool) []parquet.KeyValue {
	drop := []string{MetaResult, MetaFilter, metaRun} // of an input that is itself an output
	if reshaped {
		drop = append(drop, describing...)
	}
	var kv []parquet.KeyValue
	for _, e := range f.Metadata.KeyValueMetadata {
		if !slices.Contains(drop, e.Key) {
			kv = append(kv, e)
		}
	}
	md := o.metadata()
	for _, k := range []string{MetaResult, MetaFilter, metaRun} {
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

func (w pageWriter) Abort() {} // it holds nothing but memory

// PathOf returns the way that the rows of a file went to the output, "engine" if
// pages were copied and "generic" if Arrow records were made, and why. It is
// known once the scan has begun.
func (s *Scanner) PathOf(f *File) (path, why string) {
	switch {
	case f.Format == RecordBatches:
		return "generic", "the rows are given as Arrow records"
	case f.parquet() == nil:
		return "generic", "the input is Arrow, not Parquet"
	case s.copied[f]:
		return "engine", "pages are copied"
	case s.counted:
		return "engine", "only keys are read"
	}
	return "generic", "the keys are read first, then Arrow records are made of the rows that pass"
}
