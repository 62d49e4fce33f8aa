// Package codec has the filter as one value, and its file.
//
// A [Filter] is a Bloom filter or an exact set, together with what its file says about it. It
// answers which keys may be members ([Filter.Probe], [Filter.Contains]) without the caller
// having to know its kind. [Load] and [Save] read and write its file in a [storage.Storage],
// [Filter.WriteTo] and [Decode] with a writer and a reader; FORMAT.md specifies the bytes.
//
// Nothing in a file is trusted before it is checked: against a checksum, against the size of
// the file and, before the payload is allocated, against [Limits]. Errors about the bytes of
// a file are *fault.Error values, which name the file, what is wrong, what was wanted and
// found, and what to do. They wrap fault.ErrCorrupt, [ErrVersion], [ErrLimit] or
// fault.ErrUnsupported. A failed read is reported as it is, with the file's name.
//
// In addition to the filter, reading and writing need a few dozen MiB, however large it is,
// and up to eight goroutines, which have ended when the function returns. A filter may be
// asked by many goroutines at once, and encoded and closed at the same time.
package codec

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/bloomjoin/bloomjoin/codec/bloom"
	"github.com/bloomjoin/bloomjoin/codec/exact"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/key"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Sentinels, for errors.Is.
var (
	// ErrVersion: the file needs a newer reader. It wraps fault.ErrUnsupported.
	ErrVersion = filters.ErrVersion
	// ErrLimit: the payload would take more memory than the caller allows.
	ErrLimit = filters.ErrLimit
	// ErrInvalid: the filter breaks a rule of the format and cannot be written.
	ErrInvalid = filters.ErrInvalid
)

// Kind is what a filter's payload is, or is to be. The value is part of the format: merging
// and sealing come to the same decision everywhere.
type Kind uint8

// The kinds.
const (
	KindAuto  = Kind(filters.KindAuto)  // of a build: the smaller one
	KindBloom = Kind(filters.KindBloom) // bits of a Bloom filter
	KindExact = Kind(filters.KindExact) // an exact set of integers
	// KindCounting is a Bloom filter with a counter of four bits in place of each bit, so that
	// keys can be removed from it (Fan et al., "Summary Cache", 2000).
	KindCounting = Kind(filters.KindCounting)
)

// String returns the name used on the command line and in reports.
func (k Kind) String() string { return filters.Kind(k).String() }

// Limits limits what a reader accepts from a file.
type Limits struct {
	// MaxBytes limits the payload in memory, in bytes; 0: 64 GiB, enough for 40
	// billion keys, or the address space of a 32-bit machine. A larger payload is refused with [ErrLimit] before it is
	// allocated.
	MaxBytes uint64
	// Counters loads the counters of a counting filter beside its bits, in five times their
	// memory. Without them it can be queried, but neither changed nor written.
	Counters bool
	// Unread makes Load return a mapped filter at once, whatever its size. Each MiB of it is
	// verified when a key is first looked up there, and a damaged one is an error of that
	// call; Bloom and what needs all bits verify the rest first.
	Unread bool
}

func (l Limits) in() filters.Limits {
	return filters.Limits{MaxBytes: l.MaxBytes, Counters: l.Counters, Unread: l.Unread}
}

// Options says how a filter is written. The content does not depend on them.
type Options struct {
	// Uncompressed stores every chunk raw: the payload is contiguous and starts on a page
	// boundary, so that processes can share one mapped copy.
	Uncompressed bool
	// Replace lets Save replace a file of the same name, whatever it holds.
	Replace bool
}

// Load reads and verifies a filter file. If the storage supports it, an uncompressed Bloom
// filter is mapped rather than read; all processes on a machine then share its memory. If
// lim sets a limit, an exact filter may use the rest of it for a faster index.
//
// The caller must close the filter, and must do so before publishing results that depend on
// it: an error of [Filter.Close] means that the file changed in the meantime.
func Load(ctx context.Context, store storage.Source, name string, lim Limits) (*Filter, error) {
	f, err := filters.Load(ctx, store, name, lim.in())
	return (*Filter)(f), err
}

// Save writes a filter file and returns its size. If the storage has users, only the owner
// may read the file, because an exact filter contains the IDs themselves.
//
// Unless opts.Replace is set, Save leaves an existing file with that name alone. If that file
// holds the same filter and is not compressed although Uncompressed is set, Save returns its
// size and no error, because two workers may do the same work. Otherwise the error wraps
// fs.ErrExist. Save removes temporary files of earlier attempts whose processes have ended.
func Save(ctx context.Context, store storage.Storage, name string, f *Filter, opts Options) (size int64, err error) {
	return filters.Save(ctx, store, name, f.in(), filters.Options(opts))
}

// Decode reads a whole filter from the size bytes of r, and verifies all checksums. name is
// for errors. Memory holds the payload, less than 32 MiB in addition and, while an exact set
// is read, its bytes.
func Decode(r io.ReaderAt, size int64, name string, lim Limits) (*Filter, error) {
	f, err := filters.Decode(r, size, name, lim.in())
	return (*Filter)(f), err
}

// Filter is a filter with everything that its file says. Programs get one from [Load],
// [Decode] or package filterbuild. Its methods may be called concurrently, except
// UnmarshalBinary.
type Filter filters.Filter

func (f *Filter) in() *filters.Filter { return (*filters.Filter)(f) }

// Kind returns what the payload is, or 0 if it is not known.
func (f *Filter) Kind() Kind { return Kind(f.in().Kind()) }

// KeyNames returns the names of the key columns.
func (f *Filter) KeyNames() []string { return f.in().KeyNames() }

