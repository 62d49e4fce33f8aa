package join

import (
	"context"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/filterbuild"
	"github.com/bloomjoin/bloomjoin/internal/take"
	"github.com/bloomjoin/bloomjoin/join/internal/table"
	"github.com/bloomjoin/bloomjoin/key"
	"github.com/bloomjoin/bloomjoin/partition"
)

// keeper takes the IDs that a filter of the log lets through.
type keeper interface {
	// worker returns what takes the keys at the positions in some, from one
	// goroutine, where no rows are wanted.
	worker() (func(k *key.Batch, some []uint32) error, error)
	// addRows takes ID rows: those of rec whose keys are at the positions in
	// some, ascending. first is the number of rec's first row: among all ID rows
	// in joins that keep IDs without a log row, else among those in records that
	// come here. It is called by one goroutine, in the IDs' order.
	addRows(rec arrow.Record, k *key.Batch, some []uint32, first int64) error
}

// heldIDs keeps IDs in memory.
type heldIDs struct{ side *table.Side }

func (h heldIDs) worker() (func(*key.Batch, []uint32) error, error) { return h.side.AddKeysAt, nil }

func (h heldIDs) addRows(rec arrow.Record, k *key.Batch, some []uint32, _ int64) error {
	if len(some) == k.Len {
		return h.side.AddRows(rec, k)
	}
	return h.side.AddRowsAt(rec, k, some)
}

// keep reads the IDs past a filter of the log and hands on those that it lets
// through. If there is no filter of the IDs yet, one of these is built.
func (j *Join) keep(ctx context.Context, ofLog *codec.Filter, to keeper) error {
	log := j.account.Share("the filter of the log")
	defer log.GiveAll()
	if err := log.Take(bytesOf(ofLog)); err != nil {
		return err
	}
	m := j.matchOf(ofLog, j.idKey)
	read := j.keepKeys
	switch {
	case !j.idCols.rows:
	case j.opts.Type.keepsIDs():
		read = j.keepNumbered
	default:
		read = j.keepRows
	}
	if j.filter != nil {
		return read(ctx, m, to, nil)
	}
	opts := j.filterOptions(j.idKey)
	opts.FPR, opts.Uncounted, opts.Squeeze = j.opts.FPR, true, true
	f, err := j.filterFrom(ctx, j.ids, opts, func(b *filterbuild.Builder) error {
		return read(ctx, m, to, b)
	})
	if err != nil {
		return err
	}
	j.filter = f
	return j.holdFilter(f)
}

// bytesOf returns what a filter's bits take in memory.
func bytesOf(f *codec.Filter) int64 {
	if bits := f.Bloom(); bits != nil {
		return int64(bits.Params().Bytes())
	}
	return int64(f.Exact().Bytes())
}

// keepKeys is keep of keys, which it also puts into a filter, if b is not nil.
func (j *Join) keepKeys(ctx context.Context, m partition.Match, to keeper, b *filterbuild.Builder) error {
	opts := partition.ScanOptions{CountNulls: true, Threads: j.opts.Threads}
	if b != nil {
		opts.Threads = b.Workers()
	}
	stats, err := j.readKeys(ctx, m, partition.Split(j.ids, partition.Shard{}), opts, func() (keyWork, error) {
		add := func(*key.Batch, []uint32) error { return nil }
		var times []uint32
		var err error
		if b != nil {
			if add, err = adder(b); err != nil {
				return nil, err
			}
		}
		take, err := to.worker()
		return func(f *partition.File, group int, k *key.Batch, hits, rows []uint32) error {
			if err := j.idsGood(f, group, k); err != nil {
				return err
			}
			if rows != nil {
				times = repeated(times[:0], hits, rows)
				hits = times
			}
			if len(hits) == 0 {
				return nil
			}
			if err := add(k, hits); err != nil {
				return err
			}
			return take(k, hits)
		}, err
	})
	if err == nil {
		j.idsNull.Store(stats.KeysNull.Load())
		j.idsTotal.Store(stats.RowsIn.Load() - stats.KeysNull.Load())
	}
	return err
}

