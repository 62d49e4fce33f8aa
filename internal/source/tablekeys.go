package source

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/bloomjoin/bloomjoin/internal/lake/deletes"
	"github.com/bloomjoin/bloomjoin/internal/lake/roaring"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/rows"
	"github.com/bloomjoin/bloomjoin/storage"
)

// deletedKeys says which rows of a file of a table are deleted by their keys: sets of keys that are in memory say it
// while rows are read. Before the first reader, they are read; rows of sets that do not fit are found then.
type deletedKeys struct {
	store storage.Source
	room  *parquet.PageBudget

	ready bool // TableVersion.keying guards its changes
	sets  []*deletes.Keys
	rows  *roaring.Bitmap // nil: none
}

// Keyed returns checkers of the keys that say which rows of a Parquet file are deleted. A reader of the file must be
// active; see [KeepOpen].
func (f *File) Keyed(buf *parquet.Buffers) (all []*deletes.Checker, err error) {
	if f.keys == nil {
		return nil, nil
	}
	if !f.keys.ready {
		return nil, f.Failed(errors.New("internal error: a file that is read without the keys of its deleted rows"))
	}
	for _, k := range f.keys.sets {
		c, err := k.Checker(f.Parquet(), f.of.Deleted.Seq, buf)
		if err != nil {
			return nil, f.Failed(err)
		}
		all = append(all, c)
	}
	return all, nil
}

// Live returns the rows of a row group that are not deleted, except by keys that Keyed has. all: none is deleted.
func (f *File) Live(group int) (live rows.Set, all bool) {
	if f.starts == nil {
		return nil, true
	}
	lo, hi := f.starts[group], f.starts[group+1]
	live = rows.Range(0, hi-lo)
	if f.deleted != nil {
		live = f.deleted.Without(lo, hi)
	}
	if f.keys != nil && f.keys.rows != nil {
		live = live.And(f.keys.rows.Without(lo, hi))
	}
	return live, live.All(hi - lo)
}

// readKeys reads the keys that say which rows of files are deleted.
func readKeys(ctx context.Context, files []*File) error {
	of := map[*TableVersion][]*File{}
	for _, f := range files {
		if f.keys != nil {
			of[f.of.Table] = append(of[f.of.Table], f)
		}
	}
	for t, some := range of {
		if err := t.readKeys(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

// readKeys is the part of one table.
func (t *TableVersion) readKeys(ctx context.Context, files []*File) (err error) {
	t.keying.Lock()
	defer t.keying.Unlock()
	var begun []*File
	defer func() {
		for _, f := range begun {
			f.keys.ready = err == nil
		}
	}()
	large := map[int][]*File{} // by the position of sets that do not fit
	for _, f := range files {
		if f.keys.ready {
			continue
		}
		f.keys.ready, f.keys.sets, f.keys.rows = true, nil, nil
		begun = append(begun, f)
		for _, set := range f.of.Deleted.Keys {
			k, err := t.reads.Keys(ctx, f.keys.store, f.keys.room, t.Table, set)
			switch {
			case errors.Is(err, deletes.ErrFull):
				large[set] = append(large[set], f)
			case err != nil:
				return fmt.Errorf("%s: %w", f.name, f.of.gone(err))
			default:
				f.keys.sets = append(f.keys.sets, k)
			}
		}
	}
	for set, some := range large {
		if err := t.readShares(ctx, set, some); err != nil {
			return err
		}
	}
	return nil
}

// readShares finds the rows of files that are deleted by a set of keys, which memory does not hold: for one share of
// these after the other.
func (t *TableVersion) readShares(ctx context.Context, set int, files []*File) error {
	of := files[0]
	for share := (deletes.Share{Number: 0, Of: 2}); share.Number < share.Of; share.Number++ {
		k, err := deletes.ReadKeys(ctx, of.keys.store, of.keys.room, t.Table, set, share)
		for errors.Is(err, deletes.ErrFull) && share.Of < mostShares {
			share = share.Half()
			k, err = deletes.ReadKeys(ctx, of.keys.store, of.keys.room, t.Table, set, share)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", of.name, of.of.gone(err))
		}
		if err := findDeleted(ctx, k, files); err != nil {
			return err
		}
		k.Release()
	}
	return nil
}

const (
	mostShares = 1 << 12
	rowsAtOnce = 1 << 20
)

// findDeleted finds rows of files whose keys are deleted.
func findDeleted(ctx context.Context, k *deletes.Keys, files []*File) error {
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(runtime.GOMAXPROCS(0))
	for _, f := range files {
		work.Go(func() (err error) {
			defer Recovered(f, -1, &err)
			buf := new(parquet.Buffers)
			defer buf.Close()
			c, err := k.Checker(f.Parquet(), f.of.Deleted.Seq, buf)
			if err != nil {
				return f.Failed(err)
			}
			dead, err := f.dead(ctx, c)
			if err != nil || len(dead) == 0 {
				return f.Unless(err)
			}
			found := roaring.Of(dead)
			if f.keys.rows != nil {
				found = roaring.Union(f.keys.rows, found)
			}
			f.keys.rows = found
			return f.Parquet().File().Keep(found.Bytes())
		})
	}
	return work.Wait()
}

// dead returns the rows of the file whose keys are deleted.
func (f *File) dead(ctx context.Context, c *deletes.Checker) (dead []int64, err error) {
	first := int64(0)
	for g := range f.NumGroups() {
		may, err := c.May(ctx, g)
		if err != nil {
			return nil, err
		}
		total := f.GroupRows(g)
		for lo := int64(0); lo < total; lo += rowsAtOnce {
			list := may.And(rows.Range(lo, min(lo+rowsAtOnce, total))).List(nil)
			live, err := c.Live(ctx, g, slices.Clone(list), nil)
			if err != nil {
				return nil, InGroup(err, f, g)
			}
			for _, row := range list {
				if len(live) > 0 && live[0] == row {
					live = live[1:]
				} else {
					dead = append(dead, first+int64(row))
				}
			}
		}
		first += total
	}
	return dead, nil
}
