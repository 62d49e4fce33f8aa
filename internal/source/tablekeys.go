package source

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/lake/deletes"
	"github.com/bloomjoin/bloomjoin/internal/lake/roaring"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/rows"
	"github.com/bloomjoin/bloomjoin/storage"
)

// deletedKeys says which rows of a file of a table are deleted by their keys. The first reader finds it out.
type deletedKeys struct {
	store storage.Source
	room  *parquet.PageBudget
	found atomic.Pointer[foundKeys] // nil: not yet
}

// foundKeys are keys of deleted rows that are in memory, so that rows are looked up when they are read; and the rows that
// others have deleted.
type foundKeys struct {
	sets []*deletes.Keys
	rows *roaring.Bitmap // nil: none
}

// Keyed returns checkers of the keys that say which rows of a Parquet file are deleted. A reader of the file must be
// active; see [KeepOpen].
func (f *File) Keyed(buf *parquet.Buffers) (all []*deletes.Checker, err error) {
	if f.keys == nil {
		return nil, nil
	}
	found := f.keys.found.Load()
	if found == nil {
		return nil, f.Failed(errors.New("internal error: the keys of deleted rows have not been read"))
	}
	for _, k := range found.sets {
		c, err := k.Checker(f.Parquet(), f.of.Deleted.Seq, buf)
		if err != nil {
			return nil, f.Failed(err)
		}
		all = append(all, c)
	}
	return all, nil
}

// Live returns the rows of a row group that are not deleted, except by keys of Keyed, which is called before. all: none
// is deleted.
func (f *File) Live(group int) (live rows.Set, all bool) {
	if f.starts == nil {
		return nil, true
	}
	lo, hi := f.starts[group], f.starts[group+1]
	live = rows.Range(0, hi-lo)
	if f.deleted != nil {
		live = f.deleted.Without(lo, hi)
	}
	if f.keys != nil {
		if found := f.keys.found.Load(); found != nil && found.rows != nil {
			live = live.And(found.rows.Without(lo, hi))
		}
	}
	return live, live.All(hi - lo)
}

// readKeys reads the keys that say which rows of files are deleted. Rows that are deleted by sets that memory does not
// hold are found now, and with now all others, too.
func readKeys(ctx context.Context, files []*File, now bool) error {
	of := map[*TableVersion][]*File{}
	for _, f := range files {
		if f.keys != nil {
			of[f.of.Table] = append(of[f.of.Table], f)
		}
	}
	for t, some := range of {
		if err := t.readKeys(ctx, some, now); err != nil {
			return err
		}
	}
	return nil
}

// FindDeleted finds all rows of pieces that are deleted by their keys, so that Live leaves them out. Readers of their
// files must be active.
func FindDeleted(ctx context.Context, pieces []Piece) error {
	return readKeys(ctx, each.Slice(pieces, func(p Piece) *File { return p.File }), true)
}

// readKeys is the part of one table.
func (t *TableVersion) readKeys(ctx context.Context, files []*File, now bool) error {
	t.keying.Lock()
	defer t.keying.Unlock()
	begun := map[*File]*foundKeys{}
	large := map[int][]*File{} // by the position of sets that do not fit
	for _, f := range files {
		if was := f.keys.found.Load(); begun[f] != nil || was != nil && (!now || was.sets == nil) {
			continue
		}
		begun[f] = new(foundKeys)
		for _, set := range f.of.Deleted.Keys {
			k, err := t.reads.Keys(ctx, f.keys.store, f.keys.room, t.Table, set)
			switch {
			case errors.Is(err, deletes.ErrFull):
				large[set] = append(large[set], f)
			case err != nil:
				return fmt.Errorf("%s: %w", f.name, f.of.gone(err))
			default:
				begun[f].sets = append(begun[f].sets, k)
			}
		}
	}
	for set, some := range large {
		if err := t.readShares(ctx, set, some, begun); err != nil {
			return err
		}
	}
	if now {
		if err := findAll(ctx, begun); err != nil {
			return err
		}
	}
	for f, found := range begun {
		f.keys.found.Store(found)
	}
	return nil
}

// findAll finds the rows of files that are deleted by keys in memory.
func findAll(ctx context.Context, files map[*File]*foundKeys) error {
	by := map[*deletes.Keys][]*File{}
	for f, found := range files {
		for _, k := range found.sets {
			by[k] = append(by[k], f)
		}
		found.sets = nil
	}
	for k, some := range by {
		if err := findDeleted(ctx, k, files, some...); err != nil {
			return err
		}
	}
	return nil
}

// readShares finds the rows of files that are deleted by a set of keys, which memory does not hold: by one share of
// these after the other.
func (t *TableVersion) readShares(ctx context.Context, set int, files []*File, found map[*File]*foundKeys) error {
	of := files[0]
	for share := (deletes.Share{Number: 0, Of: 1}); share.Number < share.Of; {
		k, err := deletes.ReadKeys(ctx, of.keys.store, of.keys.room, deletes.ShareOfAll, t.Table, set, share)
		if errors.Is(err, deletes.ErrFull) && share.Of < mostShares {
			share = share.Half()
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", of.name, of.of.gone(err))
		}
		err = findDeleted(ctx, k, found, files...)
		if k.Release(); err != nil {
			return err
		}
		share.Number++
	}
	return nil
}

const (
	mostShares = 1 << 12
	rowsAtOnce = 1 << 20
)

// findDeleted finds rows of files that are deleted by keys.
func findDeleted(ctx context.Context, k *deletes.Keys, found map[*File]*foundKeys, files ...*File) error {
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
			before := int64(0)
			if was := found[f].rows; was != nil {
				dead, before = append(dead, was), was.Bytes()
			}
			all := roaring.Union(dead...)
			found[f].rows = all
			return f.Parquet().File().Keep(all.Bytes() - before)
		})
	}
	return work.Wait()
}

// dead returns the rows of the file whose keys are deleted, some at a time.
func (f *File) dead(ctx context.Context, c *deletes.Checker) (all []*roaring.Bitmap, err error) {
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
			var dead []int64
			for _, row := range list {
				if len(live) > 0 && live[0] == row {
					live = live[1:]
				} else {
					dead = append(dead, f.starts[g]+int64(row))
				}
			}
			if dead != nil {
				all = append(all, roaring.Of(dead))
			}
		}
	}
	return all, nil
}
