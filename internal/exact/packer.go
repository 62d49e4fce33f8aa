package exact

import (
	"encoding/binary"
	"slices"
)

// packer divides ascending members into the containers of the canonical Roaring
// form and sums up their size. With a writer it also encodes them. The zero value
// only counts.
type packer struct {
	to     *roaringWriter // nil: only count
	size   uint64         // of the complete bitmaps
	memory uint64         // approximate size of these once decoded

	// The current 32-bit bitmap: its complete containers, how many of them are
	// coded as runs, and their bytes.
	containers, coded int
	content           uint64

	// The current container: the upper 48 bits of its members, the last member, and
	// the numbers of members and of runs. card is 0 if there is no current
	// container.
	key, last  uint64
	card, runs int
}

func (p *packer) add(values []uint64) {
	for len(values) > 0 {
		key := values[0] >> 16
		if key != p.key || p.card == 0 {
			p.endContainer()
			if key>>16 != p.key>>16 {
				p.endBitmap()
			}
			p.key, p.last = key, values[0]-2 // a value that does not precede the first one directly
		}
		values = values[p.addSome(values):]
	}
}

// addSome adds the leading values that belong to the current container and returns
// how many they are.
func (p *packer) addSome(values []uint64) int {
	key, last, runs := p.key, p.last, uint64(0)
	n := len(values)
	for i, v := range values {
		if v>>16 != key {
			n = i
			break
		}
		apart := v - last - 1
		runs += (apart | -apart) >> 63 // 1 unless apart is zero
		last = v
	}
	if p.to != nil {
		low := p.to.low[2*p.card:]
		for i, v := range values[:n] {
			binary.LittleEndian.PutUint16(low[2*i:], uint16(v))
		}
	}
	p.last = last
	p.card += n
	p.runs += int(runs)
	return n
}

func (p *packer) endContainer() {
	if p.card == 0 {
		return
	}
	form := smallestForm(p.card, p.runs)
	size := bitmapBytes
	switch form {
	case "runs":
		size = 2 + 4*p.runs
		p.coded++
	case "array":
		size = 2 * p.card
	}
	if p.to != nil {
		p.to.container(uint16(p.key), form, p.card, p.runs)
	}
	p.containers++
	p.content += uint64(size)
	p.memory += bucketMemory + uint64(size)
	p.card, p.runs = 0, 0
}

func (p *packer) endBitmap() {
	if p.containers == 0 {
		return
	}
	if p.to != nil {
		p.to.bitmap(uint32(p.key>>16), p.coded > 0)
	}
	n := uint64(p.containers)
	p.size += 4 + headerBytes(n, p.coded > 0) + p.content
	p.memory += highMemory
	p.containers, p.coded, p.content = 0, 0, 0
}

// end completes the current container and bitmap.
func (p *packer) end() {
	p.endContainer()
	p.endBitmap()
}

// bytes returns the size of everything completed so far.
func (p *packer) bytes() uint64 { return 8 + p.size }

// headerBytes returns the size of the header of a 32-bit bitmap with n containers.
func headerBytes(n uint64, hasRuns bool) uint64 {
	switch {
	case !hasRuns:
		return 8 + 8*n
	case n < offsetsFrom:
		return 4 + (n+7)/8 + 4*n
	}
	return 4 + (n+7)/8 + 8*n
}

// roaringWriter encodes the containers of a packer.
type roaringWriter struct {
	out     []byte              // complete bitmaps
	low     [2 * (1 << 16)]byte // lower 16 bits of a container's members
	keys    []byte              // current bitmap: keys and cardinalities
	flags   []byte              // a bit for each container, set for runs
	ends    []uint32            // end of each container in content
	content []byte              // the containers
}

func newRoaringWriter() *roaringWriter { return &roaringWriter{out: make([]byte, 8)} }

// container encodes a container of the members in w.low.
func (w *roaringWriter) container(key uint16, form string, card, runs int) {
	if i := len(w.ends); i%8 == 0 {
		w.flags = append(w.flags, 0)
	}
	low := w.low[:2*card]
	if cap(w.content)-len(w.content) < bitmapBytes {
		w.content = slices.Grow(w.content, len(w.content)+bitmapBytes) // doubles the capacity
	}
	switch form {
	case "runs":
		w.flags[len(w.flags)-1] |= 1 << (len(w.ends) % 8)
		w.content = appendRuns(w.content, low, runs)
	case "array":
		w.content = append(w.content, low...)
	default:
		w.content = appendBitmap(w.content, low)
	}
	w.keys = binary.LittleEndian.AppendUint16(w.keys, key)
	w.keys = binary.LittleEndian.AppendUint16(w.keys, uint16(card-1))
	w.ends = append(w.ends, uint32(len(w.content)))
}

func appendRuns(b, low []byte, runs int) []byte {
	b = binary.LittleEndian.AppendUint16(b, uint16(runs))
	first := binary.LittleEndian.Uint16(low)
	last := first
	for low = low[2:]; len(low) > 0; low = low[2:] {
		v := binary.LittleEndian.Uint16(low)
		if v != last+1 {
			b = binary.LittleEndian.AppendUint16(b, first)
			b = binary.LittleEndian.AppendUint16(b, last-first)
			first = v
		}
		last = v
	}
	b = binary.LittleEndian.AppendUint16(b, first)
	return binary.LittleEndian.AppendUint16(b, last-first)
}

func appendBitmap(b, low []byte) []byte {
	var zero [bitmapBytes]byte
	b = append(b, zero[:]...)
	bitmap := b[len(b)-bitmapBytes:]
	for ; len(low) >= 2; low = low[2:] {
		v := binary.LittleEndian.Uint16(low)
		bitmap[v/8] |= 1 << (v % 8)
	}
	return b
}

// bitmap completes the current bitmap.
func (w *roaringWriter) bitmap(high uint32, hasRuns bool) {
	n := len(w.ends)
	b := slices.Grow(w.out, 4+int(headerBytes(uint64(n), hasRuns))+len(w.content))
	b = binary.LittleEndian.AppendUint32(b, high)
	if hasRuns {
		b = binary.LittleEndian.AppendUint16(b, cookieRuns)
		b = binary.LittleEndian.AppendUint16(b, uint16(n-1))
		b = append(b, w.flags...)
	} else {
		b = binary.LittleEndian.AppendUint32(b, cookiePlain)
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	b = append(b, w.keys...)
	if !hasRuns || n >= offsetsFrom {
		at := uint32(headerBytes(uint64(n), hasRuns))
		for i := range n {
			start := at
			if i > 0 {
				start += w.ends[i-1]
			}
			b = binary.LittleEndian.AppendUint32(b, start)
		}
	}
	w.out = append(b, w.content...)
	binary.LittleEndian.PutUint64(w.out, binary.LittleEndian.Uint64(w.out)+1)
	w.keys, w.flags, w.ends, w.content = w.keys[:0], w.flags[:0], w.ends[:0], w.content[:0]
}
