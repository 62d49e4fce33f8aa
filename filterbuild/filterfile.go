package filterbuild

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/partition"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Read reads one filter file whole and verifies it. A Bloom filter that is
// stored uncompressed is mapped instead, where the store can: all processes of
// a machine share its memory then. The caller calls Close on the filter when
// it is done with it, and before it lets anyone see what it made with it: an
// error of Close says that the file changed meanwhile.
func Read(ctx context.Context, store storage.Source, name string, lim codec.Limits) (f *codec.Filter, err error) {
	src, err := store.Open(ctx, storage.Object{Name: name})
	if err != nil {
		return nil, err
	}
	defer func() {
		if e := src.Close(); e != nil {
			if f != nil {
				e = errors.Join(e, f.Close())
			}
			f, err = nil, errors.Join(err, e)
		}
	}()
	h, err := codec.DecodeHeader(src, src.Object().Size, name)
	if err != nil {
		return nil, err
	}
	if m, ok := src.(storage.Mapper); ok && h.Mappable() {
		f, err := readMapped(h, m, lim)
		if !errors.Is(err, fault.ErrUnsupported) {
			return f, err
		}
	}
	return h.Load(lim)
}

// readMapped maps a file and verifies it. The error is of the unsupported kind
// where it cannot be mapped, for whatever reason: it may still be readable.
func readMapped(h *codec.Header, m storage.Mapper, lim codec.Limits) (*codec.Filter, error) {
	file, unmap, err := m.Map()
	if err != nil {
		return nil, fmt.Errorf("%w: map: %w", fault.ErrUnsupported, err)
	}
	f, err := h.LoadMapped(file, unmap, lim)
	if err != nil {
		return nil, errors.Join(err, unmap())
	}
	return f, nil
}

// Write writes a filter file, which only its owner may read: an exact filter
// holds the IDs themselves. It returns the size of the file. Unless replace is
// set, a file that stands there is left alone: if it holds the same filter,
// stored so that it serves as well, that is a success, as two workers may run
// the same; else the error wraps [partition.ErrExists]. Temporary files of
// earlier attempts are removed if their processes are gone.
func Write(ctx context.Context, store storage.Storage, name string, f *codec.Filter, opts codec.Options, replace bool) (size int64, err error) {
	if err := storage.Sweep(ctx, store, name); err != nil {
		return 0, err
	}
	sink, err := store.Create(ctx, name, storage.CreateOptions{Private: true})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, sink.Abort()) }()
	if size, err = codec.Encode(until{ctx, sink}, f, opts); err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	err = sink.Commit(replace)
	if replace || !errors.Is(err, fs.ErrExist) {
		return size, err
	}
	want, err := f.Digest()
	if err != nil {
		return 0, err
	}
	var rival int64
	same, err := Holds(ctx, store, name, func(h *codec.Header) bool {
		rival = h.FileBytes
		return h.Digest() == want && (h.Contiguous || !opts.Uncompressed)
	})
	if err != nil {
		return 0, err
	}
	if !same {
		return 0, fault.Errorf("%s: %w, but does not come from these inputs and options ({Force} replaces it)", name, partition.ErrExists)
	}
	return rival, nil
}

// until is a writer that ends with its context: a large file takes a while.
type until struct {
	ctx context.Context
	w   io.Writer
}

func (u until) Write(p []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, context.Cause(u.ctx)
	}
	return u.w.Write(p)
}

// Holds reports whether the file is a filter for whose header want returns
// true, and whole: it is read to its end, and its payload not kept. What is
// damaged or no filter is none; only a file that cannot be read is an error.
func Holds(ctx context.Context, store storage.Source, name string, want func(*codec.Header) bool) (ok bool, err error) {
	src, err := store.Open(ctx, storage.Object{Name: name})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	h, err := codec.DecodeHeader(src, src.Object().Size, name)
	if err == nil && want(h) {
		if err = h.Verify(); err == nil {
			return true, nil
		}
	}
	var broken *fault.Error
	if errors.As(err, &broken) {
		err = nil
	}
	return false, err
}

// Count returns what can be said of the keys of a filter that was not built
// here.
func Count(f *codec.Filter) Report {
	if s := f.Exact(); s != nil {
		return Report{Keys: f.Keys, Distinct: s.Len()}
	}
	return Report{Keys: f.Keys, Distinct: distinct(f.Bloom(), registersOf(f), f.Keys), Estimated: true}
}
