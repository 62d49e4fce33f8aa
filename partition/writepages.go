package partition

import (
	"context"
	"io"
	"slices"

	"github.com/bloomjoin/bloomjoin/internal/parquet"
)

// planPages sets the pageSource of the parts whose rows can be copied as pages. For
// a single output file these are all parts or none. all is the schema that the
// parts share; nil: each keeps its own.
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
		if !dir {
			if first == nil {
				first = src
			}
			src.layout = first.layout
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
	var columns map[string]bool // if they are not exactly the file's
	if reshaped {
		columns = topLevel(proj.Schema)
	}
	src.leaves = proj.Leaves
	src.measure()
	compression, err := o.compression(piece.File)
	if err != nil {
		return nil, err
	}
	src.layout, err = parquet.NewWriter(src.sink, proj.Schema, proj.Orders, parquet.WriterOptions{
		Compression: compression.ofPages(), KeyValue: o.keyValues(keptMetadata(f.Metadata.KeyValueMetadata, columns)), Pool: o.pool,
	})
	return src, err
}

// pageWriter writes row groups of pages.
type pageWriter struct{ layout *parquet.Writer }

func newPageWriter(dst io.Writer, src *pageSource) (writer, error) {
	return pageWriter{src.layout}, src.sink.to(dst)
}

func (w pageWriter) Write(r Rows) error {
	var chunks []*parquet.EncodedChunk
	for _, l := range r.group.leaves {
		chunks = append(chunks, l.chunk)
	}
	return w.layout.RowGroup(r.group.rows, chunks)
}

func (w pageWriter) Close() (rows, bytes int64, err error) { return w.layout.Close() }

func (w pageWriter) Abort() {} // it holds nothing but memory
