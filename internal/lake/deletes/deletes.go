// Package deletes reads which rows of a table's file are deleted.
//
//	lake.Deleted ── a vector of the file, or lists of positions in several files ──► a bitmap
//
// A vector is a Roaring bitmap, with the same frame in Delta's files and in Iceberg's. Lists are
// Parquet files; each is read once, however many files it names.
package deletes

import (
	"context"
	"encoding/binary"
	"hash/crc32"
	"slices"
	"strconv"
	"sync"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/lake"
	"github.com/bloomjoin/bloomjoin/internal/lake/roaring"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/storage"
)

// magic stands before a bitmap; it is the only format of vectors that there is.
const magic = 1681511377

// Reader reads deleted rows, and keeps lists of positions for other files. The zero value is ready to
// use, from many goroutines at once.
type Reader struct {
	mu    sync.Mutex
	lists map[string]*list // by place
}

// Rows reads the rows that d refers to. Lists that are kept are charged to the room.
func (r *Reader) Rows(ctx context.Context, src storage.Source, room *parquet.PageBudget, d *lake.Deleted) (*roaring.Bitmap, error) {
	if d.In == nil {
		return vector(ctx, src, d)
	}
	var found []*roaring.Bitmap
	for i := range d.In {
		of, err := r.list(d.In[i].Place).read(ctx, src, room, &d.In[i])
		if err != nil {
			return nil, err
		}
		if m := of[d.Of]; m != nil {
			found = append(found, m)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	var all []int64
	for _, m := range found {
		all = slices.AppendSeq(all, m.Values())
	}
	slices.Sort(all)
	return roaring.Of(slices.Compact(all)), nil
}

func (r *Reader) list(place string) *list {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lists == nil {
		r.lists = map[string]*list{}
	}
	if r.lists[place] == nil {
		r.lists[place] = new(list)
	}
	return r.lists[place]
}

// vector reads a vector.
func vector(ctx context.Context, src storage.Source, d *lake.Deleted) (m *roaring.Bitmap, err error) {
	at := fault.At{File: d.Place}
	b := d.Inline
	if d.Place != "" {
		if b, err = stored(ctx, src, d); err != nil {
			return nil, err
		}
	}
	if len(b) < 4 || binary.LittleEndian.Uint32(b) != magic {
		return nil, faults.Corrupt(at, "a deletion vector of an unknown format")
	}
	if m, err = roaring.Parse(b[4:]); err != nil {
		e := faults.Corrupt(at, "a deletion vector")
		e.Err = err
		return nil, e
	}
	if m.Count() != d.Count {
		return nil, faults.Wanted(faults.Corrupt(at, "rows of a deletion vector"), strconv.FormatInt(d.Count, 10), strconv.FormatInt(m.Count(), 10))
	}
	return m, nil
}

// stored reads a vector from its file: its length, itself, and its checksum.
func stored(ctx context.Context, src storage.Source, d *lake.Deleted) (b []byte, err error) {
	at := fault.At{File: d.Place}
	r, err := src.Open(ctx, storage.Object{Name: d.Place})
	if err != nil {
		return nil, err
	}
	defer faults.Join(&err, r.Close)
	if size := r.Object().Size; d.Offset < 0 || d.Size < 4 || d.Size > size || d.Offset > size-d.Size-8 {
		return nil, faults.Corrupt(at, "a deletion vector of %d bytes at %d, in a file of %d", d.Size, d.Offset, size)
	}
	b = make([]byte, d.Size+8)
	if n, err := r.ReadAt(b, d.Offset); n < len(b) {
		return nil, err
	}
	if n := int64(binary.BigEndian.Uint32(b)); n != d.Size {
		return nil, faults.Wanted(faults.Corrupt(at, "bytes of a deletion vector"), strconv.FormatInt(d.Size, 10), strconv.FormatInt(n, 10))
	}
	b, sum := b[4:4+d.Size], binary.BigEndian.Uint32(b[4+d.Size:])
	if crc32.ChecksumIEEE(b) != sum {
		return nil, faults.Corrupt(at, "the checksum of a deletion vector")
	}
	return b, nil
}
