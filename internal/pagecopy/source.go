package pagecopy

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"iter"
	"slices"

	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/adapt"
	"github.com/bloomjoin/bloomjoin/internal/rows"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/tables"
)

// Source is a piece whose pages are copied.
type Source struct {
	Number  int // among the sources that are read together
	Part    int // of the output
	Piece   source.Piece
	Columns []int               // of the file, at the top level; nil: all
	Leaves  []int               // of the file, in the output's order; -1: the file lacks it
	Adapt   []*adapt.LeafSource // converts them to the output's schema; nil: not needed
	Pairs   *PairLayout         // of a scan with Pairs, else nil
	Own     bool                // the output's file has no other source
	Most    int64               // bytes of a row group of the output, uncompressed, as estimated from the footers
	order   []int               // positions in leaves, largest first
	Layout  *parquet.Writer
	Sink    *Relay
}

// file is the Parquet file.
func (p *Source) file() *parquet.File { return p.Piece.File.Parquet().File() }

// Measure orders the leaves by size.
func (p *Source) Measure() {
	sizes := make([]int64, len(p.Leaves))
	for i, l := range p.Leaves {
		p.order = append(p.order, i)
		for g := p.Piece.Lo; g < p.Piece.Hi && l >= 0; g++ {
			sizes[i] += p.file().Metadata.RowGroups[g].Columns[l].MetaData.TotalCompressedSize
		}
	}
	slices.SortStableFunc(p.order, func(a, b int) int { return cmp.Compare(sizes[b], sizes[a]) })
}

// expected estimates the uncompressed bytes of n rows of a row group from its
// footer: their share of the pages, and whole dictionaries.
func (p *Source) expected(group int, n int64) (bytes int64) {
	const most = 1 << 40 // keeps the sum in range for any footer
	rg := &p.file().Metadata.RowGroups[group]
	for _, l := range p.Leaves {
		if l < 0 {
			continue // NULLs take almost none
		}
		md := &rg.Columns[l].MetaData
		bytes += int64(float64(min(md.TotalUncompressedSize, most)) / float64(max(rg.NumRows, 1)) * float64(n))
		if d := md.DataPageOffset - md.DictionaryPageOffset; md.DictionaryPageOffset > 0 && d > 0 {
			bytes += min(d, most)
		}
	}
	return bytes
}

// Relay buffers what is written until its destination is known.
type Relay struct {
	W    io.Writer // nil: not known yet
	held bytes.Buffer
}

func (r *Relay) Write(p []byte) (int, error) {
	if r.W == nil {
		return r.held.Write(p)
	}
	return r.W.Write(p)
}

func (r *Relay) To(w io.Writer) error {
	r.W = w
	_, err := r.held.WriteTo(w)
	return err
}

// ofTable reports whether leaf i is one of the table of a scan with Pairs.
func (p *Source) ofTable(i int) bool { return p.Pairs != nil && p.Pairs.Leaves[i].Table >= 0 }

// unchanged reports whether leaf i is a leaf of the file whose pages stay as they are.
func (p *Source) unchanged(i int) bool {
	return p.Leaves[i] >= 0 && (p.Adapt == nil || p.Adapt[i] == nil || p.Adapt[i].Identity())
}

// mayCopy reports whether, by the footer, the chunk of leaf i of a row group can be
// copied as it is stored.
func (p *Source) mayCopy(group, i int) bool {
	return p.unchanged(i) && p.Layout.MayCopy(p.file(), group, p.Leaves[i], i) == ""
}

// ownGroup reports whether an input row group may become a row group of the output.
func (p *Source) ownGroup(group int) bool {
	rows, bytes := p.Piece.File.GroupRows(group), int64(0)
	for _, l := range p.Leaves {
		if l >= 0 {
			bytes += p.file().Metadata.RowGroups[group].Columns[l].MetaData.TotalCompressedSize
		}
	}
	least := int64(minCopied)
	switch {
	case p.Own && p.Piece.File.NumGroups() == 1:
		least = 0
	case p.Own:
		least = minOwn
	}
	return rows > 0 && len(p.Leaves) > 0 && bytes >= least
}

