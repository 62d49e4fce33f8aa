package keyindex

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/zeebo/xxh3"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/inputs"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Index is an open index. It holds the directory; filters are read when they are asked. Its
// methods may be called from many goroutines. The caller closes it.
type Index struct {
	Facts
	name    string
	store   storage.Source
	r       storage.Reader
	filters int64 // where they begin
	end     int64 // where they end, from there
	entries []entry
}

// Open opens an index and verifies its header and directory. The error wraps
// [io/fs.ErrNotExist] if there is none.
func Open(ctx context.Context, src storage.Source, name string) (*Index, error) {
	r, err := src.Open(ctx, storage.Object{Name: name})
	if err != nil {
		return nil, err
	}
	x := &Index{name: name, store: src, r: r}
	if err := x.front(); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return x, nil
}

// Close closes the index.
func (x *Index) Close() error { return x.r.Close() }

// Size returns the size of the index in bytes.
func (x *Index) Size() int64 { return x.filters + x.end }

// corrupt returns the error of an index that breaks the rules of its format.
func (x *Index) corrupt(format string, args ...any) error {
	return faults.Corrupt(fault.At{File: x.name}, format, args...).WithHint("make it again, with bloomjoin inputs {Force} {Index COL}")
}

// front reads what stands before the filters.
func (x *Index) front() error {
	size := x.r.Object().Size
	b := make([]byte, min(size, 256<<10))
	if err := x.read(b, 0); err != nil {
		return err
	}
	if !Is(b) || int64(len(b)) < preludeBytes {
		return x.corrupt("want an index of a list of inputs, got another file, or a part of one")
	}
	if v := binary.LittleEndian.Uint32(b[len(magic):]); v != version {
		return faults.Wanted(faults.Unsupported(fault.At{File: x.name}, "its format"), fmt.Sprintf("version %d", version), fmt.Sprintf("version %d", v))
	}
	var sizes [3]int64
	left := size - preludeBytes - sumBytes
	for i := range sizes {
		sizes[i] = int64(binary.LittleEndian.Uint64(b[len(magic)+4+8*i:]))
		if sizes[i] < 0 || sizes[i] > left {
			return x.corrupt("want at most %d more bytes, got parts of %d: it is cut, or damaged", left, sizes[i])
		}
		left -= sizes[i]
	}
	if left != 0 || sizes[0] > maxHeader {
		return x.corrupt("want %d bytes, got %d", size-left, size)
	}
	x.filters, x.end = size-sizes[2], sizes[2]
	if n := int64(len(b)); n < x.filters {
		b = append(b, make([]byte, x.filters-n)...)
		if err := x.read(b[n:], n); err != nil {
			return err
		}
	}
	b = b[:x.filters]
	covered := b[:x.filters-sumBytes]
	if want, got := binary.LittleEndian.Uint64(b[len(covered):]), xxh3.Hash(covered); want != got {
		return x.corrupt("the checksum of its directory: want %016x, got %016x", want, got)
	}
	header, directory := covered[preludeBytes:preludeBytes+sizes[0]], covered[preludeBytes+sizes[0]:]
	d := json.NewDecoder(bytes.NewReader(header))
	d.DisallowUnknownFields()
	if err := d.Decode(&x.Facts); err != nil || d.InputOffset() != int64(len(header)) {
		return x.corrupt("its header cannot be read")
	}
	if err := x.check(x.name); err != nil {
		return err
	}
	return x.directory(directory)
}

// read reads exactly len(b) bytes.
func (x *Index) read(b []byte, at int64) error {
	n, err := x.r.ReadAt(b, at)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return x.corrupt("want %d bytes at offset %d, got %d", len(b), at, n)
	}
	return fmt.Errorf("%s: %w", x.name, err)
}

