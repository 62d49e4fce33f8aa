package parquet

import "sync/atomic"

// Mapping is a file that is mapped into memory, an alternative to reading it. Its holders
// are counted: the bytes stay mapped until the last of them has released it. If
// mapped bytes can no longer be read, the error wraps panics.ErrUnmapped, provided that
// the goroutine has called debug.SetPanicOnFault; otherwise the process crashes.
type Mapping struct {
	Bytes []byte // the whole file, read-only
	// Read, if not nil, is called with the number of bytes that were accessed.
	// Passed, if not nil, is called when a walk over pages will not access the
	// bytes from lo to hi again. Both are called from many goroutines.
	Read   func(n int64)
	Passed func(lo, hi int64)
	// Unmap ends the mapping. The last holder calls it, once.
	Unmap func() error

	holders atomic.Int64
}

// hold keeps the bytes mapped until release is called. It returns false if they no
// longer are.
func (m *Mapping) hold() bool {
	for {
		n := m.holders.Load()
		if n == 0 {
			return false
		}
		if m.holders.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// release undoes hold. last reports whether this was the last holder, so that the mapping
// has ended; err is then the error of Unmap.
func (m *Mapping) release() (last bool, err error) {
	if m.holders.Add(-1) > 0 {
		return false, nil
	}
	return true, m.Unmap()
}

// Map makes the walks that begin before release is called use a mapping of the file:
// the one that others use at the time, or a new one, from open. Walks hold the mapping
// themselves, so one that outlasts release is safe. last reports whether release has
// ended the mapping; only then can it have an error.
//
// Map may be called concurrently. It returns the error of open; the file can then still
// be read.
func (f *File) Map(open func() (*Mapping, error)) (release func() (last bool, err error), err error) {
	f.mapLock.Lock()
	defer f.mapLock.Unlock()
	m := f.mapping.Load()
	if m == nil || !m.hold() {
		if m, err = open(); err != nil {
			return nil, err
		}
		m.holders.Store(1)
		f.mapping.Store(m)
	}
	return m.release, nil
}

// use makes b hold the mapping of the file that it is used for, if it has one.
func (b *Buffers) use(f *File) {
	m := f.mapping.Load()
	if m == b.mapping {
		return // held already, or none
	}
	b.unmap()
	if m != nil && m.hold() {
		b.mapping = m
	}
}

// unmap releases the mapping that b holds.
func (b *Buffers) unmap() {
	if m := b.mapping; m != nil {
		b.mapping = nil
		_, _ = m.release() // the caller of Map checks whether the file has changed
	}
}

// mapped returns the mapping that the chunk is read from; nil: it is read otherwise.
func (c *Chunk) mapped() *Mapping {
	if m := c.buf.mapping; m != nil && c.end <= int64(len(m.Bytes)) {
		return m
	}
	return nil
}