// leafPages are the pages of one leaf of a job, in the output's form.
type leafPages struct {
	chunk  *parquet.Chunk    // nil: the file lacks the leaf
	adapt  *adapt.Pages      // nil: pages stay as they are
	repeat *parquet.Repeater // nil: no row is repeated
	rows   int               // without a chunk: rows left
}

// nullRows is the maximum number of rows in a page of NULLs.
const nullRows = 64 << 10

// next returns the next page and its dictionary, or io.EOF.
func (l *leafPages) next(ctx context.Context) (*parquet.Page, *parquet.Dictionary, error) {
	if l.repeat == nil {
		return l.once(ctx)
	}
	return l.repeat.Next(func() (*parquet.Page, *parquet.Dictionary, error) { return l.once(ctx) })
}

// once is next before rows are repeated.
func (l *leafPages) once(ctx context.Context) (*parquet.Page, *parquet.Dictionary, error) {
	if l.chunk == nil {
		if l.rows == 0 {
			return nil, nil, io.EOF
		}
		n := min(l.rows, nullRows)
		l.rows -= n
		return l.adapt.Nulls(n), nil, nil
	}
	p, err := l.chunk.Next(ctx)
	if err != nil || l.adapt == nil {
		return p, l.chunk.Dictionary(), err
	}
	return l.adapt.Adapt(p, l.chunk.Dictionary())
}

// expect gives the walk the ranges that were announced for it.
func (l *leafPages) expect(a *parquet.Ahead) {
	if l.chunk == nil {
		a.Release()
		return
	}
	l.chunk.Expect(a)
}

// count returns the number of pages of the file that were passed, and how many of these
// were not decompressed.
func (l *leafPages) count() (seen, skipped int) {
	if l.chunk == nil {
		return 0, 0
	}
	return l.chunk.Pages()
}

// pages returns the pages of leaf i of the file for a selection of a row group.
func (p *Source) pages(buf *parquet.Buffers, group, i int, rows *rows.Selection, how howCopied) *leafPages {
	l := &leafPages{rows: rows.Len()}
	if rows.Times != nil {
		l.repeat = parquet.NewRepeater(&p.Layout.Leaves()[i], rows.Times)
	}
	if p.Adapt != nil && p.Adapt[i] != nil && !p.Adapt[i].Identity() {
		l.adapt = p.Adapt[i].Pages(group)
		if p.Adapt[i].Missing {
			return l
		}
	}
	l.chunk = p.file().ChunkIn(buf, group, p.Leaves[i])
	if list := rows.List(p.Piece.File.GroupRows(group)); list != nil {
		l.chunk.Select(list)
	}
	if how == maxRows && p.mayCopy(group, i) {
		l.chunk.Undecoded()
	}
	return l
}

// partners returns the pages of leaf i of the table for a selection. stop must be
// called when they are no longer needed.
func (p *Source) partners(of *tables.Pairs, i int, rows *rows.Selection) (next nextPage, stop func()) {
	leaf := &p.Pairs.Leaves[i]
	more, stop := iter.Pull2(of.Table.Store.Pages(leaf.Table, rows.Partners(&of.Partners), leaf.As))
	return func() (*parquet.Page, *parquet.Dictionary, error) {
		page, err, ok := more()
		if !ok {
			return nil, nil, io.EOF
		}
		return page, nil, err
	}, stop
}

// leavesDictionary reports whether the file's writer gave up the dictionary of leaf
// i of a row group, so the output's writer should as well.
func (p *Source) leavesDictionary(group, i int) bool {
	if p.Leaves[i] < 0 || p.Adapt != nil && p.Adapt[i] != nil && p.Adapt[i].LevelsOnly {
		return false
	}
	return p.file().LeavesDictionary(group, p.Leaves[i])
}
