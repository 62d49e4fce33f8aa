package keyindex

import (
	"context"
	"encoding/binary"
	"errors"
	"io"

	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Create writes an index, for its owner alone, since it reveals which keys there are. The caller
// commits it, before which it is not visible, or aborts it.
func (f *Filters) Create(ctx context.Context, dst storage.Storage, name string) (w storage.Writer, size int64, err error) {
	placed, front, end, err := f.layout()
	if err != nil {
		return nil, 0, err
	}
	if err := objects.Sweep(ctx, dst, name); err != nil {
		return nil, 0, err
	}
	if w, err = dst.Create(ctx, name, storage.CreateOptions{Private: true}); err != nil {
		return nil, 0, err
	}
	if err = f.write(ctx, w, front, placed); err != nil {
		return nil, 0, errors.Join(err, w.Abort())
	}
	return w, int64(len(front)) + end, nil
}

// placedUnit is a filter in the spool, and its place in the file.
type placedUnit struct {
	Unit
	from int64
}

// layout returns the filters in the order of the file, and all that stands before them.
func (f *Filters) layout() (placed []placedUnit, front []byte, end int64, err error) {
	var directory []byte
	for i := range f.entries {
		e := &f.entries[i]
		directory = appendEntry(directory, e)
		for _, u := range append([]Unit{e.all}, e.groups...) {
			placed = append(placed, placedUnit{Unit{end, u.blocks}, u.at})
			end += u.bytes()
		}
	}
	front, err = appendFront(nil, &f.Facts, directory, end)
	return placed, front, end, err
}

// write writes the file.
func (f *Filters) write(ctx context.Context, w io.Writer, front []byte, placed []placedUnit) error {
	if _, err := w.Write(front); err != nil {
		return err
	}
	b := make([]byte, chunkBlocks*blockBytes+sumBytes)
	for _, u := range placed {
		for c, at := uint64(0), u.from; c*chunkBlocks < uint64(u.blocks); c++ {
			if err := stopped.Err(ctx); err != nil {
				return err
			}
			to, size := u.chunk(c)
			if _, err := f.spool.ReadAt(b[:size], at); err != nil {
				return err
			}
			binary.LittleEndian.PutUint64(b[size:], sumOf(b[:size], to))
			if _, err := w.Write(b[:size+sumBytes]); err != nil {
				return err
			}
			at += int64(size)
		}
	}
	return nil
}
