package filters

import (
	"fmt"
	"io/fs"
	"math"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
	"github.com/bloomjoin/bloomjoin/storage"
)

// mappable reports whether LoadMapped can use the file in place: it is a Bloom
// filter without compressed chunks.
func (h *Header) mappable() bool { return h.Filter.kind == KindBloom && h.Contiguous }

// LoadMapped is Load for a file that is mapped into memory as a whole. It
// verifies the payload in place, once, and returns a filter whose bits are the
// bytes of the file, shared by all processes on a machine that map it. It has no
// limit: the system may drop these bytes, and read them again.
//
// The filter's Close calls unmap, or the last call still running then does. unmap
// may be nil. After an error the map still belongs to the caller. If the file or
// the machine does not allow mapping, the error wraps fault.ErrUnsupported; use
// Load then.
//
// The bytes must not change before Close. If the file shrinks or its disk
// fails, parts of the map can no longer be read. LoadMapped and the methods
// that ask the filter return an error then. Other access to the bits ends the
// process, except on a goroutine that has called debug.SetPanicOnFault, where
// it panics with an error that has a method Addr.
func (h *Header) LoadMapped(file []byte, unmap func() error) (*Filter, error) {
	if err := h.canMap(); err != nil {
		return nil, err
	}
	f, in, err := h.view(file, unmap)
	if err != nil {
		return nil, err
	}
	if err := in.Verify(); err != nil {
		return nil, err
	}
	err = in.guard(func() error {
		f.held.bits.FPR() // computed and kept now, since the bits may be gone later
		return nil
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// canMap returns an error unless the payload can be used in place.
func (h *Header) canMap() error {
	if err := h.decoded(); err != nil {
		return err
	}
	if !h.mappable() {
		form := h.Filter.kind.String()
		if !h.Contiguous {
			form += ", compressed"
		}
		return faults.Unsupported(fault.At{File: h.name}, "mapping a payload that is %s", form).
			WithHint("write the filter with {Uncompressed}; only Bloom filters can be mapped")
	}
	return nil
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

// mapping is a mapped file and the calls that read it.
type mapping struct {
	unmap func() error
	// calls is the number of calls at work and, once Close was called, that number
	// plus closing. Once it is closing itself, it never changes again.
	calls atomic.Int64

	mu       sync.Mutex
	released bool  // unmap was called
	err      error // of unmap, until Close has returned it
}

const closing = math.MinInt64 / 2

// errClosed is returned by calls that begin after Close.
var errClosed = fmt.Errorf("the filter is closed: it was mapped from a file, which Close has released or is about to (load it again)%w", quiet.Error{Err: fs.ErrClosed})

// enter begins a call that reads the map, which leave ends. A nil mapping needs
// neither.
func (m *mapping) enter() error {
	for m != nil {
		n := m.calls.Load()
		if n < 0 {
			return errClosed
		}
		if m.calls.CompareAndSwap(n, n+1) {
			break
		}
	}
	return nil
}

// within is enter for what may run inside another call: it succeeds until the map
// is released.
func (m *mapping) within() bool {
	for m != nil {
		n := m.calls.Load()
		if n == closing {
			return false
		}
		if m.calls.CompareAndSwap(n, n+1) {
			break
		}
	}
	return true
}

// leave ends a call. The last one after Close releases the map.
func (m *mapping) leave() {
	if m == nil || m.calls.Add(-1) != closing {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.release()
}

// release unmaps the file once. The caller holds mu, and no call is running.
func (m *mapping) release() {
	if m.released {
		return
	}
	m.released = true
	if m.unmap != nil {
		m.err = m.unmap()
	}
}

// gone reports whether no call can read the map any more.
func (m *mapping) gone() bool { return m != nil && m.calls.Load() == closing }

// close keeps further calls out and, if none is running, releases the map.
func (m *mapping) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.calls.Load()
	if n >= 0 {
		n = m.calls.Add(closing)
	}
	if n != closing {
		return fmt.Errorf("close the filter: %d calls are still at work, and whether its file has changed is not known before they end: %w", n-closing, storage.ErrAgain)
	}
	m.release()
	err := m.err
	m.err = nil
	return err
}

// Mapped reports whether the payload is the bytes of a mapped file, which Close
// releases.
func (f *Filter) Mapped() bool {
	p := f.payload()
	return p != nil && p.mapping != nil && !p.mapping.gone()
}

// KeepOpen keeps a mapped file from being released until release is called, which must
// happen once. It serves callers that read what Bloom returns, in case another
// goroutine calls Close: until release, Bloom returns the same filter, and its bits
// can be read. Other methods hold the file by themselves. After Close the error
// wraps fs.ErrClosed; for a nil filter it wraps ErrInvalid. Filters that are not
// mapped need no KeepOpen, but allow it.
func (f *Filter) KeepOpen() (release func(), err error) {
	if f == nil {
		return nil, errNil()
	}
	if f.mapping == nil {
		return func() {}, nil
	}
	if err := f.mapping.enter(); err != nil {
		return nil, err
	}
	if err := f.held.unread.all(); err != nil {
		f.mapping.leave()
		return nil, err
	}
	return f.mapping.leave, nil
}

// Close releases a mapped file. An error means that the file changed while it was
// in use, so that the filter's answers cannot be trusted, or that this is not
// known yet.
//
// Close may be called while other goroutines use the filter, and never waits for
// them. Their calls finish with right answers, and the last of them releases the
// file; Close then returns an error that wraps [storage.ErrAgain]. Call it again
// once they have ended, before their answers are published, to learn whether the
// file has changed. Calls that begin after Close return an error that wraps
// [fs.ErrClosed]; methods that return no error behave as if there were no payload.
//
// A *bloom.Filter that Bloom returned before must not be used after Close, unless
// [Filter.KeepOpen] still holds the file: the process would end.
//
// Close does nothing for filters that are nil or not mapped, and after a call
// that did not return storage.ErrAgain.
func (f *Filter) Close() error {
	if f == nil || f.mapping == nil {
		return nil
	}
	return f.mapping.close()
}
