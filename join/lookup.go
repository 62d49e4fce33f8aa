package join

import (
	"context"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/filterbuild"
	"github.com/bloomjoin/bloomjoin/key"
	"github.com/bloomjoin/bloomjoin/partition"
)

// lookup reads all IDs into the table, and into the filter unless one was
// given.
func (j *Join) lookup(ctx context.Context) (err error) {
	j.side, j.whole = j.newSide(), true
	read := j.lookupKeys
	if j.idCols.rows {
		read = j.lookupRows
	}
	if j.filter != nil {
		err = read(ctx, nil)
	} else if j.filter, err = j.build(ctx, j.plan, func(b *filterbuild.Builder) error { return read(ctx, b) }); err == nil {
		err = j.holdFilter(j.filter)
	}
	if err != nil {
		return err
	}
	return j.side.Seal()
}

// lookupRows reads the IDs' rows into the side, and their keys into the filter
// if there is a builder.
func (j *Join) lookupRows(ctx context.Context, builder *filterbuild.Builder) error {
	add := func(k *key.Batch, file string) error { return j.holds(k, file) }
	if builder != nil {
		w, err := builder.Worker()
		if err != nil {
			return err
		}
		add = func(k *key.Batch, _ string) error { return w.AddBatch(k) }
	}
	return j.eachID(ctx, true, func(f *partition.File, rec arrow.Record, k *key.Batch) error {
		j.idsTotal.Add(int64(len(k.Rows) + len(k.Void())))
		if err := add(k, f.Name); err != nil {
			return err
		}
		return j.side.AddRows(rec, k)
	})
}

// lookupKeys reads the IDs' keys into the side, and into the filter if there is
// a builder: what is needed where the answer has none of their columns.
func (j *Join) lookupKeys(ctx context.Context, builder *filterbuild.Builder) error {
	var n int64
	for _, f := range j.ids {
		n += max(f.Rows(), 0)
	}
	j.side.Reserve(n)
	threads := j.opts.Threads
	if builder != nil {
		threads = builder.Workers()
	}
	return partition.MapKeys(ctx, partition.Split(j.ids, partition.Shard{}), j.idKey, j.keyOptions(), threads, func() (partition.KeyWork, error) {
		fill := j.holds
		if builder != nil {
			worker, err := builder.Worker()
			if err != nil {
				return nil, err
			}
			fill = func(b *key.Batch, _ string) error { return worker.AddBatch(b) }
		}
		return func(p partition.Piece, b *key.Batch) error {
			if err := fill(b, p.File.Name); err != nil {
				return err
			}
			j.idsTotal.Add(int64(len(b.Rows) + len(b.Void())))
			j.idsNull.Add(int64(b.Nulls()))
			return j.side.AddKeys(b)
		}, nil
	})
}
