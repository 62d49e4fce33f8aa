// Package deletes reads which rows of a table's file are deleted.
//
//	lake.Deleted ─┬─ a vector of the file, or lists of positions in several files ──► a bitmap
//	              └─ sets of delete files with keys ──► Keys ── Checker of a file ──► rows that are left
//
// A vector is a Roaring bitmap, with the same frame in Delta's files and in Iceberg's. Lists are
// Parquet files; each is read once, however many files it names.
//
// Deleting by keys (equality deletes) is an anti join: a row is deleted if its key was deleted later
// than its file was written. [Keys] is a hash table of all keys of a set, each with its newest sequence
// number, behind a Bloom filter. A [Checker] reads the key's columns of a file, only pages that may have
// a deleted key, and looks them up. If memory does not hold a set, shares of it are read one after the
// other.
package deletes

import (
	"context"
	"encoding/binary"
	"hash/crc32"
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
	lists sync.Map // by place, of *list
	sets  sync.Map // by position in lake.Table.Keys, of *keySet
}

// Rows reads the rows of the lists that d refers to, nil if there are none. Lists that are kept are charged to the room.
func (r *Reader) Rows(ctx context.Context, src storage.Source, room *parquet.PageBudget, d *lake.Deleted) (*roaring.Bitmap, error) {
	switch {
	case d.In == nil && len(d.Keys) > 0 && d.Place == "" && d.Inline == nil:
		return nil, nil
	case d.In == nil:
		return vector(ctx, src, d)
	}
	var found []*roaring.Bitmap
	for i := range d.In {
		l, _ := r.lists.LoadOrStore(d.In[i].Place, new(list))
		of, err := l.(*list).read(ctx, src, room, &d.In[i])
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
	return roaring.Union(found...), nil
}

// vector reads a vector.
func vector(ctx context.Context, src storage.Source, d *lake.Deleted) (m *roaring.Bitmap, err error) {
	at := fault.At{File: d.Place}
	b := d.Inline
	if d.Place != "" {
		b, err = stored(ctx, src, d)
	}
	if err != nil {
		return nil, err
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
		return nil, faults.Wanted(faults.Corrupt(at, "rows of a deletion vector"), d.Count, m.Count())
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
		return nil, faults.Wanted(faults.Corrupt(at, "bytes of a deletion vector"), d.Size, n)
	}
	b, sum := b[4:4+d.Size], binary.BigEndian.Uint32(b[4+d.Size:])
	if crc32.ChecksumIEEE(b) != sum {
		return nil, faults.Corrupt(at, "the checksum of a deletion vector")
	}
	return b, nil
}
