// Package codec reads and writes filter files, and answers whether keys may be in a
// filter.
//
// FORMAT.md specifies the bytes. In short:
//
//	prologue   magic, format version, minimum reader version, header size, checksum
//	header     typed sections, each with its length, a critical flag and a checksum
//	payload    the set in chunks of 1 MiB, each raw on a page boundary, or zstd
//	chunks     one more section: stored size, coding and checksum of every chunk
//	trailer    the file's size and a checksum over all
//
// [Load] and [Save] read and write a file in a storage. [DecodeHeader] reads
// everything of a file but the payload; [Decode] reads all of it. Nothing in a file
// is trusted before it is checked: against a checksum, against the file's own size
// and, before the payload is allocated, against [Limits].
//
// # Errors
//
// Errors about a file's bytes are *fault.Error values: they name the file, what is
// wrong, what was wanted and found, and what to do. They wrap [fault.ErrCorrupt],
// [ErrVersion], [ErrLimit] or fault.ErrUnsupported. A failed read is returned with
// the file's name.
//
// # Memory
//
// In addition to the filter itself, reading and writing need a few dozen MiB,
// whatever its size: chunks pass through a small ring of buffers. [OrInto] merges
// files without a second filter. [Header.LoadMapped] uses an uncompressed Bloom
// filter in place.
//
// # Concurrency
//
// Functions may be called concurrently for different filters. They use up to eight
// goroutines, all of which have ended when they return. Encode and Digest only read
// their filter, and any number of goroutines may probe one filter.
package codec

import (
	"fmt"

	"github.com/bloomjoin/bloomjoin/bloom"
	"github.com/bloomjoin/bloomjoin/exact"
)

// Kind is the kind of a filter's payload. Its value is part of the format.
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

// Want is the kind that was requested when the filter was built. Seal needs it to
// take the same decision in every process. Its value is part of the format.
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
	Name  string // name in the data; a dotted path, or empty if the data has none
	Class string // one of the classes in FORMAT.md, such as "integer" or "fixed[16]"
	// Min and Max are inclusive bounds of the non-NULL, non-NaN values, in the
	// class's form as a part of a composite key: an integer takes 9 bytes, the last
	// of which is 1 if it is negative. Both are nil if left out.
	Min, Max []byte
	// HasNaN means that NaN is among the keys; Class is "float". It is meaningless
	// without bounds: nothing is known then.
	HasNaN bool
}

// Partial describes which part of a filter this is.
type Partial struct {
	Of   uint32   // number of shards of the build, 1 to MaxShards
	Held []uint32 // shards in this filter, ascending, from 0
}

// Capacity means that a filter has room for more keys: up to the given number of
// distinct keys, a Bloom filter of the given size has the requested rate.
type Capacity struct {
	Keys   uint64 // distinct keys, at least 1
	Blocks uint64 // as in Params, or, for a sealed exact filter, those of the Bloom filter that a larger union turns into
}

// MaxShards is the largest number of shards of a build.
const MaxShards = 1 << 20

// RegisterCount is the number of registers of a HyperLogLog sketch.
const RegisterCount = 1 << 14

// MaxRegister is the largest value of a register.
const MaxRegister = 64 - 14 + 1

// Filter is a filter with everything in its file. SetBloom or SetExact sets the
// payload.
type Filter struct {
	Key []KeyColumn
	// NormalForm names the rules that turned keys into bytes, such as "1". Filters
	// with different rules have different hashes.
	NormalForm string
	// Rule is how strings were normalised before that: some of "trim", "lower" and
	// "uuid", in this order, separated by commas; empty: not at all. Filters with
	// different rules have different hashes.
	Rule string
	// Params are the parameters of the Bloom payload; for an exact partial, those
	// of the Bloom filter that it may turn into; for a sealed exact filter, Blocks
	// is 0.
	Params   bloom.Params
	Keys     uint64  // non-NULL keys added, including duplicates
	FPRAsked float64 // between 0 and 1
	Want     Want
	// BuildID identifies the build. It is zero if there is none; a partial filter
	// always has one.
	BuildID [32]byte
	// Registers are RegisterCount dense HyperLogLog registers over the hashes of
	// Params.Hash, each at most MaxRegister, or nil.
	Registers []byte
	Partial   *Partial   // nil if sealed
	Parents   [][32]byte // digests of the filters that a set operation combined
	Capacity  Capacity   // zero: the size fits the present keys

	kind Kind
	held *payload // nil for a header alone

	unmap func() error // releases the file that a payload was mapped from; nil: none
}

// SetBloom makes b the payload and adopts its parameters. b must not change
// afterwards.
func (f *Filter) SetBloom(b *bloom.Filter) {
	f.kind, f.held = KindBloom, &payload{bits: b}
	f.Params = b.Params()
}

// SetExact makes s the payload, which must not change afterwards. Params are
// unchanged; a sealed filter needs Params.Blocks to be 0.
func (f *Filter) SetExact(s *exact.Set) {
	f.kind, f.held = KindExact, &payload{set: s}
}

// Header returns a copy of the filter without its payload.
// [Filter.Kind] is set, but the copy cannot be probed.
func (f *Filter) Header() *Filter {
	h := f.clone()
	h.held, h.unmap = nil, nil
	return h
}

// Kind returns the kind of the payload, or 0 if it is unknown.
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

// Normal returns the name of the rules that turned keys into bytes: NormalForm and,
// if there is a Rule, a plus and the Rule. Only keys made by the same rules may be
// probed.
func (f *Filter) Normal() string {
	if f.Rule == "" {
		return f.NormalForm
	}
	return f.NormalForm + "+" + f.Rule
}