// directory parses the directory.
func (x *Index) directory(b []byte) error {
	if x.Inputs > len(b)/8 {
		return x.corrupt("want a directory of %d inputs, got one of %d bytes", x.Inputs, len(b))
	}
	x.entries = make([]entry, 0, x.Inputs)
	at := int64(0)
	next := func() (u Unit) { // the caller has compared its size
		u = Unit{at, binary.LittleEndian.Uint32(b)}
		b, at = b[4:], at+u.bytes()
		return u
	}
	for i := range x.Inputs {
		if len(b) < 8 {
			return x.corrupt("want %d inputs in its directory, got %d", x.Inputs, i)
		}
		n, own := int(binary.LittleEndian.Uint32(b)), 8
		b = b[4:]
		e := entry{all: next()}
		if at > x.end { // before sums overflow
			return x.corrupt("want filters of %d bytes, got more for input %d", x.end, i)
		}
		if x.RowGroups && n > 1 {
			own += 4
		}
		if n > len(b)/own {
			return x.corrupt("want the %d row groups of input %d, got %d bytes", n, i, len(b))
		}
		for range n {
			e.nulls = append(e.nulls, int64(binary.LittleEndian.Uint64(b)))
			if b = b[8:]; own > 8 {
				e.groups = append(e.groups, next())
			}
			if e.nulls[len(e.nulls)-1] < 0 || at > x.end {
				return x.corrupt("want filters of %d bytes, got more for input %d", x.end, i)
			}
		}
		x.entries = append(x.entries, e)
	}
	if len(b) > 0 || at != x.end {
		return x.corrupt("want filters of %d bytes and no more inputs, got %d and %d bytes of directory", x.end, at, len(b))
	}
	return nil
}

// Of returns an error unless the index was made for this state of the list, from which no
// input has been left out.
func (x *Index) Of(list *inputs.List) error {
	digest := list.Digest()
	if want := hex.EncodeToString(digest[:]); want != x.List {
		e := faults.Mismatch(fault.At{File: x.name}, "its list of inputs", "digest "+want[:16]+"…", "digest "+x.List[:16]+"…").
			WithHint("list the inputs again, which brings both up to date")
		return fmt.Errorf("%w%w", e, quiet.Error{Err: inputs.ErrOutdated})
	}
	if list.Len() != x.Inputs {
		return x.corrupt("want %d inputs, got %d", list.Len(), x.Inputs)
	}
	return nil
}

// File returns the filter of an input, by its number in the list.
func (x *Index) File(input int) Unit { return x.entries[input].all }

// Group returns the filter of a row group of an input: the input's, if the row group has none
// of its own. The input must agree with the index.
func (x *Index) Group(input, group int) Unit {
	if e := &x.entries[input]; e.groups != nil {
		return e.groups[group]
	}
	return x.entries[input].all
}

// Agrees returns an error unless an input of the index's list has as many row groups as here.
func (x *Index) Agrees(in *inputs.Input) error {
	n := in.Number()
	if n >= len(x.entries) {
		return x.corrupt("want an input of number %d, got %d inputs", n, len(x.entries))
	}
	if want, got := len(in.Groups), len(x.entries[n].nulls); want != got {
		return x.corrupt("row groups of %s: want %d, got %d", in.Name, want, got)
	}
	return nil
}

// Nulls returns how many rows of some row groups of an input, which must agree with the
// index, have no key.
func (x *Index) Nulls(input, lo, hi int) (n int64) {
	for _, nulls := range x.entries[input].nulls[lo:hi] {
		n += nulls
	}
	return n
}

// Check reads all of the index, and verifies it.
func (x *Index) Check(ctx context.Context) error {
	for i := range x.entries {
		e := &x.entries[i]
		for _, u := range append([]Unit{e.all}, e.groups...) {
			if err := x.blocks(ctx, u, func([]byte) error { return nil }); err != nil {
				return err
			}
		}
	}
	return objects.Changed(x.r)
}

// blocks calls fn with the verified blocks of a filter, in order.
func (x *Index) blocks(ctx context.Context, u Unit, fn func(blocks []byte) error) error {
	buf := make([]byte, min(u.bytes(), chunkBlocks*blockBytes+sumBytes))
	for c := uint64(0); c*chunkBlocks < uint64(u.blocks); c++ {
		if err := stopped.Err(ctx); err != nil {
			return err
		}
		at, size := u.chunk(c)
		if err := x.read(buf[:size+sumBytes], x.filters+at); err != nil {
			return err
		}
		if err := x.verify(buf[:size+sumBytes], at); err != nil {
			return err
		}
		if err := fn(buf[:size]); err != nil {
			return err
		}
	}
	return nil
}

// verify compares blocks with the checksum that follows them.
func (x *Index) verify(b []byte, at int64) error {
	blocks, sum := b[:len(b)-sumBytes], b[len(b)-sumBytes:]
	if want, got := binary.LittleEndian.Uint64(sum), sumOf(blocks, at); want != got {
		return x.corrupt("the checksum of the filter at offset %d: want %016x, got %016x", x.filters+at, want, got)
	}
	return nil
}
