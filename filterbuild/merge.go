package filterbuild

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/internal/fault"
	"github.com/bloomjoin/bloomjoin/partition"
)

// Read reads one filter file whole and verifies it. A Bloom filter that is
// stored uncompressed is mapped instead, where the store can: all processes of
// a machine share its memory then. The caller calls Close on the filter when
// it is done with it, and before it lets anyone see what it made with it: an
// error of Close says that the file changed meanwhile.
func Read(ctx context.Context, store partition.Store, name string, lim codec.Limits) (*codec.Filter, error) {
	return read(ctx, store, name, lim, true)
}

// Load is Read into memory of its own in any case, for what works on all of a
// filter rather than probes it.
func Load(ctx context.Context, store partition.Store, name string, lim codec.Limits) (*codec.Filter, error) {
	return read(ctx, store, name, lim, false)
}

func read(ctx context.Context, store partition.Store, name string, lim codec.Limits, mapped bool) (f *codec.Filter, err error) {
	src, err := store.Open(ctx, name)
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
	h, err := codec.DecodeHeader(src, src.Size(), name)
	if err != nil {
		return nil, err
	}
	if m, ok := src.(partition.Mapper); ok && mapped && h.Mappable() {
		f, err := readMapped(h, m, lim)
		if !errors.Is(err, fault.ErrUnsupported) {
			return f, err
		}
	}
	return h.Load(lim)
}

