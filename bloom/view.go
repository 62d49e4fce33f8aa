package bloom

import (
	"fmt"
	"unsafe"

	"github.com/bloomjoin/bloomjoin/fault"
)

// View returns a filter over bits that stand elsewhere, such as a file that is
// mapped into memory, in the layout of [Filter.AppendBlocks]. They must stay
// there, unchanged, as long as the filter is used; a method that changes the
// filter copies them first. bits must begin at a multiple of eight bytes:
// where they do not, the error wraps fault.ErrUnsupported, and the bits must be
// read into a filter.
func View(p Params, bits []byte) (*Filter, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	if uint64(len(bits)) != p.Bytes() {
		return nil, fault.Mismatch(fault.At{}, "bits of the filter", fmt.Sprintf("%d bytes", p.Bytes()), fmt.Sprintf("%d bytes", len(bits)))
	}
	at := unsafe.Pointer(&bits[0])
	if uintptr(at)%8 != 0 {
		return nil, fault.Unsupported(fault.At{}, "filter in place, at an odd address")
	}
	return &Filter{params: p, words: unsafe.Slice((*uint64)(at), len(bits)/8), fixed: true}, nil
}

// InPlace reports whether the bits are still those that View was given.
func (f *Filter) InPlace() bool { return f.fixed }

// changes is called before the bits are changed: it copies those of a View, and
// drops what is known of the old ones. Goroutines that fill one filter call it at
// the same time, so it writes nothing that is already so.
func (f *Filter) changes() {
	if f.fixed {
		f.words, f.fixed = f.Clone().words, false
	}
	if f.fpr.Load() != nil {
		f.fpr.Store(nil)
	}
	if f.count.Load() != nil {
		f.count.Store(nil)
	}
}
