package parquet

import (
	"encoding/binary"
	"errors"
	"hash/maphash"
	"math/bits"
	"slices"

	"github.com/bloomjoin/bloomjoin/internal/parquet/enc"
)

var errIndex = errors.New("a dictionary index out of range")

// values decodes indices into *buf, replacing its contents, until it has at least
// limit bytes, but at least one value. width is the size of a value, 0 for byte
// arrays.
func (d *Dictionary) values(buf *[]byte, indices []uint32, width, limit int) (n int, err error) {
	out := (*buf)[:0]
	for n < len(indices) && (n == 0 || len(out) < limit) {
		v, ok := d.value(indices[n], width)
		if !ok {
			return 0, errIndex
		}
		out = append(out, v...)
		n++
	}
	*buf = out
	return n, nil
}

// value returns entry i in PLAIN encoding.
func (d *Dictionary) value(i uint32, width int) ([]byte, bool) {
	if int64(i) >= int64(d.Len) {
		return nil, false
	}
	if width > 0 {
		return d.Plain[int(i)*width : (int(i)+1)*width], true
	}
	return d.Plain[d.offsets[i]-4 : d.offsets[i+1]-4], true
}

// dictBuilder merges dictionaries: it numbers distinct values in order of first
// use. Values are equal if their bytes are.
type dictBuilder struct {
	dict  Dictionary
	width int  // bytes of a value, 0 for byte arrays
	limit int  // bytes of dict.Plain
	grows bool // limit grows with the input's dictionaries
	kept  bool // a copy of the input's dictionary, without the tables below

	// Open addressing with linear probing, at most half full. A slot has the
	// value's number plus one in its low numberBits and upper bits of its hash
	// above; 0 is free.
	slots []uint32
	seed  maphash.Seed
	keys  [2]uint64 // random, for hashes of integers

	from  *Dictionary // the dictionary being translated
	remap []uint32    // by its entries: the merged number plus one, 0 if unknown
}

const (
	numberBits   = 24
	numberMask   = 1<<numberBits - 1
	firstSlots   = 1 << 10
	maxDictBytes = 64 << 20 // bound on the limit if it grows with the input's dictionaries
)

func (b *dictBuilder) start(width, limit int, grows bool) {
	b.width, b.limit, b.grows, b.kept = width, limit, grows, false
	b.dict = Dictionary{Plain: b.dict.Plain[:0], offsets: b.dict.offsets[:0]}
	if width == 0 {
		b.dict.offsets = append(b.dict.offsets, 4)
	}
	b.from = nil
	if b.slots == nil {
		b.slots = make([]uint32, firstSlots)
		b.seed = maphash.MakeSeed()
		for i := range b.keys {
			b.keys[i] = maphash.Comparable(b.seed, i) | 1
		}
	}
	clear(b.slots)
}

func (b *dictBuilder) merged() *Dictionary { return &b.dict }

// held returns b's memory in bytes. b may be nil.
func (b *dictBuilder) held() int {
	if b == nil {
		return 0
	}
	return cap(b.dict.Plain) + 4*(cap(b.dict.offsets)+cap(b.slots)+cap(b.remap))
}

// translate maps indices of from to those of the merged dictionary. done is less
// than their number if the next value does not fit into it.
func (b *dictBuilder) translate(dst, indices []uint32, from *Dictionary) (done int, err error) {
	if b.kept {
		if len(indices) > 0 && int64(slices.Max(indices)) >= int64(b.dict.Len) {
			return 0, errIndex
		}
		return copy(dst, indices), nil
	}
	if b.from != from {
		b.from = from
		b.remap = enc.Reuse(b.remap, from.Len)
		clear(b.remap)
		// A writer that made a large dictionary did so because plain values would
		// be much larger.
		if b.grows {
			b.limit = max(b.limit, min(2*len(from.Plain), maxDictBytes))
		}
	}
	remap := b.remap
	dst = dst[:len(indices)]
	for i, x := range indices {
		if uint(x) >= uint(len(remap)) {
			return 0, errIndex
		}
		r := remap[x]
		if r == 0 {
			v, _ := from.value(x, b.width)
			if r = b.number(v); r == 0 {
				return i, nil
			}
			remap[x] = r
		}
		dst[i] = r - 1
	}
	return len(indices), nil
}

// numbers numbers len(dst) values of plain, starting at pos, and returns the
// position after them. done is less than len(dst) if the next value does not fit
// into the dictionary.
func (b *dictBuilder) numbers(dst []uint32, plain []byte, pos int) (done, next int, err error) {
	for i := range dst {
		end := pos + b.width
		if b.width == 0 {
			if _, end, err = enc.ByteArrayAt(plain, pos); err != nil {
				return 0, pos, err
			}
		}
		r := b.number(plain[pos:end])
		if r == 0 {
			return i, pos, nil
		}
		dst[i] = r - 1
		pos = end
	}
	return len(dst), pos, nil
}

// number returns one more than the number of v, a PLAIN value. It returns 0 if v is
// new and does not fit.
func (b *dictBuilder) number(v []byte) uint32 {
	h := b.hash(v)
	mask, tag := uint64(len(b.slots)-1), tagOf(h)
	at := h & mask
	for ; b.slots[at] != 0; at = (at + 1) & mask {
		if s := b.slots[at]; s&^numberMask == tag {
			if old, _ := b.dict.value(s&numberMask-1, b.width); string(old) == string(v) {
				return s & numberMask
			}
		}
	}
	if len(v) > b.limit-len(b.dict.Plain) || b.dict.Len == numberMask {
		return 0
	}
	b.dict.Plain = append(b.dict.Plain, v...)
	if b.width == 0 {
		b.dict.offsets = append(b.dict.offsets, uint32(len(b.dict.Plain)+4))
	}
	b.dict.Len++
	b.slots[at] = tag | uint32(b.dict.Len)
	if b.dict.Len > len(b.slots)/2 {
		b.grow()
	}
	return uint32(b.dict.Len)
}

// tagOf returns the part of a hash that is stored in a slot.
func tagOf(h uint64) uint32 { return uint32(h>>32) &^ numberMask }

func (b *dictBuilder) grow() {
	b.slots = make([]uint32, 2*len(b.slots))
	mask := uint64(len(b.slots) - 1)
	for i := range b.dict.Len {
		v, _ := b.dict.value(uint32(i), b.width)
		h := b.hash(v)
		at := h & mask
		for b.slots[at] != 0 {
			at = (at + 1) & mask
		}
		b.slots[at] = tagOf(h) | uint32(i+1)
	}
}

// hash is seeded, so that inputs with colliding values cannot be constructed.
func (b *dictBuilder) hash(v []byte) uint64 {
	switch b.width {
	case 4:
		return b.mix(uint64(binary.LittleEndian.Uint32(v)))
	case 8:
		return b.mix(binary.LittleEndian.Uint64(v))
	}
	return maphash.Bytes(b.seed, v)
}

func (b *dictBuilder) mix(x uint64) uint64 {
	hi, lo := bits.Mul64(x^b.keys[0], b.keys[1])
	hi, lo = bits.Mul64(hi^lo, b.keys[0])
	return hi ^ lo
}
