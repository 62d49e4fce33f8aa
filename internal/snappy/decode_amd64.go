//go:build amd64 && !purego

package snappy

import (
	"cmp"
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/cpu"
)

var accelerated = cpu.X86.HasAVX2 && cpu.X86.HasBMI1

// maxSize keeps all offsets below the number with which the assembly marks lengths.
const maxSize = 1 << 30

// state is a block that is being decoded. The assembly knows this layout.
type state struct {
	src, dst       *byte
	srcLen, dstLen int
	srcPos, dstPos int
}

// newState returns the state at the start of a block, of which the assembly is to decode need
// bytes. ok reports whether the assembly can decode it.
func newState(dst, src []byte, need int) (s state, ok bool) {
	// Offsets are below 4 GiB. Subtracted from an address in dst, one must not pass address 0.
	low := uintptr(unsafe.Pointer(unsafe.SliceData(dst))) < 1<<32
	if !accelerated || low || len(src) > maxSize || len(dst) > maxSize {
		return s, false
	}
	_, header := binary.Uvarint(src)
	return state{unsafe.SliceData(src), unsafe.SliceData(dst), len(src), min(need, len(dst)), header, 0}, true
}

// steps decodes elements of all states in turns until one of them needs the caller. It returns
// the index of that state; ended means that it has too little input or output left for a step.
func steps(all []state) (which int, ended bool) {
	first := (*uint64)(unsafe.Pointer(unsafe.SliceData(all)))
	switch len(all) {
	case 1:
		which = decode1(first)
	case 2:
		which = decode2(first)
	default:
		which = decode3(first)
	}
	return which / 2, which&1 > 0
}

// turns are blocks that are decoded in turns.
type turns struct {
	states [AtOnce]state
	blocks [AtOnce]*Block
	n      int
}

// add adds the block if the assembly can decode it.
func (t *turns) add(b *Block) (ok bool) {
	if t.states[t.n], ok = newState(b.Dst, b.Src, cmp.Or(b.Need, len(b.Dst))); ok {
		t.blocks[t.n] = b
		t.n++
	}
	return ok
}

// next decodes until a block ends, removes that block and returns it. right reports whether it
// was decoded; if not, its Dst holds anything.
func (t *turns) next() (b *Block, right bool) {
	i, ended := steps(t.states[:t.n])
	for !ended && t.states[i].element(t.blocks[i].Dst, t.blocks[i].Src) {
		i, ended = steps(t.states[:t.n])
	}
	s, b := t.states[i], t.blocks[i]
	t.n--
	t.states[i], t.blocks[i] = t.states[t.n], t.blocks[t.n]
	return b, s.finish(b.Dst, b.Src)
}

// finish decodes the rest of a block. If it cannot, it returns false, and dst holds anything.
func (s *state) finish(dst, src []byte) bool {
	one := unsafe.Slice(s, 1)
	for {
		if _, ended := steps(one); ended {
			break
		} else if !s.element(dst, src) {
			return false
		}
	}
	if s.dstLen < len(dst) {
		for s.dstPos < s.dstLen {
			if s.srcPos == len(src) || !s.element(dst, src) {
				return false
			}
		}
		return true
	}
	for s.srcPos < len(src) {
		if !s.element(dst, src) {
			return false
		}
	}
	return s.dstPos == len(dst)
}

// element decodes one element. It returns false if the element is not valid there.
func (s *state) element(dst, src []byte) bool {
	in, out := src[s.srcPos:], dst[s.dstPos:]
	tag := int(in[0])
	extra := tag & 3 // bytes of the offset, or of a literal's length
	if extra == 3 {
		extra = 4
	} else if extra == 0 && tag>>2 >= 60 {
		extra = tag>>2 - 59
	}
	if len(in) <= extra {
		return false
	}
	number := 0
	for i := range extra {
		number |= int(in[1+i]) << (8 * i)
	}
	in = in[1+extra:]
	size := tag>>2 + 1
	switch tag & 3 {
	case 0:
		if extra > 0 {
			size = number + 1
		}
		if size > len(in) || size > len(out) {
			return false
		}
		copy(out[:size], in)
		in = in[size:]
	default:
		if tag&3 == 1 {
			size, number = 4+tag>>2&7, number|tag>>5<<8
		}
		if number == 0 || number > s.dstPos || size > len(out) {
			return false
		}
		for i, from := 0, dst[s.dstPos-number:]; i < size; i++ {
			out[i] = from[i]
		}
	}
	s.srcPos, s.dstPos = len(src)-len(in), s.dstPos+size
	return true
}
