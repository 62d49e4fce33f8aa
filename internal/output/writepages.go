package output

import (
	"context"
	"errors"
	"slices"

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
	var like *pagecopy.Source
	for i := range parts {
		if foreign(parts[i]) {
			continue
		}
		src, err := o.newPageSource(s, pairs, parts[i].Piece, all, like, dir)
		if err != nil {
			return err
		}
		own := *src // with its own layout
		parts[i].pages, like = src, &own
		if i > 0 && dir && o.share(parts[i-1], parts[i]) {
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

// newPageSource returns the source of a piece. like is the one before it, nil if there is
// none: what depends on the schema is made once. If apart is not set, both have one output.
func (o Destination) newPageSource(s *keyscan.Scanner, pairs *tables.Pairs, piece source.Piece, all *unified, like *pagecopy.Source, apart bool) (*pagecopy.Source, error) {
	src := &pagecopy.Source{Piece: piece, Sink: new(pagecopy.Relay), Most: pagecopy.GroupBytes}
	if like != nil && !apart {
		src.Layout, src.Sink = like.Layout, like.Sink
	}
	if pairs != nil {
		return src, o.ofPairs(src, pairs, like)
	}
	var err error
	f := piece.File.Parquet().File()
	if all == nil { // with a unified schema, a file may have only some of the columns
		if src.Columns, err = s.Options.ColumnsOf(piece.File); err != nil {
			return nil, err
		}
	}
	if like != nil && all == nil && piece.File.SharesSchema(like.Piece.File) && slices.Equal(src.Columns, like.Columns) {
		src.Leaves = like.Leaves
		return src, o.openLayout(src, like, nil)
	}
	proj, reshaped := parquet.Projection{}, false
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
		proj = f.Project(src.Columns)
		reshaped = s.Options.Columns != nil || slices.ContainsFunc(proj.Leaves, f.Constant)
	}
	src.Leaves = proj.Leaves
	return src, o.openLayout(src, nil, func(opts parquet.WriterOptions) (*parquet.Writer, error) {
		var columns map[string]bool // if they are not exactly the file's
		if reshaped {
			columns = pagecopy.TopLevel(proj.Schema)
		}
		opts.KeyValue = o.keyValues(pagecopy.KeptMetadata(f.Metadata.KeyValueMetadata, columns))
		return parquet.NewWriter(src.Sink, proj.Schema, proj.Orders, opts)
	})
}

// ofPairs completes the source for a scan with Pairs.
func (o Destination) ofPairs(src *pagecopy.Source, pairs *tables.Pairs, like *pagecopy.Source) (err error) {
	var before *pagecopy.PairLayout
	if like != nil {
		before = like.Pairs
	}
	l, err := pagecopy.NewPairLayout(src.Piece.File, pairs, before)
	if err != nil {
		return err
	}
	src.Pairs = l
	for _, leaf := range l.Leaves {
		src.Leaves, src.Adapt = append(src.Leaves, leaf.Log), append(src.Adapt, leaf.Adapt)
	}
	if before == nil || before.Arrow != l.Arrow {
		like = nil
	}
	return o.openLayout(src, like, func(opts parquet.WriterOptions) (*parquet.Writer, error) {
		opts.KeyValue = o.keyValues(l.Kept)
		return parquet.NewWriter(src.Sink, l.Schema, l.Orders, opts)
	})
}

// openLayout begins the Parquet file of a source, unless it has one. like, if not nil, is
// another one of the same columns and metadata.
func (o Destination) openLayout(src, like *pagecopy.Source, begin func(parquet.WriterOptions) (*parquet.Writer, error)) error {
	src.Measure()
	if src.Layout != nil {
		return nil
	}
	compression, err := o.compression(src.Piece.File)
	if err != nil {
		return err
	}
	if like != nil {
		src.Layout, err = like.Layout.Another(src.Sink, compression.ofPages())
	} else {
		src.Layout, err = begin(parquet.WriterOptions{Compression: compression.ofPages(), Pool: o.pool})
	}
	return err
}

// pageWriter writes row groups of pages.
type pageWriter struct{ layout *parquet.Writer }

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
func (o Destination) PairsFit(ctx context.Context, p *tables.Pairs, logs []*source.File) (why string) {
	if o.fill(ctx); !o.pagesFit() {
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
