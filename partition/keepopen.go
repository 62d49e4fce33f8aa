package partition

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"sync"

	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
	"github.com/bloomjoin/bloomjoin/storage"
)

// readers counts the readers of an open file. All views of a File share it.
type readers struct {
	mu      sync.Mutex
	count   int
	closed  bool
	release func() error // what the file holds; called once
}

// begin adds a reader, unless the file is closed. A reader that is a part of one at work,
// held, may begin until the last of these ends.
func (o *readers) begin(held bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed && !(held && o.count > 0) {
		return false
	}
	o.count++
	return true
}

// end removes a reader. The last one releases a file that was closed meanwhile.
func (o *readers) end() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.count--
	if o.count > 0 || !o.closed {
		return nil
	}
	return o.release()
}

// close closes the file: no reader begins any more. It returns the number of those that
// are at work, of which the last one then releases the file.
func (o *readers) close() (atWork int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return 0, nil
	}
	o.closed = true
	if o.count == 0 {
		return 0, o.release()
	}
	return o.count, nil
}

// KeepOpen keeps files open, even if they are closed meanwhile, for several passes over
// them that get the returned context: the files count as read until release is called.
// It must be called, from any goroutine. The error wraps [fs.ErrClosed] if one of the
// files is closed already. A single pass, such as a [Scanner.Scan], needs no KeepOpen.
func KeepOpen(ctx context.Context, files ...*File) (held context.Context, release func() error, err error) {
	stopped.Needs(ctx, "partition.KeepOpen")
	outer, _ := ctx.Value(heldKey{}).(heldFiles)
	mine := heldFiles{}
	release = func() (err error) {
		for o := range mine {
			err = errors.Join(err, o.end())
		}
		return err
	}
	for i, f := range files {
		if err := f.usable(i); err != nil {
			return nil, nil, errors.Join(err, release())
		}
		o := f.readers
		if o == nil || mine[o] {
			continue
		}
		if !o.begin(outer[o]) {
			return nil, nil, errors.Join(f.closedError(), release())
		}
		mine[o] = true
	}
	release = sync.OnceValue(release)
	all := heldFiles{}
	maps.Copy(all, outer)
	maps.Copy(all, mine)
	if len(all) == len(outer) {
		return ctx, release, nil
	}
	return context.WithValue(ctx, heldKey{}, all), release, nil
}

// heldFiles are files that a context holds.
type heldFiles map[*readers]bool

type heldKey struct{}

// usable returns an error if the File, which is the i-th of several, was not made by
// Open or Records.
func (f *File) usable(i int) error {
	switch {
	case f == nil:
		return fmt.Errorf("file %d is nil (a File comes from Open or Records)", i+1)
	case f.table == nil:
		return fmt.Errorf("file %d: %w", i+1, errNotOpened)
	}
	return nil
}

var errNotOpened = errors.New("a File that was not opened (a File comes from Open or Records)")

func (f *File) closedError() error { return fmt.Errorf("%s: %w", f.Name, fs.ErrClosed) }

// keepOpen is KeepOpen for the file alone.
func (f *File) keepOpen(ctx context.Context) (context.Context, func() error, error) {
	return KeepOpen(ctx, f)
}

// openPieces is KeepOpen for the files of pieces, which it checks.
func openPieces(ctx context.Context, pieces []Piece) (context.Context, func() error, error) {
	needContext(ctx)
	if err := checkPieces(pieces); err != nil {
		return nil, nil, err
	}
	var files []*File
	for _, p := range pieces {
		if n := len(files); n == 0 || files[n-1] != p.File {
			files = append(files, p.File)
		}
	}
	return KeepOpen(ctx, files...)
}

// mapPieces is openPieces, and maps the Parquet files, up to mostMapped of them. The
// error of release may say that one has changed.
func mapPieces(ctx context.Context, pieces []Piece) (held context.Context, release func() error, err error) {
	held, end, err := openPieces(ctx, pieces)
	if err != nil {
		return nil, nil, err
	}
	unmap := mapFew(pieces)
	return held, sync.OnceValue(func() error { return errors.Join(unmap(), end()) }), nil
}

// mostMapped is the maximum number of files that a pass maps at the same time. Each
// needs a descriptor.
const mostMapped = 64

// mapFew is mapPages for the Parquet files of the pieces, up to mostMapped files.
func mapFew(pieces []Piece) (unmap func() error) {
	var ends []func() error
	most := min(mostMapped, descriptors()/4)
	seen := map[*File]bool{}
	for _, p := range pieces {
		if f := p.File; f.parquet() != nil && !seen[f] && len(seen) < most {
			seen[f] = true
			ends = append(ends, f.mapPages())
		}
	}
	return func() (err error) {
		for _, end := range ends {
			err = errors.Join(err, end())
		}
		return err
	}
}

// mapPages maps a Parquet file into memory, if its source supports that, so that
// pages are read in place instead of being copied. Pages are released after
// reading, so little of the file is resident at a time. Passes that overlap share one
// mapping, which ends with the last of them. The error of unmap may say that the file
// changed.
func (f *File) mapPages() (unmap func() error) {
	nothing := func() error { return nil }
	m, ok := f.src.(storage.Mapper)
	if !ok {
		return nothing
	}
	end, err := f.parquet().File().Map(func() (*parquet.Mapping, error) { return f.newMapping(m) })
	if err != nil {
		return nothing // it can still be read
	}
	return func() error {
		if last, err := end(); last {
			return err // which Unmap has compared with the file as it was opened
		}
		return storage.Changed(f.src)
	}
}

func (f *File) newMapping(m storage.Mapper) (*parquet.Mapping, error) {
	b, unmap, err := m.Map()
	if err != nil {
		return nil, err
	}
	page := int64(os.Getpagesize())
	return &parquet.Mapping{
		Bytes: b,
		Unmap: unmap,
		Read:  func(n int64) { f.bytes.Add(n) },
		Passed: func(lo, hi int64) {
			if lo, hi = (lo+page-1)/page*page, hi/page*page; lo < hi {
				forget(b[lo:hi])
			}
		},
	}, nil
}
