package deletes

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/lake"
	"github.com/bloomjoin/bloomjoin/internal/lake/roaring"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/storage"
)

// list has what a list of positions says, by the names of data files.
type list struct {
	mu sync.Mutex
	of map[string]*roaring.Bitmap // nil: it has not been read
}

// positionBytes is the memory of a position while a list is being read: it is in a slice that grows.
const positionBytes = 16

// read returns what the list says.
func (l *list) read(ctx context.Context, src storage.Source, room *parquet.PageBudget, p *lake.DeleteFile) (map[string]*roaring.Bitmap, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of != nil {
		return l.of, nil
	}
	at := fault.At{File: p.Place}
	if p.Rows < 0 || p.Rows > 1<<40 {
		return nil, faults.Corrupt(at, "a file of %d positions of deleted rows", p.Rows)
	}
	if err := room.ChargeFooter(at, positionBytes*p.Rows); err != nil {
		return nil, err
	}
	of, kept := map[string]*roaring.Bitmap{}, int64(0)
	found, err := positions(ctx, src, room, p)
	if err != nil {
		found = nil
	}
	for name, some := range found {
		of[name] = roaring.Of(some)
		kept += of[name].Bytes() + int64(len(name))
	}
	if err = cmp.Or(err, room.ChargeFooter(at, kept-positionBytes*p.Rows)); err == nil {
		l.of = of
	}
	return of, err
}

// positions reads a list: data files, and positions in each.
func positions(ctx context.Context, src storage.Source, room *parquet.PageBudget, p *lake.DeleteFile) (map[string][]int64, error) {
	at, of := fault.At{File: p.Place}, map[string][]int64{}
	return of, readFile(ctx, src, room, p, nil, func(f *arrowparquet.Parquet) error {
		var columns []int
		for _, name := range []string{"file_path", "pos"} {
			i := f.Schema().FieldIndices(name)
			if len(i) != 1 {
				return faults.Corrupt(at, "a file of positions of deleted rows without the column %s", name)
			}
			columns = append(columns, i[0])
		}
		for g := range f.NumGroups() {
			for rec, err := range f.Read(ctx, g, columns) {
				if err == nil {
					err = collect(of, rec, at)
				}
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// readFile opens a delete file, which must have the size and rows that the table says, for a function.
func readFile(ctx context.Context, src storage.Source, room *parquet.PageBudget, d *lake.DeleteFile, view func(*parquet.File) (*parquet.View, error), read func(*arrowparquet.Parquet) error) (err error) {
	at := fault.At{File: d.Place}
	r, err := src.Open(ctx, storage.Object{Name: d.Place})
	if err != nil {
		return err
	}
	defer faults.Join(&err, r.Close)
	if size := r.Object().Size; size != d.Size {
		return faults.Mismatch(at, "bytes of a delete file of the table", d.Size, size)
	}
	ahead, remote := r.(storage.Prefetcher)
	f, err := arrowparquet.OpenParquet(r, d.Size, d.Place, arrowparquet.ParquetOptions{Room: room, View: view, Remote: remote})
	if err != nil {
		return err
	}
	defer faults.Join(&err, f.Close)
	if remote {
		f.File().Prefetch(ahead)
	}
	rows := int64(0)
	for g := range f.NumGroups() {
		rows += f.GroupRows(g)
	}
	if rows != d.Rows {
		return faults.Wanted(faults.Corrupt(at, "rows of a delete file"), d.Rows, rows)
	}
	return read(f)
}

// collect adds the positions of a record. Rows of one data file follow each other.
func collect(of map[string][]int64, rec arrow.Record, place fault.At) error {
	names, ok := rec.Column(0).(*array.String)
	at, too := rec.Column(1).(*array.Int64)
	if !ok || !too || names.NullN()+at.NullN() > 0 {
		return faults.Wanted(faults.Corrupt(place, "columns of positions of deleted rows"), "file_path: utf8 and pos: int64, without NULL", fmt.Sprint(rec.Column(0).DataType(), " and ", rec.Column(1).DataType()))
	}
	for i := 0; i < names.Len(); {
		name := names.Value(i)
		some := of[name]
		for ; i < names.Len() && names.Value(i) == name; i++ {
			if v := at.Value(i); v < 0 || v >= roaring.Limit {
				return faults.Corrupt(place, "position %d of a deleted row", at.Value(i))
			}
			some = append(some, at.Value(i))
		}
		of[strings.Clone(name)] = some
	}
	return nil
}
