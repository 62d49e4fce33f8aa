package rowfilter

import "github.com/apache/arrow/go/v15/arrow/memory"

// recycler is an allocator for arrays of pages that are released before the next one is
// made: it uses their memory again. It must not be used concurrently.
type recycler struct{ free [][]byte }

// maxFree is the number of buffers that a recycler keeps: those of one array.
const maxFree = 3

// Allocate implements [memory.Allocator].
func (r *recycler) Allocate(size int) []byte {
	for i, b := range r.free {
		if cap(b) >= size {
			r.free = append(r.free[:i], r.free[i+1:]...)
			b = b[:size]
			clear(b)
			return b
		}
	}
	return memory.DefaultAllocator.Allocate(size)
}

// Reallocate implements [memory.Allocator].
func (r *recycler) Reallocate(size int, b []byte) []byte {
	if cap(b) >= size {
		old := len(b)
		b = b[:size]
		if size > old {
			clear(b[old:])
		}
		return b
	}
	out := r.Allocate(size)
	copy(out, b)
	r.Free(b)
	return out
}

// Free implements [memory.Allocator].
func (r *recycler) Free(b []byte) {
	if len(r.free) == maxFree { // the smallest is worth least
		least := 0
		for i := range r.free {
			if cap(r.free[i]) < cap(r.free[least]) {
				least = i
			}
		}
		if cap(b) > cap(r.free[least]) {
			r.free[least] = b
		}
		return
	}
	r.free = append(r.free, b)
}

// size returns the bytes that are kept.
func (r *recycler) size() (n int64) {
	for _, b := range r.free {
		n += int64(cap(b))
	}
	return n
}
