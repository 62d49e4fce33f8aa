package enc

import (
	"encoding/binary"
)

// ByteArrays steps through PLAIN byte arrays.
//
// The start of a value depends on the length before it, so each load has to wait
// for the previous one. Values of equal length, such as identifiers, are therefore
// guessed and checked four at a time, which needs no waiting. After a wrong guess
// the next values are taken one by one.
type ByteArrays struct {
	Src  []byte
	Pos  uint64 // at most len(Src)
	wait int    // values until the next guess
}

const (
	guessed = 4  // values per guess
	unlucky = 32 // values between a wrong guess and the next one
)

// Skip moves past n values. It returns false if src ends before they do.
func (w *ByteArrays) Skip(n int) bool {
	for n > 0 {
		src, pos := w.Src, w.Pos
		for w.wait == 0 && n >= guessed {
			size := guess(src[pos:])
			if size == 0 {
				w.wait = unlucky
			} else {
				pos += size
				n -= guessed
			}
		}
		k := n
		if w.wait > 0 {
			k = min(n, w.wait)
			w.wait -= k
		}
		n -= k
		for range k {
			if pos+4 > uint64(len(src)) {
				return false
			}
			// Written out, because slicing would lengthen the dependency chain from
			// one length to the next.
			pos += 4 + (uint64(src[pos]) | uint64(src[pos+1])<<8 | uint64(src[pos+2])<<16 | uint64(src[pos+3])<<24)
		}
		if pos > uint64(len(src)) {
			return false
		}
		w.Pos = pos
	}
	return true
}

// step moves past one value. It returns false if src ends before it does.
func (w *ByteArrays) step() bool {
	b := w.Src[w.Pos:]
	if len(b) < 4 {
		return false
	}
	size := 4 + uint64(binary.LittleEndian.Uint32(b))
	w.Pos += size
	return size <= uint64(len(b))
}

// guess returns the total size of the first `guessed` values of b if they have
// equal length, else 0.
func guess(b []byte) uint64 {
	if len(b) < 4 {
		return 0
	}
	length := binary.LittleEndian.Uint32(b)
	step := 4 + uint64(length)
	if guessed*step > uint64(len(b)) ||
		binary.LittleEndian.Uint32(b[step:]) != length ||
		binary.LittleEndian.Uint32(b[2*step:]) != length ||
		binary.LittleEndian.Uint32(b[3*step:]) != length {
		return 0
	}
	return guessed * step
}

// ByteArrayAt returns the byte array whose length is at pos, and the position after
// it.
func ByteArrayAt(plain []byte, pos int) (v []byte, next int, err error) {
	if len(plain)-pos < 4 {
		return nil, 0, ErrByteArrays
	}
	size := uint64(binary.LittleEndian.Uint32(plain[pos:]))
	if size > uint64(len(plain)-pos-4) {
		return nil, 0, ErrByteArrays
	}
	next = pos + 4 + int(size)
	return plain[pos+4 : next : next], next, nil
}

// SharedPrefix returns the length of the longest common prefix.
func SharedPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
