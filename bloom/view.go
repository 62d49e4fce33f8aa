package bloom

import (
	"fmt"
	"unsafe"

	"github.com/bloomjoin/bloomjoin/fault"
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
		return nil, fault.Mismatch(fault.At{}, "bits of the filter", fmt.Sprintf("%d bytes", p.Bytes()), fmt.Sprintf("%d bytes", len(bits)))
	}
	at := unsafe.Pointer(&bits[0])
	if uintptr(at)%8 != 0 {
		return nil, fault.Unsupported(fault.At{}, "filter in place, at an odd address")
	}
	return &Filter{params: p, words: unsafe.Slice((*uint64)(at), len(bits)/8), fixed: true}, nil
}

// InPlace reports whether the filter still uses the bits that View was given.
func (f *Filter) InPlace() bool { return f.fixed }

// own copies the words before a change if they are not the filter's own.
func (f *Filter) own() {
	if f.fixed {
		*f = *f.Clone()
	}
}
