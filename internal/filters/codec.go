// Package filters has the filter as one value, and its file; package codec is its door. A
// [Filter] is a Bloom filter, a counting filter or an exact set, with the [Facts] in its
// file. It is asked about keys in a [keys.Batch], and answers with the rows that may be
// members. Nothing in a file is trusted before it is checked: against a checksum, against
// the size of the file and, before the payload is allocated, against [Limits]. Every room
// may use it.
//
// codec/FORMAT.md specifies the bytes of the file:
//
//	prologue   magic, format version, minimum reader version, header size, checksum
//	header     typed sections, each with its length, a critical flag and a checksum
//	payload    the set in chunks of 1 MiB, each raw on a page boundary, or zstd
//	chunks     one more section: stored size, coding and checksum of every chunk
//	trailer    the file's size and a checksum over all
//
// [DecodeHeader] reads everything except the payload; [Decode] reads the whole file. Chunks
// go through a small ring of buffers. [OrInto] merges files without a second filter.
// [Header.LoadMapped] uses an uncompressed Bloom filter in place.
package filters

import (
	"fmt"
	"slices"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/counting"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/exact"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// Kind is what a filter's payload is, or is to be. The value is part of the format: merging
// and sealing come to the same decision everywhere.
type Kind uint8

const (
	KindAuto  Kind = 0 // of a build: the smaller one
	KindBloom Kind = 1 // bits of a Bloom filter
	KindExact Kind = 2 // an exact set of integers
	// KindCounting is counters, from which the bits of a Bloom filter are made. 3 is not used,
	// because it stands for an exact set in the file.
	KindCounting Kind = 4
)

// String returns the name used on the command line and in reports.
func (k Kind) String() string {
	switch k {
	case KindAuto:
		return "auto"
	case KindBloom:
		return "bloom"
	case KindExact:
		return "exact"
	case KindCounting:
		return "counting"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// KeyColumn is one part of the key.
type KeyColumn struct {
	Name  string // as the data names it; a dotted path, or empty where the data has no name
	Class string // one of the classes in FORMAT.md, such as "integer" or "fixed[16]"
	// Min and Max are inclusive bounds of the non-NULL, non-NaN values, in the
	// class's form as a part of a composite key: an integer takes 9 bytes, the
	// last of which is 1 if it is negative. Both are nil when left out.
	Min, Max []byte
	// HasNaN is true if NaN is among the keys of a column of class "float".
	// Without bounds it means nothing.
	HasNaN bool
}

// Partial is the part of a build that a filter holds.
type Partial struct {
	Of   uint32   // number of shards of the build, 1 to MaxShards
	Held []uint32 // shards in this filter, ascending, from 0
	// Division is a digest of the pieces into which the build divided its inputs, if
	// the inputs alone do not tell; else zero.
	Division [32]byte
}

// Counting describes the counters of a counting filter.
type Counting struct {
	Multiset  bool   // each addition of a key counts; else a key is in once
	Saturated uint64 // counters that never fall again
}

// Mode returns "a set" or "a multiset".
func (c *Counting) Mode() string {
	if c.Multiset {
		return "a multiset"
	}
	return "a set"
}

// Capacity is the room of a filter for further keys. With Blocks blocks, it has at
// most the requested false-positive rate for up to Keys distinct keys.
type Capacity struct {
	Keys   uint64 // distinct keys, at least 1
	Blocks uint64 // those of Params, or, in a sealed exact filter, of the Bloom filter that a larger union turns into
}

// Exceptions are hashes (of Params.Hash) that correct a Bloom filter for known good keys.
type Exceptions struct {
	// Hashes, in a sealed filter, pass the bits although no key of the set has them: the
	// filter drops them. In a partial filter, they are the hashes that known keys share
	// with its own keys. Nil is the empty set. They must not change.
	Hashes *exact.Set
	// Known is the number of known keys, duplicates counted, if the filter passes none of
	// them except those in the set; else 0.
	Known uint64
	// Digest identifies the files of the known keys. Zero: it is not known.
	Digest [32]byte
}

// MaxShards limits the number of shards of a build.
const MaxShards = 1 << 20

// RegisterCount is the number of registers of a HyperLogLog sketch.
const RegisterCount = 1 << 14

// MaxRegister is the largest value of a register.
const MaxRegister = 64 - 14 + 1

// Facts are what a filter's file says apart from the payload.
type Facts struct {
	Key []KeyColumn
	// NormalForm names the rules that turn keys into bytes, such as "1".
	// Filters of different rules have different hashes.
	NormalForm string
	// Rule names the rules applied to strings before that: some of "trim", "lower",
	// "uuid", "url" and "url-host", in this order, separated by commas; empty: none.
	// Filters of different rules have different hashes.
	Rule string
	// Params are the parameters of the Bloom payload; in an exact partial filter,
	// those of the Bloom filter it may turn into; in a sealed exact filter, Blocks
	// is 0.
	Params   bloom.Params
	Keys     uint64  // non-NULL keys added, duplicates counted; of a counting filter, keys that are in
	FPRAsked float64 // between 0 and 1
	Want     Kind
	// BuildID identifies the build. Zero: none; a partial filter has one.
	BuildID [32]byte
	// Registers are RegisterCount dense HyperLogLog registers over the hashes
	// of Params.Hash, each at most MaxRegister, or nil.
	Registers []byte
	Partial   *Partial   // nil when sealed
	Parents   [][32]byte // digests of the filters that a set operation made this from
	Capacity  Capacity   // zero: the size is for the keys that are in
	Counting  *Counting  // nil unless the kind is KindCounting
	// Exceptions are what is known of known good keys; nil: nothing.
	Exceptions *Exceptions
}

// New returns a filter with the given facts and no payload.
func New(f Facts) *Filter { return &Filter{facts: f} }

// Facts returns the facts, which only the filter's maker may change; of a nil filter, zero
// ones.
func (f *Filter) Facts() *Facts {
	if f == nil {
		return new(Facts)
	}
	return &f.facts
}

// Filter is a filter with everything that its file says. SetBloom, SetExact and SetCounters set
// the payload. All other methods may be called concurrently, unless the Facts change meanwhile.
type Filter struct {
	facts Facts
	kind  Kind
	held  *payload // nil: of a header alone

	mapping *mapping // the file that a payload was mapped from; nil: none
}

// payload returns the payload, nil if there is none.
func (f *Filter) payload() *payload {
	if f == nil {
		return nil
	}
	return f.held
}

// SetBloom makes b the payload and takes over its parameters. b must not change
// afterwards. If b is nil or has no blocks, the filter has no payload afterwards.
// On a nil filter, SetBloom does nothing.
func (f *Filter) SetBloom(b *bloom.Filter) {
	if f == nil {
		return
	}
	if b.Params().Blocks == 0 {
		f.kind, f.held = 0, nil
		return
	}
	f.kind, f.held = KindBloom, &payload{bits: b}
	f.facts.Params = b.Params()
}

// SetExact makes s the payload, which must not change afterwards. Params stay
// as they are; a sealed filter needs Params.Blocks to be 0. If s is nil, the filter
// has no payload afterwards. On a nil filter, SetExact does nothing.
func (f *Filter) SetExact(s *exact.Set) {
	if f == nil {
		return
	}
	if s == nil {
		f.kind, f.held = 0, nil
		return
	}
	f.kind, f.held = KindExact, &payload{set: s}
}

// SetCounters makes c the payload and takes over its parameters. c must not change
// afterwards. Memory then also holds the bits, a quarter of c's size.
func (f *Filter) SetCounters(c *counting.Filter, multiset bool) error {
	bits, err := c.Bits()
	if err != nil {
		return err
	}
	f.SetBloom(bits)
	f.kind, f.held.counters = KindCounting, c
	f.facts.Want, f.facts.Counting = KindCounting, &Counting{multiset, counting.Saturated(c.Counters())}
	return nil
}

// Counters returns the counters of a counting filter that was loaded with them, else nil.
func (f *Filter) Counters() *counting.Filter {
	if p := f.payload(); p != nil {
		return p.counters
	}
	return nil
}

// Header returns a copy of what the filter's file says before the payload. It
// has a [Filter.Kind], but cannot be asked about keys. The header of a nil filter
// is nil.
func (f *Filter) Header() *Filter {
	if f == nil {
		return nil
	}
	h := f.clone()
	h.held, h.mapping = nil, nil
	return h
}

// Kind returns what the payload is, or 0 if it is not known.
func (f *Filter) Kind() Kind {
	if f == nil {
		return 0
	}
	return f.kind
}

// Bloom returns the bits of a Bloom or counting filter, else nil. It verifies what is unread
// of the file first, and returns nil if that is damaged. A mapped payload ([Filter.Mapped])
// must not be used after Close. If another goroutine may call Close, use the payload only
// between [Filter.KeepOpen] and its release.
func (f *Filter) Bloom() *bloom.Filter {
	p := f.payload()
	if p == nil || !p.readable() {
		return nil
	}
	return p.bits
}

// Exact returns the payload of an exact filter, else nil.
func (f *Filter) Exact() *exact.Set {
	p := f.payload()
	if p == nil {
		return nil
	}
	return p.set
}

// Sealed reports whether the filter is complete. Others cannot be probed.
func (f *Filter) Sealed() bool { return f != nil && f.facts.Partial == nil }

// KeyNames returns the names of the key columns.
func (f *Filter) KeyNames() []string {
	if f == nil {
		return nil
	}
	return each.Slice(f.facts.Key, func(k KeyColumn) string { return k.Name })
}

// KeyClasses returns the classes of the key columns.
func (f *Filter) KeyClasses() []string {
	if f == nil {
		return nil
	}
	return each.Slice(f.facts.Key, func(k KeyColumn) string { return k.Class })
}

// MayHaveKeys reports that no key column is one of NULLs only.
func (f *Filter) MayHaveKeys() bool { return !slices.Contains(f.KeyClasses(), string(keys.Null)) }

// Normal returns the name of the rules that turn keys into bytes: NormalForm
// and, after a plus sign, Rule as stored, if there is one. The keys to probe must be
// made by the same rules.
func (f *Filter) Normal() string {
	if f == nil {
		return ""
	}
	if f.facts.Rule == "" {
		return f.facts.NormalForm
	}
	rule, _ := keys.ParseRule(f.facts.Rule) // checked
	return f.facts.NormalForm + "+" + rule.Stored()
}
