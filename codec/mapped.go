package codec

import (
	"fmt"
	"runtime/debug"
	"unsafe"

	"github.com/bloomjoin/bloomjoin/bloom"
	"github.com/bloomjoin/bloomjoin/fault"
)

// Mappable reports whether LoadMapped can use the file in place: it is a Bloom
// filter without compressed chunks.
func (h *Header) Mappable() bool { return h.Filter.kind == KindBloom && h.Contiguous }

// LoadMapped is Load for a file that is mapped into memory as a whole. It
// verifies the payload in place, once, and returns a filter whose bits are the
// bytes of the file, shared by all processes on a machine that map it. It has
// the limit of Load.
//
// The filter's Close calls unmap; after an error the map still belongs to the
// caller. If the file or the machine does not allow it, the error wraps
// fault.ErrUnsupported; use Load then.
//
// The bytes must not change before Close. If the file shrinks or its disk
// fails, parts of the map can no longer be read. LoadMapped and the methods
// that ask the filter return an error then. Other access to the bits ends the
// process, except on a goroutine that has called debug.SetPanicOnFault, where
// it panics with an error that has a method Addr.
func (h *Header) LoadMapped(file []byte, unmap func() error, lim Limits) (*Filter, error) {
	if !h.Mappable() {
		return nil, fault.Unsupported(fault.At{File: h.name}, "mapping a payload that is %s", h.form()).
			WithHint("write the filter with {Uncompressed}; only Bloom filters can be mapped")
	}
	if int64(len(file)) != h.FileBytes {
		return nil, bad("map", fmt.Sprintf("%d bytes", h.FileBytes), len(file)).inFile(h.name)
	}
	if h.PayloadBytes > lim.max() {
		return nil, tooLarge(h.PayloadBytes, lim).inFile(h.name)
	}
	bits, err := bloom.View(h.Filter.Params, file[h.PayloadOffset:][:h.PayloadBytes])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", h.name, err)
	}
	in := *h
	in.mapped = file
	if err := in.Verify(); err != nil {
		return nil, err
	}
	f := h.Filter.clone()
	f.SetBloom(bits)
	f.held.mapped, f.held.stamp, f.unmap = true, h.stamp(), unmap
	err = in.guard(func() error {
		bits.FPR() // which are not read again for it at a time when they may have gone
		return nil
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// form names what the payload is, for errors.
func (h *Header) form() string {
	if h.Contiguous {
		return h.Filter.kind.String()
	}
	return h.Filter.kind.String() + ", compressed"
}

// guard calls f, which reads the map if there is one, and returns an error if
// that memory faults.
func (h *Header) guard(f func() error) (err error) {
	if h.mapped == nil {
		return f()
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		at, ok := r.(interface{ Addr() uintptr })
		if !ok {
			panic(r)
		}
		offset := at.Addr() - uintptr(unsafe.Pointer(&h.mapped[0]))
		if offset >= uintptr(len(h.mapped)) {
			panic(r)
		}
		p := bad("mapped file", fmt.Sprintf("%d bytes to read", h.FileBytes), fmt.Sprintf("a fault at byte %d", offset))
		p.hint = "the file was cut short while it was in use, or its disk fails: copy it to a place where nobody changes it"
		err = p.inFile(h.name)
	}()
	return f()
}

// Mapped reports whether the payload is the bytes of a mapped file, which Close
// releases.
func (f *Filter) Mapped() bool { return f.held != nil && f.held.mapped }

// Close releases a mapped file. The filter has no payload afterwards, and a
// *bloom.Filter that Bloom returned before must not be used: the process would
// end. An error means that the file has changed while it was in use, so that
// the answers of the filter cannot be trusted. For other filters, and the
// second time, Close does nothing.
func (f *Filter) Close() error {
	if f.unmap == nil {
		return nil
	}
	unmap := f.unmap
	f.unmap = nil
	if f.Mapped() {
		f.held = nil
	}
	return unmap()
}
