// Package snappy decodes blocks of the raw Snappy format, in which pages of Parquet files
// are compressed. On amd64 with AVX2 and BMI1 its assembly decodes large blocks: one block
// in a little more than half of s2's time, three blocks in turns in a good third. s2 decodes
// everything else.
//
// # A step
//
// A block is a sequence of elements: literals, and copies of earlier output. Most are
// short, and their kinds are unpredictable, so a decoder that branches on the kind loses its
// time on mispredictions. The assembly's step is an optional literal of at most 32 bytes and
// then a copy. It always moves 32 bytes for each and advances by the element's length; the
// next step overwrites the surplus.
//
// A step waits until the one before has found the next tag. Steps of other blocks fill the
// wait, so the assembly has a loop for three blocks, and one for two.
//
// There are three kinds of steps:
//
//   - A wide step takes all three kinds of copies, and compares the source of each with the
//     output's start.
//   - A lean step, an eighth faster, takes copies with an offset of one or two bytes. Lean
//     steps are used from 64 KiB of output on, where no such offset leads before the start.
//     Copies with an offset of four bytes are out of line.
//   - A long step is a wide step that moves 64 bytes for a copy. In the other two, copies of
//     more than 32 bytes are out of line.
//
// Out of line costs a misprediction, as much as ten moves. If many copies are out of line,
// the loop therefore changes to wide steps for offsets of four bytes, which encoders with a
// large window write, or to long steps for long copies, such as the hosts of URLs.
//
// # Why nothing outside of the slices is touched
//
//  1. From its start, a step reads at most 98 bytes of input and uses at most 38; it writes
//     at most 127 bytes of output, of which at most 96 count.
//  2. The number of steps in a run is limited such that the last one ends within both slices
//     even if each step uses and makes the most. Of several blocks, the one with the fewest
//     steps left decides. A literal of more than 32 bytes, or a second one, may use and make
//     more, and ends the run; if its length is stored in bytes of its own, it is first
//     compared with both ends.
//  3. A copy's source is compared with the output's start, except in lean steps with offsets
//     below 64 KiB. It lies before the output's position, so reading it ends before writing.
//  4. Code in Go that checks everything decodes, one element at a time, what the assembly
//     has no step for: offset 0, sources before the start, lengths of three bytes and more,
//     and the last steps of a block.
//  5. If that code finds an error, s2 decodes the block again, and s2's answer counts. s2
//     alone also decodes elements with offset 0.
//
// The format: https://github.com/google/snappy/blob/main/format_description.txt
package snappy

import (
	"errors"

	"github.com/klauspost/compress/s2"
)

var errSize = errors.New("the decompressed size is not the one stated")

// MinSize: smaller blocks are decoded by s2, which needs less time for them.
const MinSize = 8 << 10

// AtOnce is how many blocks are decoded in turns. A fourth would hardly save time.
const AtOnce = 3

// Block is a block to decode into Dst, which must have exactly the decoded length and
// not overlap any Src or another Dst.
type Block struct {
	Dst, Src []byte
	Need     int   // if not 0: only the first Need bytes of Dst are needed, and the others may be wrong
	Err      error // after an error, Dst holds anything
}

// Decode decodes the block src into dst, see [Block]. It does not write to dst's spare
// capacity. It may be called concurrently.
func Decode(dst, src []byte) error {
	b := [1]Block{{Dst: dst, Src: src}}
	DecodeBlocks(b[:])
	return b[0].Err
}

// DecodeBlocks decodes blocks like [Decode], but in turns, which is faster. An error in one
// does not concern the others.
func DecodeBlocks(blocks []Block) {
	var t turns
	for i := range blocks {
		b := &blocks[i]
		n, err := s2.DecodedLen(b.Src)
		switch b.Err = err; {
		case err != nil:
		case n != len(b.Dst):
			b.Err = errSize
		case n < MinSize || !t.add(b):
			b.decode()
		case t.n == AtOnce:
			t.finishOne()
		}
	}
	for t.n > 0 {
		t.finishOne()
	}
}

func (t *turns) finishOne() {
	if b, right := t.next(); !right {
		b.decode()
	}
}

// decode decodes the block with s2.
func (b *Block) decode() {
	n := len(b.Dst)
	_, b.Err = s2.Decode(b.Dst[:n:n], b.Src)
}