// KeyClasses returns the classes of the key columns, which FORMAT.md lists: "integer",
// "bytes", ….
func (f *Filter) KeyClasses() []string { return f.in().KeyClasses() }

// Normalize returns the rules that are applied to strings: some of "trim", "lower" and
// one of "uuid", "url" and "url-host", in this order, separated by commas; empty: none.
func (f *Filter) Normalize() string { return f.in().Facts().Rule }

// Added returns the number of keys that were added, duplicates counted; of a counting filter,
// those that are in.
func (f *Filter) Added() uint64 { return f.in().Facts().Keys }

// Sealed reports whether the filter is complete. One that is not is part of a build, and
// can be merged and saved, not asked.
func (f *Filter) Sealed() bool { return f.in().Sealed() }

// Probe appends to rows the rows of v that may be members, in ascending order, and returns
// it. All others are certainly not in the set; for an exact filter, all that are returned
// certainly are. Strings are normalized by the filter's rules, and numbers are compared by
// value, whatever their types. A row with a NULL, or with a value that has no equal in the
// filter's class, is not a member.
//
// Values of another class or with another number of columns than the key are an error, and
// so is a filter that is not sealed.
func (f *Filter) Probe(v key.Values, rows []uint32) ([]uint32, error) {
	return f.in().Probe(keys.Values(v), rows)
}

// Contains sets mask[i] to whether row i of v may be a member according to [Filter.Probe]. It
// returns mask with one entry for each row of v, reallocated if its capacity is too small.
func (f *Filter) Contains(v key.Values, mask []bool) ([]bool, error) {
	return f.in().Contains(keys.Values(v), mask)
}

// ContainsInt64 reports whether one integer may be a member, as Contains does for many, which
// takes less time for each.
func (f *Filter) ContainsInt64(v int64) (bool, error) { return f.has(key.Int64s([]int64{v})) }

// ContainsString is ContainsInt64 for a string.
func (f *Filter) ContainsString(v string) (bool, error) { return f.has(key.Strings([]string{v})) }

func (f *Filter) has(v key.Values) (bool, error) {
	var row [1]uint32
	rows, err := f.Probe(v, row[:0])
	return len(rows) > 0, err
}

// WriteTo writes the file of the filter, compressed, and returns its size, or the number of
// bytes written before an error. The same filter gives the same bytes, whatever the number
// of processors. In addition to the filter, it needs less than 64 MiB (about 6 MiB for each
// of at most 8 goroutines) and, for an exact set, its bytes.
func (f *Filter) WriteTo(w io.Writer) (int64, error) {
	return filters.Encode(w, f.in(), filters.Options{})
}

// MarshalBinary returns the file of the filter, compressed.
func (f *Filter) MarshalBinary() ([]byte, error) {
	var b bytes.Buffer
	if _, err := f.WriteTo(&b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// UnmarshalBinary sets a new filter to that of a file, within the default of [Limits]: bytes
// that are not trusted are better left to [Decode]. A filter that is nil, or not new, is an
// error that wraps [ErrInvalid].
func (f *Filter) UnmarshalBinary(file []byte) error {
	if f == nil || f.Kind() != 0 {
		return fmt.Errorf("%w: UnmarshalBinary needs a new Filter", ErrInvalid)
	}
	g, err := Decode(bytes.NewReader(file), int64(len(file)), "the bytes of a filter", Limits{Counters: true})
	if err != nil {
		return err
	}
	*f = *g
	return nil
}

// Count returns the number of distinct keys: the number of members of an exact set, else an
// estimate from the bits, which is +Inf if they are too full or are in a mapped file that
// was truncated; NaN without a payload, as after Close of a mapped one.
func (f *Filter) Count() bloom.Cardinality { return bloom.Cardinality(f.in().Count()) }

// FPR returns the predicted false-positive rate: that of the Bloom filter's bits, 0 for an
// exact set, NaN without a payload, as after Close of a mapped one.
func (f *Filter) FPR() float64 { return f.in().FPR() }

// Bytes returns the size of the payload in memory, for an exact set with its index, for
// counters with their bits.
func (f *Filter) Bytes() uint64 { return f.in().Bytes() }

// Digest returns the identity of the filter. Two filters have the same digest exactly if
// their files say the same, including the payload, however it is compressed. It protects
// against mistakes, not against a second filter that is made for the same digest.
//
// The first call reads the payload, unless the filter was loaded from a file or written to
// one before.
func (f *Filter) Digest() ([32]byte, error) { return f.in().Digest() }

// Bloom returns the bits of a Bloom filter or of a counting one, else nil. The hashes are those that FORMAT.md
// specifies. If the filter is loaded from a file, the payload must not be used once Close has
// been called.
func (f *Filter) Bloom() *bloom.Filter { return (*bloom.Filter)(f.in().Bloom()) }

// Exact returns the payload of an exact filter, else nil.
func (f *Filter) Exact() *exact.Set { return (*exact.Set)(f.in().Exact()) }

// Close releases a mapped file. An error means that the file has changed while it was in use,
// so that the answers of the filter cannot be trusted, or that this is not known yet.
//
// Close may be called while other goroutines use the filter, and never waits for them. Calls
// that are at work finish with right answers, and the last of them releases the file; Close
// then returns an error that wraps storage.ErrAgain. Call it again once they have ended,
// before their answers are published, to learn whether the file has changed. Calls that
// begin after Close return an error that wraps fs.ErrClosed, and methods without an error
// answer as those of a filter without a payload do.
//
// For filters that are not mapped or nil, and once it has returned anything else than an
// error that wraps storage.ErrAgain, Close does nothing.
func (f *Filter) Close() error { return f.in().Close() }
