// Package codec reads and writes the file of a filter.
//
// FORMAT.md specifies the bytes. In short:
//
//	prologue   magic, format version, minimum reader version, header size, checksum
//	header     typed sections, each with its length, a critical flag and a checksum
//	payload    the set in chunks of 1 MiB, each raw on a page boundary, or zstd
//	chunks     one section more: stored size, coding and checksum of every chunk
//	trailer    the file's size and a checksum over all
//
// A file is opened with [DecodeHeader], which reads all but the payload, or
// read whole with [Decode]. Nothing a file says is believed before it is
// checked: against a checksum, against the file's own size and, before the
// payload is allocated, against [Limits].
//
// # Errors
//
// Errors about a file's bytes are *fault.Error values: they name the file,
// what is wrong, what was wanted and found, and what to do. They wrap
// [fault.ErrCorrupt], [ErrVersion], [ErrLimit] or fault.ErrUnsupported. A failing
// read is reported as it is, with the file's name.
//
// # Memory
//
// Beside the filter itself, reading and writing need a few dozen MiB, however
// large it is: chunks go through a small ring of buffers. Files are merged
// without a second filter by [OrInto]. A Bloom filter whose file is not
// compressed can be used where it lies, by [Header.LoadMapped].
//
// # Concurrency
//
// Functions here may run at the same time on different filters. They use up
// to eight goroutines, none of which is left when they return. Encode and
// Digest only read their filter.
package codec

import (
	"fmt"

	"github.com/bloomjoin/bloomjoin/bloom"
	"github.com/bloomjoin/bloomjoin/exact"
)

// Kind says what a filter's payload is. The value is part of the format.
type Kind uint8

const (
	KindBloom Kind = 1 // bits of a Bloom filter
	KindExact Kind = 2 // an exact set of integers
)

// String returns the name used in reports.
func (k Kind) String() string {
	switch k {
	case KindBloom:
		return "bloom"
	case KindExact:
		return "exact"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Want is the kind that the builder of a filter was told to make. Seal needs
// it to come to one decision whoever seals. The value is part of the format.
type Want uint8

const (
	WantAuto  Want = 0 // the smaller one
	WantBloom Want = 1
	WantExact Want = 2
)

// String returns the name used on the command line.
func (w Want) String() string {
	switch w {
	case WantAuto:
		return "auto"
	case WantBloom:
		return "bloom"
	case WantExact:
		return "exact"
	}
	return fmt.Sprintf("want %d", uint8(w))
}

// KeyColumn is one part of the key.
type KeyColumn struct {
	Name  string // as the data names it; a dotted path, or empty where the data has no name
	Class string // one of the classes in FORMAT.md, such as "integer" or "fixed[16]"
	// Min and Max are inclusive bounds of the non-NULL, non-NaN values, in the
	// class's form as a part of a composite key: an integer takes 9 bytes, the
	// last of which is 1 if it is negative. Both are nil when left out.
	Min, Max []byte
	// HasNaN says that NaN is among the keys, where Class is "float". It means
	// nothing unless bounds are given: without them nothing is known.
	HasNaN bool
}

// Partial says which part of a filter this is.
type Partial struct {
	Of   uint32   // number of shards of the build, 1 to MaxShards
	Held []uint32 // shards in this filter, ascending, from 0
}

// Capacity says that a filter has room for further keys: until so many distinct
// ones are in, bits of that size let others through at the rate asked for.
type Capacity struct {
	Keys   uint64 // distinct keys, at least 1
	Blocks uint64 // those of Params, or, in a sealed exact filter, of the Bloom filter that a larger union turns into
}

// MaxShards bounds the number of shards of a build.
const MaxShards = 1 << 20

// RegisterCount is the number of registers of a HyperLogLog sketch.
const RegisterCount = 1 << 14

// MaxRegister is the largest value of a register.
const MaxRegister = 64 - 14 + 1

// Filter is a filter with all that its file says. The payload is set with
// SetBloom or SetExact.
type Filter struct {
	Key []KeyColumn
	// NormalForm names the rules by which keys became bytes, such as "1".
	// Filters of different rules have different hashes.
	NormalForm string
	// Rule says how strings were made alike before that: some of "trim",
	// "lower" and "uuid", in this order, separated by commas; empty: they were
	// taken as they are. Filters of different rules have different hashes.
	Rule string
	// Params are those of the Bloom payload; for an exact partial, those of
	// the Bloom filter that it may turn into; for a sealed exact filter Blocks
	// is 0.
	Params   bloom.Params
	Keys     uint64  // non-NULL keys added, duplicates counted
	FPRAsked float64 // between 0 and 1
	Want     Want
	// BuildID tells one build from another. Zero if there is none; a partial
	// has one.
	BuildID [32]byte
	// Registers are RegisterCount dense HyperLogLog registers over the hashes
	// of Params.Hash, each at most MaxRegister, or nil.
	Registers []byte
	Partial   *Partial   // nil when sealed
	Parents   [][32]byte // digests of the filters that a set operation made this from
	Capacity  Capacity   // zero: the size is for the keys that are in

	kind Kind
	held *payload // nil: of a header alone

	unmap func() error // gives back the file that a payload was mapped from; nil: none
}

// SetBloom makes b the payload and takes over its parameters. b must not change
// from then on.
func (f *Filter) SetBloom(b *bloom.Filter) {
	f.kind, f.held = KindBloom, &payload{bits: b}
	f.Params = b.Params()
}

// SetExact makes s the payload, which must not change from then on. Params stay
// as they are; a sealed filter needs Params.Blocks to be 0.
func (f *Filter) SetExact(s *exact.Set) {
	f.kind, f.held = KindExact, &payload{set: s}
}

// Header returns a copy of what the filter's file says before the payload.
// [Filter.Kind] is known, and nothing can be asked.
func (f *Filter) Header() *Filter {
	h := f.clone()
	h.held, h.unmap = nil, nil
	return h
}

// Kind returns what the payload is, or 0 if it is not known.
func (f *Filter) Kind() Kind { return f.kind }

// Bloom returns the payload of a Bloom filter, else nil.
func (f *Filter) Bloom() *bloom.Filter {
	if f.held == nil {
		return nil
	}
	return f.held.bits
}

// Exact returns the payload of an exact filter, else nil.
func (f *Filter) Exact() *exact.Set {
	if f.held == nil {
		return nil
	}
	return f.held.set
}

// Sealed reports whether the filter is complete. Only a sealed filter may be
// probed.
func (f *Filter) Sealed() bool { return f.Partial == nil }

// KeyNames returns the names of the key columns.
func (f *Filter) KeyNames() []string {
	names := make([]string, len(f.Key))
	for i, k := range f.Key {
		names[i] = k.Name
	}
	return names
}

// KeyClasses returns the classes of the key columns.
func (f *Filter) KeyClasses() []string {
	classes := make([]string, len(f.Key))
	for i, k := range f.Key {
		classes[i] = k.Class
	}
	return classes
}

// Normal returns the name of the rules by which keys became bytes: NormalForm,
// and behind a plus Rule, if there is one. Only keys that became bytes by the
// same may be probed.
func (f *Filter) Normal() string {
	if f.Rule == "" {
		return f.NormalForm
	}
	return f.NormalForm + "+" + f.Rule
}
