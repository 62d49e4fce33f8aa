package codec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/publish"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
	"github.com/bloomjoin/bloomjoin/storage"
)

// ErrExists means that another output has the name of the one that was to be
// written.
var ErrExists = publish.ErrExists

// Load reads a filter file whole and verifies it. A Bloom filter that is stored
// uncompressed is mapped instead if the storage can do that; all processes of a
// machine then share its memory. Where lim gives a limit, an exact filter may use
// what it leaves of that to be probed faster.
//
// The caller closes the filter, and before it publishes what it made with it: an
// error of [Filter.Close] means that the file changed meanwhile.
func Load(ctx context.Context, store storage.Source, name string, lim Limits) (f *Filter, err error) {
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
	h, err := DecodeHeader(src, src.Object().Size, name)
	if err != nil {
		return nil, err
	}
	if m, ok := src.(storage.Mapper); ok && h.Mappable() {
		f, err := h.loadMap(m, lim)
		if !errors.Is(err, fault.ErrUnsupported) {
			return f, err
		}
	}
	if f, err = h.Load(lim); err != nil {
		return nil, err
	}
	if set := f.Exact(); set != nil && lim.MaxBytes > 0 {
		set.SetIndexBudget(lim.MaxBytes - min(lim.MaxBytes, set.Bytes()))
	}
	return f, nil
}

// loadMap maps a file and verifies it. The error wraps fault.ErrUnsupported if
// it cannot be mapped, for whatever reason: it may still be readable.
func (h *Header) loadMap(m storage.Mapper, lim Limits) (*Filter, error) {
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

// Save writes a filter file and returns its size. Only its owner may read it,
// where the storage knows users: an exact filter holds the IDs themselves.
//
// Unless opts.Replace is set, a file that has the name already is left alone. If
// it holds the same filter, no more compressed than was asked for, Save succeeds
// and returns that file's size, since two workers may do the same work; otherwise
// the error wraps [ErrExists]. Temporary files of earlier attempts are removed if
// their processes have ended.
func Save(ctx context.Context, store storage.Storage, name string, f *Filter, opts Options) (size int64, err error) {
	if err := storage.Sweep(ctx, store, name); err != nil {
		return 0, err
	}
	sink, err := store.Create(ctx, name, storage.CreateOptions{Private: true})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, sink.Abort()) }()
	if size, err = Encode(until{ctx, sink}, f, opts); err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	if err := stopped.Err(ctx); err != nil {
		return 0, err
	}
	err = sink.Commit(opts.Replace)
	if opts.Replace || !errors.Is(err, fs.ErrExist) {
		return size, err
	}
	want, err := f.Digest()
	if err != nil {
		return 0, err
	}
	var rival int64
	same, err := Holds(ctx, store, name, func(h *Header) bool {
		rival = h.FileBytes
		return h.Digest() == want && (h.Contiguous || !opts.Uncompressed)
	})
	if err != nil {
		return 0, err
	}
	if !same {
		return 0, fault.Errorf("%s: %w, but does not come from these inputs and options ({Force} replaces it)", name, ErrExists)
	}
	return rival, nil
}

// until is a writer that fails once its context has ended: a large file takes a
// while.
type until struct {
	ctx context.Context
	w   io.Writer
}

func (u until) Write(p []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, stopped.Err(u.ctx)
	}
	return u.w.Write(p)
}

// Holds reports whether a file is an undamaged filter for whose header want
// returns true. It reads the file to its end without keeping the payload. A
// damaged file, or one that is no filter, is not an error; one that cannot be
// read is.
func Holds(ctx context.Context, store storage.Source, name string, want func(*Header) bool) (ok bool, err error) {
	src, err := store.Open(ctx, storage.Object{Name: name})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	h, err := DecodeHeader(src, src.Object().Size, name)
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
