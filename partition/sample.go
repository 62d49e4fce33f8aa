package partition

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/bits"
	"sync/atomic"

	"github.com/apache/arrow/go/v15/arrow"
	"golang.org/x/sync/errgroup"

	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/key"
)

// Run is a run of rows of one row group, as it is sampled. One that reaches
// beyond the group's end goes on at its beginning.
type Run struct {
	File  *File
	Group int
	First int64
	Rows  int64
	// Stands is the number of rows that the run stands for.
	Stands float64
}

// Runs returns up to n runs of up to rows rows each that are spread evenly over
// the pieces, or, if these have no more rows, one for each row group, with all
// of them. ok is false where the number of rows is not known before they are
// read.
//
// The rows, in order, are cut into n stretches; in each, a row is chosen at
// random, which is where a run begins. As a run goes on at the beginning of its
// row group, each row of a group is as likely to be in a run as any other,
// and the mean over runs of what is a mean over a run's rows is one over all
// rows. The choice depends on the number of rows alone.
func Runs(pieces []Piece, n int, rows int64) (runs []Run, all, ok bool) {
	var total int64
	for _, p := range pieces {
		for g := p.Lo; g < p.Hi; g++ {
			r := p.File.GroupRows(g)
			if r < 0 {
				return nil, false, false
			}
			total += r
		}
	}
	all = float64(n)*float64(rows) >= float64(total)
	var before int64 // rows of the groups passed
	next := 0
	for _, p := range pieces {
		for g := p.Lo; g < p.Hi; g++ {
			r := p.File.GroupRows(g)
			if all && r > 0 {
				runs = append(runs, Run{p.File, g, 0, r, float64(r)})
			}
			for ; !all && next < n; next++ {
				at := chosen(next, n, total)
				if at >= before+r {
					break
				}
				runs = append(runs, Run{p.File, g, at - before, min(rows, r), float64(total) / float64(n)})
			}
			before += r
		}
	}
	return runs, all, true
}

// chosen returns a row of stretch i of n.
func chosen(i, n int, total int64) int64 {
	x := uint64(i)*0x9e3779b97f4a7c15 + 0x632be59bd9b4e019 // splitmix64
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	lo, hi := nth(i, n, total), nth(i+1, n, total)
	off, _ := bits.Mul64(x, uint64(hi-lo))
	return lo + int64(off)
}

// nth returns total·i/n.
func nth(i, n int, total int64) int64 {
	hi, lo := bits.Mul64(uint64(total), uint64(i))
	q, _ := bits.Div64(hi, lo, uint64(n))
	return int64(q)
}

// selection returns the rows of a run, ascending; nil: all of the group.
func (r Run) selection() []uint32 {
	size := r.File.GroupRows(r.Group)
	if r.Rows >= size {
		return nil
	}
	rows := make([]uint32, 0, r.Rows)
	for i := int64(0); i < r.First+r.Rows-size; i++ {
		rows = append(rows, uint32(i))
	}
	for i := r.First; i < min(r.First+r.Rows, size); i++ {
		rows = append(rows, uint32(i))
	}
	return rows
}

// RunWork is called with keys of a run, in any number of steps, by one goroutine
// at a time; as with [KeyWork], Rows of the batch numbers keys, not rows.
type RunWork func(run int, b *key.Batch) error

// ReadRuns reads the keys of runs with several workers, in no certain order.
// A key that is none under the rule, or does not fit its cast, counts as NULL. newWork and threads are as
// in [MapKeys].
func ReadRuns(ctx context.Context, runs []Run, column string, o key.Options, threads int, newWork func() (RunWork, error)) error {
	columns, err := key.ParseColumns(column)
	if err != nil {
		return err
	}
	var pieces []Piece
	for _, r := range runs {
		pieces = append(pieces, Piece{File: r.File, Lo: r.Group, Hi: r.Group + 1})
	}
	way := flightOf(InFlight(pieces), threads, func() int64 { return keyNeed(pieces, columns, o) })
	var next atomic.Int64
	workers, ctx := errgroup.WithContext(ctx)
	for range min(way.workers, len(runs)) {
		workers.Go(func() error {
			work, err := newWork()
			if err != nil {
				return err
			}
			r := &keyReader{columns: columns, options: o, lenient: true, way: way, parsers: 1, buf: new(parquet.Buffers)}
			defer r.buf.Close()
			for {
				i := int(next.Add(1)) - 1
				if i >= len(runs) {
					return nil
				}
				if err := r.run(ctx, runs[i], func(_ Piece, b *key.Batch) error { return work(i, b) }); err != nil {
					return err
				}
			}
		})
	}
	return workers.Wait()
}

// run reads the keys of a run.
func (r *keyReader) run(ctx context.Context, run Run, work KeyWork) (err error) {
	defer func() { err = errors.Join(run.File.unless(err), run.File.rest()) }()
	r.work = work
	p := Piece{File: run.File, Lo: run.Group, Hi: run.Group + 1}
	if err := r.open(run.File); err != nil {
		return err
	}
	rows := run.selection()
	if r.leaf == nil {
		return r.sampled(ctx, p, readKeysOf(parquet.WithTurn(ctx, nil), r.way.table(p.File), p.Lo, r.enc.Columns(), rows), rows)
	}
	defer r.buf.Rest()
	c := run.File.parquet().File().ChunkIn(r.buf, run.Group, r.leaf.values.Index())
	if rows != nil {
		c.Select(rows)
	}
	for {
		page, err := c.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := r.page(p, page, c.Dictionary()); err != nil {
			return err
		}
	}
}

// sampled hands on the keys of records: of files other than Parquet those of
// rows alone.
func (r *keyReader) sampled(ctx context.Context, p Piece, records iter.Seq2[arrow.Record, error], rows []uint32) error {
	enc := (*key.Encoder)(nil)
	first := int64(0) // of the record
	for rec, err := range records {
		if err != nil {
			return err
		}
		if enc == nil {
			if enc, err = key.NewEncoder(rec.Schema(), r.columns, r.options); err != nil {
				return fmt.Errorf("%s: %w", p.File.Name, err)
			}
		}
		for _, s := range within(rows, first, rec.NumRows(), p.File.parquet() != nil) {
			some := rec.NewSlice(s[0], s[1])
			err := enc.Encode(some, &r.batch)
			if err == nil {
				err = r.work(p, &r.batch)
			}
			some.Release()
			if err != nil {
				return err
			}
		}
		first += rec.NumRows()
	}
	return nil
}

// within returns the stretches of a record to take, in its rows: those of rows,
// which are one or two stretches themselves, or all if rows is nil or the record
// has no others.
func within(rows []uint32, first, n int64, only bool) (out [][2]int64) {
	if rows == nil || only {
		for lo := int64(0); lo < n; lo += stepRows {
			out = append(out, [2]int64{lo, min(lo+stepRows, n)})
		}
		return out
	}
	for i := 0; i < len(rows); {
		k := i + 1
		for k < len(rows) && rows[k] == rows[k-1]+1 {
			k++
		}
		lo, hi := max(int64(rows[i])-first, 0), min(int64(rows[k-1])+1-first, n)
		if lo < hi {
			out = append(out, [2]int64{lo, hi})
		}
		i = k
	}
	return out
}
