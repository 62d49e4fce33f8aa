package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"sync"

	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
	"github.com/bloomjoin/bloomjoin/storage"
)

// readers counts the readers of an open file. All views of a File share it.
type readers struct {
	mu       sync.Mutex
	count    int // readers, not counting nested ones
	parts    int // passes of readers that KeepOpen counts
	closed   bool
	released bool
	release  func() error // what the file holds
}

// begin adds a reader, unless the file is closed. A part of a reader may begin until the
// last reader ends, and counts as such; afterwards it is a reader like others.
func (r *readers) begin(part bool) (asPart, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if part && r.count+r.parts > 0 {
		r.parts++
		return true, true
	}
	if r.closed {
		return false, false
	}
	r.count++
	return false, true
}

// end removes a reader or, if part is set, a part of one. The last one releases a file
// that was closed meanwhile.
func (r *readers) end(part bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if part {
		r.parts--
	} else {
		r.count--
	}
	return r.freed()
}

// close closes the file: no reader can begin. It returns the number of active readers; the
// last one releases the file.
func (r *readers) close() (atWork int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if atWork = cmp.Or(r.count, r.parts); atWork > 0 {
		return atWork, nil
	}
	return 0, r.freed()
}

// freed releases a closed file without readers, once. The caller holds mu.
func (r *readers) freed() error {
	if !r.closed || r.released || r.count+r.parts > 0 {
		return nil
	}
	r.released = true
	return r.release()
}

// KeepOpen keeps files open for several passes that use the returned context, even if they are
// closed meanwhile, until release is called. release must be called, from any goroutine. The
// error wraps [fs.ErrClosed] if a file is closed already. A single pass needs no KeepOpen.
func KeepOpen(ctx context.Context, files ...*File) (held context.Context, release func() error, err error) {
	stopped.Needs(ctx, "KeepOpen")
	outer, _ := ctx.Value(heldKey{}).(heldFiles)
	mine := heldFiles{} // true: as a part of a reader
	release = sync.OnceValue(func() (err error) {
		for r, part := range mine {
			err = errors.Join(err, r.end(part))
		}
		return err
	})
	for i, f := range files {
		if err := f.usable(); err != nil {
			return nil, nil, errors.Join(fmt.Errorf("file %d of %d: %w", i+1, len(files), err), release())
		}
		r := f.readers
		if _, again := mine[r]; again || r == nil {
			continue
		}
		_, part := outer[r]
		part, ok := r.begin(part)
		if !ok {
			return nil, nil, errors.Join(fmt.Errorf("%s: %w", f.name, fs.ErrClosed), release())
		}
		mine[r] = part
	}
	if err := readKeys(ctx, files, false); err != nil {
		return nil, nil, errors.Join(err, release())
	}
	all := heldFiles{}
	maps.Copy(all, outer)
	maps.Copy(all, mine)
	if len(all) == len(outer) {
		return ctx, release, nil
	}
	return context.WithValue(ctx, heldKey{}, all), release, nil
}

// heldFiles are files that a context keeps open, each as a part of a reader or not.
type heldFiles map[*readers]bool

type heldKey struct{}

// usable returns an error if the File was not made by Open or Records.
func (f *File) usable() error {
	switch {
	case f == nil:
		return errors.New("the File is nil (a File comes from Open or Records)")
	case f.table == nil:
		return errors.New("the File was not opened (a File comes from Open or Records)")
	}
	return nil
}

// keepOpen is KeepOpen for the file alone.
func (f *File) keepOpen(ctx context.Context) (context.Context, func() error, error) {
	return KeepOpen(ctx, f)
}

