package text

import (
	"encoding/binary"
	"io"
)

// frameStep is the number of bytes read at a time to find frames. A block's header has
// three bytes, and blocks have up to 128 KiB.
const frameStep = 4 << 10

// frameWalk finds the ends of zstd frames without decompressing them (RFC 8878,
// section 3.1).
type frameWalk struct {
	r    io.ReaderAt
	size int64
	off  int64  // position of step
	step []byte // read last
	err  error
}

// bounds returns the positions that divide the input into ranges of whole frames, each
// of at least the given size except the last one: 0, the ends of all ranges but the
// last, and the size of the input. What follows something that is no whole frame
// belongs to the last range, whose decoder reports it.
func (w *frameWalk) bounds(least int64) ([]int64, error) {
	b := []int64{0}
	for at := int64(0); ; {
		end, ok := w.frame(at)
		if !ok || end >= w.size {
			return append(b, w.size), w.err
		}
		if end-b[len(b)-1] >= least {
			b = append(b, end)
		}
		at = end
	}
}

// frame returns the end of the frame that begins at a position.
func (w *frameWalk) frame(at int64) (end int64, ok bool) {
	head := w.bytes(at, 8)
	if head == nil {
		return 0, false
	}
	switch magic := binary.LittleEndian.Uint32(head); {
	case magic&^0xF == 0x184D2A50: // skippable
		end = at + 8 + int64(binary.LittleEndian.Uint32(head[4:]))
		return end, end <= w.size
	case magic != 0xFD2FB528:
		return 0, false
	}
	descriptor := head[4]
	at += 5 + int64([]int{0, 1, 2, 4}[descriptor&3]) + int64([]int{0, 2, 4, 8}[descriptor>>6])
	if single := descriptor&0x20 != 0; !single || descriptor>>6 == 0 { // a window, or the size in one byte
		at++
	}
	for last := false; !last; {
		b := w.bytes(at, 3)
		if b == nil {
			return 0, false
		}
		header := int64(b[0]) | int64(b[1])<<8 | int64(b[2])<<16
		last = header&1 != 0
		size := header >> 3
		switch header >> 1 & 3 {
		case 1: // one byte, repeated
			size = 1
		case 3: // reserved
			return 0, false
		}
		at += 3 + size
	}
	if descriptor&4 != 0 { // checksum
		at += 4
	}
	return at, at <= w.size
}

// bytes returns n bytes at a position, nil if the input has fewer or cannot be read.
func (w *frameWalk) bytes(at int64, n int) []byte {
	if w.err != nil || at > w.size-int64(n) {
		return nil
	}
	if at < w.off || at+int64(n) > w.off+int64(len(w.step)) {
		step := min(frameStep, w.size-at)
		if w.step == nil {
			w.step = make([]byte, frameStep)
		}
		w.off, w.step = at, w.step[:step]
		if m, err := w.r.ReadAt(w.step, at); int64(m) < step {
			w.err = err
			return nil
		}
	}
	return w.step[at-w.off:][:n]
}