// repeated appends each hit as many times as rows have it.
func repeated(dst, hits, rows []uint32) []uint32 {
	for _, h := range hits {
		for range rows[h] {
			dst = append(dst, h)
		}
	}
	return dst
}

// keepRows is keep of rows.
func (j *Join) keepRows(ctx context.Context, m partition.Match, to keeper, b *filterbuild.Builder) error {
	add := func(*key.Batch, []uint32) error { return nil }
	var err error
	if b != nil {
		if add, err = adder(b); err != nil {
			return err
		}
	}
	m.Verifier = func() partition.Verifier {
		return &reader{work: func(f *partition.File, group int, k *key.Batch, _, _ []uint32) error { return j.idsGood(f, group, k) }}
	}
	s, err := partition.NewScanner(partition.ScanOptions{
		Match: []partition.Match{m}, Normalize: j.opts.Normalize, Columns: j.idCols.names, CountNulls: true,
		IgnoreCase: j.opts.IgnoreCase, Threads: j.opts.Threads, Mem: j.opts.Mem,
	})
	if err != nil {
		return err
	}
	pieces := partition.Split(j.ids, partition.Shard{})
	enc := idEncoder{j: j, rows: true}
	var n int64
	var all []uint32
	for r, err := range s.Scan(ctx, pieces) {
		if err != nil {
			return err
		}
		err = enc.with(pieces[r.Piece].File, r.Record, func(rec arrow.Record, k *key.Batch) error {
			if err := add(k, nil); err != nil {
				return err
			}
			all = table.UpTo(all, len(k.Rows))
			defer func() { n += rec.NumRows() }()
			return to.addRows(rec, k, all, n)
		})
		r.Record.Release()
		if err != nil {
			return err
		}
	}
	j.idsTotal.Store(s.Stats.RowsIn.Load() - s.Stats.KeysNull.Load())
	return nil
}

// keepNumbered is keep of rows whose numbers among all of the IDs are wanted.
func (j *Join) keepNumbered(ctx context.Context, m partition.Match, to keeper, b *filterbuild.Builder) error {
	add := func(*key.Batch, []uint32) error { return nil }
	var err error
	if b != nil {
		if add, err = adder(b); err != nil {
			return err
		}
	}
	bits := m.Filter.Bloom()
	var n int64
	var hits []uint32
	var hashes []uint64
	return j.eachID(ctx, true, func(f *partition.File, rec arrow.Record, k *key.Batch) error {
		defer func() { n += rec.NumRows() }()
		j.idsTotal.Add(int64(len(k.Rows) + len(k.Void())))
		if j.opts.Filter != nil {
			if err := j.holds(k, f.Name); err != nil {
				return err
			}
		}
		hashes = k.Hash(bits.Params().Hash, hashes)
		if hits = bits.Probe(hashes, hits[:0]); len(hits) == 0 {
			return nil
		}
		if err := add(k, hits); err != nil {
			return err
		}
		return to.addRows(rec, k, hits, n)
	})
}

// idsGood returns an error if keys are not what IDs may have, or a filter that
// was given lacks one.
func (j *Join) idsGood(f *partition.File, group int, k *key.Batch) error {
	if err := k.IDs(fault.At{File: f.Name, RowGroup: group + 1, Column: j.idKey}); err != nil {
		return err
	}
	if j.opts.Filter != nil {
		return j.holds(k, f.Name)
	}
	return nil
}

// idEncoder makes keys of records of ID rows, file after file.
type idEncoder struct {
	j     *Join
	rows  bool // values take the place of dictionaries
	file  *partition.File
	enc   *key.Encoder
	batch key.Batch
}

// with calls fn with the record and its keys.
func (e *idEncoder) with(f *partition.File, rec arrow.Record, fn func(rec arrow.Record, k *key.Batch) error) error {
	if e.rows {
		plain, err := take.PlainRecord(e.j.opts.Mem, rec)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		defer plain.Release()
		rec = plain
	}
	if e.file != f {
		var err error
		if e.enc, err = key.NewEncoder(rec.Schema(), e.j.right, e.j.keyOptions()); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		e.file = f
	}
	if err := e.enc.EncodeIDs(f.Name, rec, &e.batch); err != nil {
		return err
	}
	return fn(rec, &e.batch)
}
