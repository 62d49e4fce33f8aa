package output

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/pagecopy"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/adapt"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/tables"
)

// planPages sets the Source of the parts whose rows can be copied as pages. For
// a single output file these are all parts or none. all is the schema that the
// parts share; nil: each keeps its own.
func (o Destination) planPages(ctx context.Context, s *keyscan.Scanner, pairs *tables.Pairs, parts []Part, all *unified) error {
	dir := o.IsDir(ctx)
	foreign := func(p Part) bool { return p.Piece.File.Parquet() == nil }
	if !dir && slices.ContainsFunc(parts, foreign) {
		return nil
	}
	var like *pagecopy.PairLayout
	for i := range parts {
		if foreign(parts[i]) {
			continue
		}
		src, err := o.newPageSource(s, pairs, parts[i].Piece, all, like)
		if err != nil {
			return err
		}
		parts[i].pages, like = src, src.Pairs
		if i > 0 && (!dir || o.share(parts[i-1], parts[i])) {
			src.Layout, src.Sink = parts[i-1].pages.Layout, parts[i-1].pages.Sink
		}
	}
	for i, p := range parts {
		with := func(j int) bool {
			return j >= 0 && j < len(parts) && parts[j].pages != nil && parts[j].pages.Layout == p.pages.Layout
		}
		if p.pages != nil {
			p.pages.Own = !with(i-1) && !with(i+1)
			if dir && !p.pages.Own {
				p.pages.Most = min(pagecopy.GroupBytes, o.TargetSize)
			}
		}
	}
	return nil
}

// newPageSource returns the source of a piece. like is the layout of another one, if a
// scan with Pairs has any.
func (o Destination) newPageSource(s *keyscan.Scanner, pairs *tables.Pairs, piece source.Piece, all *unified, like *pagecopy.PairLayout) (*pagecopy.Source, error) {
	if pairs != nil {
		return o.newPairSource(pairs, piece, like)
	}
	f := piece.File.Parquet().File()
	src := &pagecopy.Source{Piece: piece, Sink: new(pagecopy.Relay), Most: pagecopy.GroupBytes}
	proj, reshaped, err := parquet.Projection{}, false, error(nil)
	if all != nil {
		var adapt *adapt.Conversion
		if proj, adapt, err = all.projection(f); err != nil {
			return nil, err
		}
		for i := range adapt.Leaves {
			src.Adapt = append(src.Adapt, &adapt.Leaves[i])
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
		columns = pagecopy.TopLevel(proj.Schema)
	}
	src.Leaves = proj.Leaves
	return src, o.openLayout(src, proj.Schema, proj.Orders, o.keyValues(pagecopy.KeptMetadata(f.Metadata.KeyValueMetadata, columns)))
}

// newPairSource is newPageSource for a scan with Pairs.
func (o Destination) newPairSource(pairs *tables.Pairs, piece source.Piece, like *pagecopy.PairLayout) (*pagecopy.Source, error) {
	l, err := pagecopy.NewPairLayout(piece.File, pairs, like)
	if err != nil {
		return nil, err
	}
	src := &pagecopy.Source{Piece: piece, Sink: new(pagecopy.Relay), Most: pagecopy.GroupBytes, Pairs: l}
	for _, leaf := range l.Leaves {
		src.Leaves, src.Adapt = append(src.Leaves, leaf.Log), append(src.Adapt, leaf.Adapt)
	}
	return src, o.openLayout(src, l.Schema, l.Orders, o.keyValues(l.Kept))
}

// openLayout begins the Parquet file of a source.
func (o Destination) openLayout(src *pagecopy.Source, schema []meta.Element, orders []format.ColumnOrder, kv []meta.KeyValue) error {
	src.Measure()
	compression, err := o.compression(src.Piece.File)
	if err != nil {
		return err
	}
	src.Layout, err = parquet.NewWriter(src.Sink, schema, orders, parquet.WriterOptions{
		Compression: compression.ofPages(), KeyValue: kv, Pool: o.pool,
	})
	return err
}

// pageWriter writes row groups of pages.
type pageWriter struct{ layout *parquet.Writer }

// newPageWriter begins a file of a source's layout. The one before must be closed.
func newPageWriter(dst io.Writer, src *pagecopy.Source) (writer, error) {
	if src.Sink.W == nil {
		return pageWriter{src.Layout}, src.Sink.To(dst)
	}
	src.Sink.W = dst
	return pageWriter{src.Layout}, src.Layout.Restart(src.Sink)
}

func (w pageWriter) Size() int64 { return w.layout.Size() }

func (w pageWriter) Write(r outRows) error {
	var chunks []*parquet.EncodedChunk
	for _, l := range r.group.Leaves {
		chunks = append(chunks, l.Chunk)
	}
	err := w.layout.RowGroup(r.group.Rows, chunks)
	if f := r.group.File; f != nil { // chunks may have been read from it
		err = errors.Join(f.Unless(err), f.Rest())
	}
	return err
}

func (w pageWriter) Close() (rows, bytes int64, err error) { return w.layout.Close() }

func (w pageWriter) Abort() {} // it holds nothing but memory

// keyValues returns the metadata of an output that keeps the given entries of its
// input.
func (o Destination) keyValues(kept []meta.KeyValue) []meta.KeyValue {
	kept = slices.Clip(kept)
	md := o.metadata()
	for _, k := range pagecopy.OwnKeys {
		if v, ok := md[k]; ok {
			kept = append(kept, meta.KeyValue{Key: k, Value: v})
		}
	}
	return kept
}

// PairsFit reports whether a scan with Pairs can copy pages of the log files to the
// output; with nil Pairs, whether it can as far as the formats decide. why is the reason
// if it cannot, or empty.
func (o Destination) PairsFit(p *tables.Pairs, logs []*source.File) (why string) {
	if o.fill(); !o.pagesFit() {
		return "the output is not Parquet"
	}
	var like *pagecopy.PairLayout
	for _, f := range logs {
		if f.Parquet() == nil {
			return "the log is not all Parquet"
		}
		if p == nil {
			continue
		}
		var err error
		if like, err = pagecopy.NewPairLayout(f, p, like); err != nil {
			return err.Error()
		}
	}
	return ""
}
