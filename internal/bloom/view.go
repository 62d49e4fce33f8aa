package bloom

import (
	"fmt"
	"unsafe"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// View returns a filter over existing bits, such as a file that is mapped into
// memory, in the layout of [Filter.AppendBlocks]. The bits must stay valid and
// unchanged while the filter is in use. Methods that change the filter copy them
// first. bits must be aligned to eight bytes; otherwise the error wraps
// fault.ErrUnsupported, and the bits must be read into a filter instead.
func View(p Params, bits []byte) (*Filter, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	if uint64(len(bits)) != p.Bytes() {
		return nil, faults.Mismatch(fault.At{}, "bits of the filter", fmt.Sprintf("%d bytes", p.Bytes()), fmt.Sprintf("%d bytes", len(bits)))
	}
	at := unsafe.Pointer(&bits[0])
	if uintptr(at)%8 != 0 {
		return nil, faults.Unsupported(fault.At{}, "filter in place, at an odd address")
	}
	return &Filter{params: p, words: unsafe.Slice((*uint64)(at), len(bits)/8), fixed: true}, nil
}

// changes must be called before the bits are changed. It copies the words of a View
// and resets the cached results. Goroutines that fill one filter call it
// concurrently, so it writes only what differs.
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