// readMapped maps a file and verifies it. The error is of the unsupported kind
// where it cannot be mapped, for whatever reason: it may still be readable.
func readMapped(h *codec.Header, m partition.Mapper, lim codec.Limits) (*codec.Filter, error) {
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
// the same; else the error wraps [partition.ErrExists].
func Write(ctx context.Context, store partition.Store, name string, f *codec.Filter, opts codec.Options, replace bool) (size int64, err error) {
	sink, err := store.Create(ctx, name, true)
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
		return 0, fmt.Errorf("%s: %w, of another run (--force replaces it)", name, partition.ErrExists)
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
func Holds(ctx context.Context, store partition.Store, name string, want func(*codec.Header) bool) (ok bool, err error) {
	src, err := store.Open(ctx, name)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	h, err := codec.DecodeHeader(src, src.Size(), name)
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

// part is an opened partial filter file.
type part struct {
	name string
	src  partition.Source
	head *codec.Header
}

// opensAtOnce bounds how many files are being opened: each takes a few reads,
// which on network storage are all waiting.
const opensAtOnce = 16

// openParts opens filter files without reading their payloads. After an error
// those that were opened are still to be closed.
func openParts(ctx context.Context, store partition.Store, names []string) ([]part, error) {
	parts := make([]part, len(names))
	var group errgroup.Group // without a context of its own: a source may live with the one it was opened with
	group.SetLimit(opensAtOnce)
	for i, name := range names {
		group.Go(func() (err error) {
			p := &parts[i]
			p.name = name
			if p.src, err = store.Open(ctx, name); err == nil {
				p.head, err = codec.DecodeHeader(p.src, p.src.Size(), name)
			}
			return err
		})
	}
	return parts, group.Wait()
}

func closeParts(parts []part) error {
	var errs []error
	for _, p := range parts {
		if p.src != nil {
			errs = append(errs, p.src.Close())
		}
	}
	return errors.Join(errs...)
}

// Merge OR-merges partial filter files of one build, given in any order, into
// the sealed filter, or, if open, into a larger partial one. Files of other
// builds, a shard that comes twice, and, when sealing, shards that are missing
// are refused. Memory holds one filter, however many files there are, and a
// second one while an exact part is merged into a Bloom filter.
func Merge(ctx context.Context, store partition.Store, names []string, open bool, lim codec.Limits) (f *codec.Filter, err error) {
	parts, err := openParts(ctx, store, names)
	defer func() { err = errors.Join(err, closeParts(parts)) }()
	if err != nil {
		return nil, err
	}
	held, err := agree(parts, open)
	if err != nil {
		return nil, err
	}
	first := parts[0].head.Filter
	var all *partial
	for rest := parts; len(rest) > 0; {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		if all, rest, err = all.take(ctx, rest, lim); err != nil {
			return nil, err
		}
	}
	if !open {
		return all.seal(first.BuildID)
	}
	return all.open(first.BuildID, codec.Partial{Of: first.Partial.Of, Held: held}), nil
}

// agree checks that the parts are of one build and what they hold together.
func agree(parts []part, open bool) (held []uint32, err error) {
	if len(parts) == 0 {
		return nil, errors.New("no filter to merge")
	}
	first := parts[0].head.Filter
	owner := map[uint32]string{}
	for _, p := range parts {
		f := p.head.Filter
		at := fault.At{File: p.name}
		if f.Sealed() {
			return nil, fault.Mismatch(at, "filter", "a partial filter", "a sealed one").
				WithHint("sealed filters are combined with --union or --intersect")
		}
		if f.BuildID != first.BuildID || f.Partial.Of != first.Partial.Of {
			return nil, fault.Mismatch(at, "build", buildName(first)+" as in "+parts[0].name, buildName(f)).
				WithHint("merge only partial filters that were built from the same inputs with the same options")
		}
		for _, s := range f.Partial.Held {
			if other, ok := owner[s]; ok {
				return nil, fault.Mismatch(at, "shards", "each shard once", fmt.Sprintf("shard %d/%d again, which is in %s", s, first.Partial.Of, other))
			}
			owner[s] = p.name
			held = append(held, s)
		}
	}
	slices.Sort(held)
	if missing := int(first.Partial.Of) - len(held); missing > 0 && !open {
		return nil, fault.Mismatch(fault.At{}, "shards", fmt.Sprintf("all %d", first.Partial.Of), fmt.Sprintf("%d, without %s", len(held), gaps(held, first.Partial.Of))).
			WithHint("merge the missing partial filters too, or say --partial for a larger partial filter")
	}
	return held, nil
}

func buildName(f *codec.Filter) string {
	return fmt.Sprintf("%x of %d shards", f.BuildID[:6], f.Partial.Of)
}

// gaps lists the numbers below n that are not in held, as ranges.
func gaps(held []uint32, n uint32) string {
	out, next := "", uint32(0)
	put := func(end uint32) { // missing: next up to end, exclusive
		if next >= end {
			return
		}
		if out != "" {
			out += ","
		}
		if out += fmt.Sprint(next); end-next > 1 {
			out += fmt.Sprintf("-%d", end-1)
		}
	}
	for _, s := range held {
		put(s)
		next = s + 1
	}
	put(n)
	return out
}

// take reads the keys of the first part into p, which is nil before it, or of
// as many Bloom filters as stand there if p is one. It returns the parts that
// are left.
func (p *partial) take(ctx context.Context, parts []part, lim codec.Limits) (*partial, []part, error) {
	if p != nil && p.bits != nil {
		var blooms []*codec.Header
		for _, q := range parts {
			if q.head.Filter.Kind() != codec.KindBloom {
				break
			}
			blooms = append(blooms, q.head)
			p.keys += q.head.Filter.Keys
			p.sketch(registersOf(q.head.Filter))
			p.stretch(boundsIn(q.head.Filter))
		}
		if len(blooms) > 0 {
			return p, parts[len(blooms):], codec.OrInto(ctx, p.bits, blooms...)
		}
	}
	q, rest := parts[0], parts[1:]
	f, err := q.head.Load(lim)
	if err != nil {
		return nil, nil, err
	}
	r := &partial{
		spec: Spec{Names: f.KeyNames(), Classes: f.KeyClasses(), Hash: f.Params.Hash, FPR: f.FPRAsked, Want: f.Want,
			Capacity: f.Capacity.Keys, Room: f.Capacity != (codec.Capacity{})},
		fpr:  f.FPRAsked, params: f.Params, keys: f.Keys, set: f.Exact(), bits: f.Bloom(), registers: registersOf(f), bounds: boundsIn(f),
	}
	if p == nil {
		return r, rest, r.settle()
	}
	if err := p.merge(r); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", q.name, err)
	}
	return p, rest, nil
}

// Count returns what can be said of the keys of a filter that was not built
// here.
func Count(f *codec.Filter) Report {
	if s := f.Exact(); s != nil {
		return Report{Keys: f.Keys, Distinct: s.Len()}
	}
	return Report{Keys: f.Keys, Distinct: distinct(f.Bloom(), f.Keys), Estimated: true}
}