// OpenPieces is KeepOpen for the files of pieces, which it checks.
func OpenPieces(ctx context.Context, pieces []Piece) (context.Context, func() error, error) {
	NeedContext(ctx)
	if err := CheckPieces(pieces); err != nil {
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

// MapPieces is OpenPieces, and maps the Parquet files, up to MostMapped of them. The
// error of release may say that one has changed.
func MapPieces(ctx context.Context, pieces []Piece) (held context.Context, release func() error, err error) {
	held, end, err := OpenPieces(ctx, pieces)
	if err != nil {
		return nil, nil, err
	}
	unmap := mapFew(pieces)
	return held, sync.OnceValue(func() error { return errors.Join(unmap(), end()) }), nil
}

// MostMapped is the maximum number of files that a pass maps at the same time. Each
// needs a descriptor.
const MostMapped = 64

// mapFew is MapPages for the Parquet files of the pieces, up to MostMapped files.
func mapFew(pieces []Piece) (unmap func() error) {
	var ends []func() error
	most := min(MostMapped, descriptors()/4)
	seen := map[*File]bool{}
	for _, p := range pieces {
		if f := p.File; f.Parquet() != nil && !seen[f] && len(seen) < most {
			seen[f] = true
			ends = append(ends, f.MapPages())
		}
	}
	return func() (err error) {
		for _, end := range ends {
			err = errors.Join(err, end())
		}
		return err
	}
}

// MapPages maps a Parquet file into memory, if its source supports that, so that
// pages are read in place instead of being copied. Pages are released after
// reading, so little of the file is resident at a time. Passes that overlap share one
// mapping, which ends with the last of them. The error of unmap may say that the file
// changed.
func (f *File) MapPages() (unmap func() error) {
	m, ok := f.reader.(storage.Mapper)
	if !ok {
		return func() error { return nil }
	}
	return f.mapWith(func() (p *parquet.Mapping, checked bool, err error) {
		p, err = f.newMapping(m)
		return p, false, err
	})
}

// mapWith is MapPages with a mapping from open. checked: its bytes were compared with the file as
// it was opened.
func (f *File) mapWith(open func() (p *parquet.Mapping, checked bool, err error)) (unmap func() error) {
	checked := false
	end, err := f.Parquet().File().Map(func() (p *parquet.Mapping, err error) {
		p, checked, err = open()
		return p, err
	})
	if err != nil {
		return func() error { return nil } // it can still be read
	}
	return func() error {
		if last, err := end(); last || checked {
			return err // which Unmap has compared with the file as it was opened
		}
		return objects.Changed(f.reader)
	}
}

func (f *File) newMapping(m storage.Mapper) (*parquet.Mapping, error) {
	b, unmap, err := m.Map()
	if err != nil {
		return nil, err
	}
	p := &passedBytes{b: b, page: int64(os.Getpagesize())}
	return &parquet.Mapping{
		Bytes:  b,
		Unmap:  unmap,
		Read:   func(n int64) { f.bytes.Add(n) },
		Passed: p.add,
	}, nil
}

// passedBytes releases mapped bytes that were passed. Reading a byte makes its neighbours
// resident, too, so where chunks are small, released ones come back. Once there are many, the
// whole range is released again; what is still being read becomes resident again.
type passedBytes struct {
	b    []byte
	page int64

	mu     sync.Mutex
	small  int64 // bytes of small parts since the last release
	lo, hi int64 // where they are
}

const (
	smallPassed = 1 << 20 // such parts are released together
	manyPassed  = 4 << 20
	aroundFault = 64 << 10 // becomes resident at least
)

func (p *passedBytes) add(lo, hi int64) {
	if hi-lo > smallPassed {
		p.forget(lo, hi)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.small == 0 {
		p.lo, p.hi = lo, hi
	}
	p.lo, p.hi = min(p.lo, lo), max(p.hi, hi)
	if p.small += max(hi-lo, aroundFault); p.small >= manyPassed {
		p.forget(p.lo, p.hi)
		p.small = 0
	}
}

func (p *passedBytes) forget(lo, hi int64) {
	if lo, hi = (lo+p.page-1)/p.page*p.page, hi/p.page*p.page; lo < hi {
		forget(p.b[lo:hi])
	}
}
