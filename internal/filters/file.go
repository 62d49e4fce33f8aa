package filters

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/publish"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
	"github.com/bloomjoin/bloomjoin/storage"
)

// ErrExists means that the name of an output is taken by another file.
var ErrExists = publish.ErrExists

// given returns an error unless there are a storage and a name to use.
func given(store storage.Source, name string) error {
	if store == nil {
		return fmt.Errorf("%s: no storage: want a storage.Source such as storage.Local(), got nil", name)
	}
	if name == "" {
		return errors.New("a filter file with an empty name: want its path or address")
	}
	return nil
}

// Load reads and verifies a filter file. If the storage supports it, an uncompressed Bloom
// filter is mapped rather than read; all processes on a machine then share its memory, which
// counts as the system's cache. If lim sets a limit, an exact filter may use the rest of it for
// a faster index.
//
// The caller must close the filter, and must do so before publishing results that
// depend on it: an error of [Filter.Close] means that the file changed in the
// meantime.
func Load(ctx context.Context, store storage.Source, name string, lim Limits) (f *Filter, err error) {
	stopped.Needs(ctx, "codec.Load")
	if err := given(store, name); err != nil {
		return nil, err
	}
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
	if m, ok := src.(storage.Mapper); ok && h.mappable() {
		f, err := h.loadMap(m, lim.Unread)
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

// loadMap maps a file and, unless it may stay unread, verifies it. The error wraps
// fault.ErrUnsupported if the file cannot be mapped: it may still be readable.
func (h *Header) loadMap(m storage.Mapper, unread bool) (*Filter, error) {
	file, unmap, err := m.Map()
	if err != nil {
		return nil, fmt.Errorf("%w: map: %w", fault.ErrUnsupported, err)
	}
	load := h.LoadMapped
	if unread {
		load = h.LoadUnread
	}
	f, err := load(file, unmap)
	if err != nil {
		return nil, errors.Join(err, unmap())
	}
	return f, nil
}

// Save writes a filter file and returns its size. If the storage has users, only
// the owner may read the file, because an exact filter contains the IDs themselves.
//
// Unless opts.Replace is set, Save leaves an existing file with that name alone. If
// that file holds the same filter and is not compressed although Uncompressed is
// set, Save returns its size and no error, because two workers may do the same
// work. Otherwise the error wraps [ErrExists]. Save removes temporary files of
// earlier attempts whose processes have ended.
func Save(ctx context.Context, store storage.Storage, name string, f *Filter, opts Options) (size int64, err error) {
	stopped.Needs(ctx, "codec.Save")
	if err := given(store, name); err != nil {
		return 0, err
	}
	release, err := f.KeepOpen()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	defer release()
	if f.held == nil {
		return 0, fmt.Errorf("%s: %w", name, errNoPayload())
	}
	return (*Other)(nil).saveAs(ctx, store, name, opts, func(w io.Writer) (int64, error) { return encodeHeld(w, f, opts) }, f.digest)
}

// saveAs is Save, given how to write the file and its digest.
func (o *Other) saveAs(ctx context.Context, store storage.Storage, name string, opts Options, encode func(io.Writer) (int64, error), digest func() ([32]byte, error)) (size int64, err error) {
	if err := objects.Sweep(ctx, store, name); err != nil {
		return 0, err
	}
	sink, err := store.Create(ctx, name, storage.CreateOptions{Private: true})
	if err != nil {
		return 0, err
	}
	defer faults.Join(&err, sink.Abort)
	if size, err = encode(until{ctx, sink}); err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	if err := stopped.Err(ctx); err != nil {
		return 0, err
	}
	err = sink.Commit(opts.Replace)
	if opts.Replace || !errors.Is(err, fs.ErrExist) {
		return size, err
	}
	want, err := digest()
	if err != nil {
		return 0, err
	}
	same, err := o.Holds(ctx, store, name, func(h *Header) bool {
		size = h.FileBytes
		return h.Digest() == want && (h.Contiguous || !opts.Uncompressed)
	})
	if err == nil && !same {
		err = faults.Errorf("%s: %w, but does not come from these inputs and options ({Force} replaces it)", name, ErrExists)
	}
	if err != nil {
		return 0, err
	}
	return size, nil
}

// until is a writer that fails once its context has ended, because writing a large
// file takes a while.
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

// Holds reports whether a file is an undamaged filter whose header want accepts; a nil want
// accepts all. It reads the whole file without keeping the payload. A damaged file, or one that
// is not of the kind o, nil for a filter, gives false; a file that cannot be read is an error.
func (o *Other) Holds(ctx context.Context, store storage.Source, name string, want func(*Header) bool) (ok bool, err error) {
	stopped.Needs(ctx, "filters.Holds")
	if err := given(store, name); err != nil {
		return false, err
	}
	src, err := store.Open(ctx, storage.Object{Name: name})
	if err != nil {
		return false, err
	}
	defer faults.Join(&err, src.Close)
	h, err := o.DecodeHeader(src, src.Object().Size, name)
	if err == nil && (want == nil || want(h)) {
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
