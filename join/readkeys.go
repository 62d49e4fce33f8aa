package join

import (
	"context"
	"fmt"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/key"
	"github.com/bloomjoin/bloomjoin/partition"
)

// keyWork receives keys of one row group: hits are the positions of those that
// pass a filter, rows is how many rows have each key; nil: one. One goroutine calls
// it.
type keyWork func(f *partition.File, group int, k *key.Batch, hits, rows []uint32) error

// eachLogKey reads the keys of pieces of the log with several workers, through a
// filter of the IDs if there is one.
func (t *task) eachLogKey(ctx context.Context, filter *codec.Filter, pieces []partition.Piece, threads int, newWork func() (keyWork, error)) error {
	m := t.keys.match(t.idPlan.Spec.Header(), t.keys.logText) // lets everything through
	if filter != nil {
		m.Filter = filter
	}
	_, err := t.readKeys(ctx, m, pieces, partition.ScanOptions{Threads: threads}, newWork)
	return err
}

// eachIDKey reads the IDs' keys with several workers, in any order.
func (t *task) eachIDKey(ctx context.Context, threads int, newWork func() (partition.KeyWork, error)) error {
	return partition.MapKeys(ctx, t.idPieces, t.keys.idsText, t.keys.options(), threads, newWork)
}

// readKeys reads the keys of the pieces and passes them on with the positions of
// those that pass the match's filter.
func (t *task) readKeys(ctx context.Context, m partition.Match, pieces []partition.Piece, opts partition.ScanOptions, newWork func() (keyWork, error)) (*partition.ScanStats, error) {
	m.Verifier = func() partition.Verifier {
		work, err := newWork()
		return &reader{work: work, err: err}
	}
	opts.Match, opts.Normalize, opts.Mem = []partition.Match{m}, t.opts.Normalize, t.opts.Mem
	s, err := partition.NewScanner(opts)
	if err != nil {
		return nil, err
	}
	return s.Stats, s.Count(ctx, pieces)
}

// reader is a Verifier that hands on keys.
type reader struct {
	work  keyWork
	err   error // of making work
	file  *partition.File
	group int
}

func (r *reader) Begin(f *partition.File, group int)          { r.file, r.group = f, group }
func (r *reader) Filter() bool                                { return true }
func (r *reader) Verify(_ *key.Batch, hits []uint32) []uint32 { return hits }
func (r *reader) Count(k *key.Batch, hits, _, rows []uint32) error {
	if r.err != nil {
		return r.err
	}
	return r.work(r.file, r.group, k, hits, rows)
}

// hasAll returns an error if the filter lacks a key of the batch: it was built from
// other IDs, and would lose their rows.
func hasAll(filter *codec.Filter, batch *key.Batch, file string) error {
	var passed int
	if set := filter.Exact(); set != nil {
		_ = batch.BySign(func(values []uint64, signed bool, _ []uint32) error { // never fails
			passed += len(set.Probe(values, signed, nil))
			return nil
		})
	} else {
		bits := filter.Bloom()
		passed = len(bits.Probe(batch.Hash(bits.Params().Hash, nil), nil))
	}
	all := len(batch.Rows) + len(batch.Void()) // keys without an equal in the filter's class
	if passed == all {
		return nil
	}
	return fault.Mismatch(fault.At{File: file}, "the filter", "every ID in it", fmt.Sprintf("%d of %d missing", all-passed, all)).
		WithHint("it was built from other IDs; build it again, or leave {Filter} out")
}

// usedHits returns those of hits that some row has.
func usedHits(hits, rows []uint32) []uint32 {
	if rows == nil {
		return hits
	}
	var some []uint32
	for _, h := range hits {
		if rows[h] > 0 {
			some = append(some, h)
		}
	}
	return some
}
