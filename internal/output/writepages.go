package output

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// planPages sets the pageSource of the parts whose rows can be copied as pages. For
// a single output file these are all parts or none. all is the schema that the
// parts share; nil: each keeps its own.
func (o Destination) planPages(ctx context.Context, s *keyscan.Scanner, pairs *Pairs, parts []Part, all *unified) error {
	dir := o.IsDir(ctx)
	foreign := func(p Part) bool { return p.Piece.File.Parquet() == nil }
	if !dir && slices.ContainsFunc(parts, foreign) {
		return nil
	}
	var like *pairLayout
	for i := range parts {
		if foreign(parts[i]) {
			continue
		}
		src, err := o.newPageSource(s, pairs, parts[i].Piece, all, like)
		if err != nil {
			return err
		}
		parts[i].pages, like = src, src.pairs
		if i > 0 && (!dir || o.share(parts[i-1], parts[i])) {
			src.layout, src.sink = parts[i-1].pages.layout, parts[i-1].pages.sink
		}
	}
	for i, p := range parts {
		with := func(j int) bool {
			return j >= 0 && j < len(parts) && parts[j].pages != nil && parts[j].pages.layout == p.pages.layout
		}
		if p.pages != nil {
			p.pages.own = !with(i-1) && !with(i+1)
			if dir && !p.pages.own {
				p.pages.most = min(groupBytes, o.TargetSize)
			}
		}
	}
	return nil
}

// newPageSource returns the source of a piece. like is the layout of another one, if a
// scan with Pairs has any.
func (o Destination) newPageSource(s *keyscan.Scanner, pairs *Pairs, piece source.Piece, all *unified, like *pairLayout) (*pageSource, error) {
	if pairs != nil {
		return o.newPairSource(pairs, piece, like)
	}
	f := piece.File.Parquet().File()
	src := &pageSource{piece: piece, sink: new(relay), most: groupBytes}
	proj, reshaped, err := parquet.Projection{}, false, error(nil)
	if all != nil {
		var adapt *parquet.Adapter
		if proj, adapt, err = all.projection(f); err != nil {
			return nil, err
		}
		for i := range adapt.Leaves {
			src.adapt = append(src.adapt, &adapt.Leaves[i])
		}
		reshaped = !all.describedBy(f)
	} else {
		proj, err = projectionOf(&s.Options, piece.File)
		reshaped = s.Options.Columns != nil || slices.ContainsFunc(proj.Leaves, f.Constant)
	}
	if err != nil {
		return nil, err
	}
	var columns map[string]bool // if they are not exactly the file's
	if reshaped {
		columns = topLevel(proj.Schema)
	}
	src.leaves = proj.Leaves
	return src, o.openLayout(src, proj.Schema, proj.Orders, o.keyValues(keptMetadata(f.Metadata.KeyValueMetadata, columns)))
}

// newPairSource is newPageSource for a scan with Pairs.
func (o Destination) newPairSource(pairs *Pairs, piece source.Piece, like *pairLayout) (*pageSource, error) {
	l, err := newPairLayout(piece.File, pairs, like)
	if err != nil {
		return nil, err
	}
	src := &pageSource{piece: piece, sink: new(relay), most: groupBytes, pairs: l}
	for _, leaf := range l.leaves {
		src.leaves, src.adapt = append(src.leaves, leaf.log), append(src.adapt, leaf.adapt)
	}
	return src, o.openLayout(src, l.schema, l.orders, o.keyValues(l.kept))
}

// openLayout begins the Parquet file of a source.
func (o Destination) openLayout(src *pageSource, schema []parquet.SchemaElement, orders []format.ColumnOrder, kv []parquet.KeyValue) error {
	src.measure()
	compression, err := o.compression(src.piece.File)
	if err != nil {
		return err
	}
	src.layout, err = parquet.NewWriter(src.sink, schema, orders, parquet.WriterOptions{
		Compression: compression.ofPages(), KeyValue: kv, Pool: o.pool,
	})
	return err
}

// pageWriter writes row groups of pages.
type pageWriter struct{ layout *parquet.Writer }

// newPageWriter begins a file of a source's layout. The one before must be closed.
func newPageWriter(dst io.Writer, src *pageSource) (writer, error) {
	if src.sink.w == nil {
		return pageWriter{src.layout}, src.sink.to(dst)
	}
	src.sink.w = dst
	return pageWriter{src.layout}, src.layout.Restart(src.sink)
}

func (w pageWriter) Size() int64 { return w.layout.Size() }

func (w pageWriter) Write(r outRows) error {
	var chunks []*parquet.EncodedChunk
	for _, l := range r.group.leaves {
		chunks = append(chunks, l.chunk)
	}
	err := w.layout.RowGroup(r.group.rows, chunks)
	if f := r.group.file; f != nil { // chunks may have been read from it
		err = errors.Join(f.Unless(err), f.Rest())
	}
	return err
}

func (w pageWriter) Close() (rows, bytes int64, err error) { return w.layout.Close() }

func (w pageWriter) Abort() {} // it holds nothing but memory

// keyValues returns the metadata of an output that keeps the given entries of its
// input.
func (o Destination) keyValues(kept []parquet.KeyValue) []parquet.KeyValue {
	kept = slices.Clip(kept)
	md := o.metadata()
	for _, k := range ownKeys {
		if v, ok := md[k]; ok {
			kept = append(kept, parquet.KeyValue{Key: k, Value: v})
		}
	}
	return kept
}

// PairsFit reports whether a scan with Pairs can copy pages of the log files to the
// output; with nil Pairs, whether it can as far as the formats decide. why is the reason
// if it cannot, or empty.
func (o Destination) PairsFit(p *Pairs, logs []*source.File) (why string) {
	if o.fill(); !o.pagesFit() {
		return "the output is not Parquet"
	}
	var like *pairLayout
	for _, f := range logs {
		if f.Parquet() == nil {
			return "the log is not all Parquet"
		}
		if p == nil {
			continue
		}
		var err error
		if like, err = newPairLayout(f, p, like); err != nil {
			return err.Error()
		}
	}
	return ""
}
